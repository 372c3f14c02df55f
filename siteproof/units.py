"""Quantities with units: "65 GB/s" to an exact number, and from one unit to another.

A data rate in B is counted in bytes, in b or bit in bits; k, M, G, T are powers of 1000 and
Ki, Mi, Gi, Ti powers of 1024. Nothing is rounded: conversions are exact fractions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache

from siteproof.errors import UserError

_DECIMAL = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
# What applications count, each a kind of its own: steps cannot be converted to images.
_COUNTED = ("steps", "iterations", "images", "samples", "tokens", "frames", "cells", "messages")
# Molecular dynamics: simulated time by elapsed time, and the other way round.
SIMULATION_RATE, SIMULATION_COST = "simulation rate", "simulation cost"
COUNTED = {f"{thing} a second": f"{thing}/s" for thing in _COUNTED}  # kinds and their units
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50}


def _table() -> dict[str, tuple[str, Fraction]]:
    """Each unit with its kind and its size in the kind's base unit."""
    units: dict[str, tuple[str, Fraction]] = {}
    for prefix, factor in (_DECIMAL | _BINARY).items():
        units[f"{prefix}B"] = ("size", Fraction(factor))
        units[f"{prefix}B/s"] = ("rate", Fraction(factor))
    for prefix, factor in _DECIMAL.items():
        for bit in ("b", "bit"):
            units[f"{prefix}{bit}/s"] = ("rate", Fraction(factor, 8))
        units[f"{prefix}FLOPS"] = ("flops", Fraction(factor))
        units[f"{prefix}Hz"] = ("frequency", Fraction(factor))
        units[f"{prefix}IOPS"] = ("iops", Fraction(factor))
    for name, seconds in {
        "ns": Fraction(1, 10**9),
        "us": Fraction(1, 10**6),
        "ms": Fraction(1, 1000),
        "s": Fraction(1),
        "min": Fraction(60),
        "h": Fraction(3600),
        "d": Fraction(86400),
    }.items():
        units[name] = ("time", seconds)
    units["%"] = ("share", Fraction(1, 100))
    units["x"] = ("share", Fraction(1))
    units["h/month"] = ("hours a month", Fraction(1))
    units["pp"] = ("percentage points", Fraction(1))
    for name in ("count", "nodes", "tasks", "ranks", "packets", "VMs", "instances"):
        units[name] = ("count", Fraction(1))
    for name, unit in COUNTED.items():
        units[unit] = (name, Fraction(1))
    units["ns/day"] = (SIMULATION_RATE, Fraction(1))
    units["days/ns"] = (SIMULATION_COST, Fraction(1))
    units["text"] = ("text", Fraction(1))
    return units


UNITS = _table()
# An exponent has at most three digits: 10**99999999 as an exact fraction would fill the memory.
_QUANTITY = re.compile(r"\s*([+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?)\s*(\S*)\s*")


@dataclass(frozen=True)
class Quantity:
    """A number as written, and its unit."""

    value: Decimal
    unit: str

    def to(self, unit: str) -> Fraction:
        """This quantity in another unit of the same kind, exactly. Raises UserError."""
        return convert(self.value, self.unit, unit)

    def __str__(self) -> str:
        return f"{self.value} {self.unit}"


def parse(text: object, where: object = "quantity") -> Quantity:
    """Read "65 GB/s". Raises UserError if it is not a number with a known unit."""
    match = _QUANTITY.fullmatch(str(text))
    if not match or not match[2]:
        raise UserError(
            where, f"'{text}' is not a number with a unit", 'a number and a unit, such as "65 GB/s"'
        )
    if match[2] not in UNITS:
        raise UserError(where, f"unknown unit '{match[2]}' in '{text}'", sorted(UNITS))
    return Quantity(Decimal(match[1]), match[2])


def size(count: int) -> str:
    """Bytes as people say them: 1 MiB; what is not a whole number of them in four digits."""
    for power, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count >= 2**power:
            return f"{count / 2**power:.4g} {unit}"
    return f"{count} B"


def kind(unit: str) -> str:
    """What a unit measures: size, rate, flops, time, share …"""
    return UNITS[unit][0]


def convert(value: Decimal | Fraction | int, unit: str, to: str) -> Fraction:
    """The value in another unit of the same kind, exactly. Raises UserError."""
    ratio = _ratio(unit, to)
    exact = value if isinstance(value, Fraction) else Fraction(value)
    return exact if ratio == 1 else exact * ratio


@cache
def _ratio(unit: str, to: str) -> Fraction:
    """How many of the second unit the first one is. Raises UserError."""
    for name in (unit, to):
        if name not in UNITS:
            raise UserError(name, "unknown unit", sorted(UNITS))
    if kind(unit) != kind(to):
        raise UserError(f"{unit} to {to}", f"a {kind(unit)} cannot be converted to a {kind(to)}")
    return UNITS[unit][1] / UNITS[to][1]


def with_unit(value: object, unit: str) -> str:
    """`65 GB/s`; a plain count is its number alone, as the metric names what is counted."""
    return f"{value}" if unit in ("", "count") else f"{value} {unit}"


def count(number: object, thing: str, things: str = "") -> str:
    """`1 node`, `320 nodes`, `3 criteria`. things: the plural, where it does not end in s."""
    return f"{number} {thing if number == 1 else things or f'{thing}s'}"
