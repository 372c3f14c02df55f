"""Quantities with units: "65 GB/s" to an exact number, and from one unit to another.

A data rate in B is counted in bytes, in b or bit in bits; k, M, G, T are powers of 1000 and
Ki, Mi, Gi, Ti powers of 1024. Conversions are exact fractions.

A contract may have a measured value rounded before it is compared with a bound: to the step that it
names, by one of RULES. That is exact, too (fractions of the decimal text that the tool printed):
binary floating point turns 64.5 into a failure of "65, to the nearest 1".
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from difflib import get_close_matches
from fractions import Fraction
from functools import cache

from siteproof.errors import UserError

_DECIMAL = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
# What applications count, each a kind of its own: steps cannot be converted to images.
_COUNTED = (
    *("steps", "iterations", "images", "samples", "tokens", "frames", "cells", "messages"),
    *("atom-steps", "cell-updates", "reads", "jobs"),
)
# Molecular dynamics: simulated time by elapsed time, and the other way round.
SIMULATION_RATE, SIMULATION_COST = "simulation rate", "simulation cost"
ENERGY_RATE, PROBLEM_RATE = "energies an hour", "problems an hour"
COUNTED = {f"{thing} a second": f"{thing}/s" for thing in _COUNTED}  # kinds and their units
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50}


_SCALED = {  # by powers of 1000, with their kinds
    "FLOPS": "flops",
    "OPS": "whole-number operations a second",
    "Hz": "frequency",
    "IOPS": "iops",
    "J": "electrical energy",
    "W": "electrical power",
    **{unit: kind for kind, unit in COUNTED.items()},
}
_OTHERS: dict[str, dict[str, Fraction | int]] = {  # by their kinds, with their sizes
    "time": {
        "ns": Fraction(1, 10**9),
        "us": Fraction(1, 10**6),
        "ms": Fraction(1, 1000),
        "s": 1,
        "min": 60,
        "h": 3600,
        "d": 86400,
    },
    "share": {"%": Fraction(1, 100), "x": 1},
    "hours a month": {"h/month": 1},
    ENERGY_RATE: {"energies/h": 1},
    PROBLEM_RATE: {"problems/h": 1},
    "temperature": {"C": 1},
    "electrical energy": {"kWh": 3_600_000},
    "energy": {"hartree": 1},
    "molar energy": {"kJ/mol": 1},
    "drift of a molar energy": {"kJ/mol/ps": 1},
    "percentage points": {"pp": 1},
    "count": dict.fromkeys(("count", "nodes", "tasks", "ranks", "packets", "VMs", "instances"), 1),
    SIMULATION_RATE: {"ns/day": 1},
    SIMULATION_COST: {"days/ns": 1},
    "text": {"text": 1},
}


def _table() -> dict[str, tuple[str, Fraction]]:
    """Each unit with its kind and its size in the kind's base unit."""
    units: dict[str, tuple[str, Fraction]] = {}
    for prefix, factor in (_DECIMAL | _BINARY).items():
        units[f"{prefix}B"] = ("size", Fraction(factor))
        units[f"{prefix}B/s"] = ("rate", Fraction(factor))
    for prefix, factor in _DECIMAL.items():
        for bit in ("b", "bit"):
            units[f"{prefix}{bit}/s"] = ("rate", Fraction(factor, 8))
        for unit, kind in _SCALED.items():
            units[f"{prefix}{unit}"] = (kind, Fraction(factor))
    for kind, sizes in _OTHERS.items():
        units |= {unit: (kind, Fraction(size)) for unit, size in sizes.items()}
    return units


UNITS = _table()
# Each in its field's unit.
WORK_RATES = (SIMULATION_RATE, SIMULATION_COST, ENERGY_RATE, PROBLEM_RATE, *COUNTED)
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


def parse(text: object, where: object = "quantity", wanted: str = "") -> Quantity:
    """Read "65 GB/s". Raises UserError if it is not a number with a known unit.

    wanted: the kind that it must be of, for the hint.
    """
    match = _QUANTITY.fullmatch(str(text))
    if not match or not match[2]:
        what = f"'{text}' is not a number with a unit{hint(text, wanted)}"
        raise UserError(where, what, 'a number and a unit, such as "65 GB/s"')
    if match[2] not in UNITS:
        what = f"unknown unit '{match[2]}' in '{text}'{hint(text, wanted)}"
        raise UserError(where, what, sorted(UNITS))
    return Quantity(Decimal(match[1]), match[2])


def hint(text: object, wanted: str = "") -> str:
    """ " (did you mean '10 min'?)": what a plausible spelling means; or nothing.

    wanted: the kind that it must be of, if that is known.
    """
    given = re.sub(r"\bper\b", "/", str(text).strip()[:60].replace("\u00b5", "u"))
    if wanted in ("", "time") and (clock := _clock(given.lower())):
        return f" (did you mean '{clock}'?)"
    match = _LOOSE.fullmatch(given)
    if match is None:
        return ""
    number = _plain_number(match[1])
    found = [f"'{number} {unit}'" for unit in _meant("".join(match[2].split()), wanted)]
    return f" (did you mean {' or '.join(found)}?)" if number and found else ""


# Spellings of a unit that are understood well enough to name the right one.
_LOOSE = re.compile(r"([+-]?[0-9][0-9.,_']*(?:[eE][+-]?[0-9]{1,3})?)\s*([^0-9\s].{0,39})")
_PREFIXES = {
    "": "", "kilo": "k", "mega": "M", "giga": "G", "tera": "T", "peta": "P",
    "kibi": "Ki", "mebi": "Mi", "gibi": "Gi", "tebi": "Ti", "pebi": "Pi",
    **{prefix.lower(): prefix for prefix in (*_DECIMAL, *_BINARY)},
}  # fmt: skip
_WORDS = {
    "byte": "B", "bytes": "B", "bit": "b", "bits": "b", "": "",
    "flop": "FLOPS", "flops": "FLOPS", "f": "FLOPS", "hz": "Hz", "hertz": "Hz", "iops": "IOPS",
}  # fmt: skip
_TIMES = {
    "ns": ("nsec", "nsecs", "nanosecond", "nanoseconds"),
    "us": ("usec", "usecs", "microsecond", "microseconds"),
    "ms": ("msec", "msecs", "millisecond", "milliseconds"),
    "s": ("sec", "secs", "second", "seconds"),
    "min": ("m", "mins", "minute", "minutes"),
    "h": ("hr", "hrs", "hour", "hours"),
    "d": ("day", "days"),
    "%": ("percent", "pct", "/cent"),
}
SPELLINGS = {name: unit for unit, names in _TIMES.items() for name in (unit, *names)}
_UNIT = re.compile(
    rf"({'|'.join(sorted(_PREFIXES, key=len, reverse=True))})"
    rf"({'|'.join(sorted({*_WORDS, 'b'}, key=len, reverse=True))})(/s(?:ec(?:ond)?)?|ps)?",
    re.IGNORECASE,
)
_BARE = {"size": ("B", "iB"), "rate": ("b/s",), "flops": ("FLOPS",), "frequency": ("Hz",)}
_SECONDS = {"d": 86400, "h": 3600, "min": 60, "s": 1}
_DAYS = re.compile(r"(?:([0-9]{1,3})-)?([0-9]{1,3}):([0-9]{2})(?::([0-9]{2}))?")  # as Slurm's
_PARTS = re.compile(r"(?:([0-9]{1,3})d)?(?:([0-9]{1,4})h)?(?:([0-9]{1,4})m)?(?:([0-9]{1,5})s?)?")


def _meant(given: str, wanted: str) -> list[str]:
    """The units that it may stand for, of the kind that is wanted."""
    found = [name for name in UNITS if name.lower() == given.lower()]
    if other := SPELLINGS.get(given.lower()):
        found.append(other)
    if match := _UNIT.fullmatch(given):
        found += _with_prefix(_PREFIXES[match[1].lower()], match[2], match[3], wanted)
    alike = [name for name in UNITS if not wanted or kind(name) == wanted]
    right = [name for name in found if name in alike]
    return list(dict.fromkeys(right))[:2] or get_close_matches(given, alike, n=1, cutoff=0.7)


def _with_prefix(prefix: str, counted: str, per: str | None, wanted: str) -> list[str]:
    """Units of a prefix and what it is a multiple of: G and byte, G and nothing."""
    if not counted:
        bare = _BARE.get(wanted, ())
        return [f"{prefix}{unit}" for unit in bare if not (len(prefix) > 1 and unit == "iB")]
    base = _WORDS.get(counted.lower()) or counted
    if base not in ("b", "B"):
        return [f"{prefix}{base}"]
    if per is None and wanted != "rate":
        return [f"{prefix}B"]
    return [f"{prefix}{base}/s"]


def _plain_number(text: str) -> str:
    """A number without what groups its digits, and with a point for a decimal comma; or ""."""
    text = text.replace("_", "").replace("'", "")
    if re.fullmatch(r"[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]+)?", text):
        return text.replace(",", "")
    text = text.replace(",", ".")
    return text if re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?", text) else ""


def _clock(text: str) -> str:
    """A time as 00:10:00, 1-00:00:00 or 1h30m in the largest unit that is whole; or ""."""
    parts = _time_parts("".join(text.split()))
    seconds = sum(
        int(part or 0) * size for part, size in zip(parts, _SECONDS.values(), strict=True)
    )
    for unit, size in _SECONDS.items():
        if seconds and seconds % size == 0:
            return f"{seconds // size} {unit}"
    return ""


def _time_parts(text: str) -> Sequence[str | None]:
    """Days, hours, minutes and seconds, as written; all None where it is no such time."""
    none = (None, None, None, None)
    if match := _DAYS.fullmatch(text):
        days, first, second, third = match.groups()
        # Two parts are minutes and seconds, but hours and minutes after days.
        return match.groups() if days or third else (None, None, first, second)
    match = _PARTS.fullmatch(text)
    if match is None or sum(part is not None for part in match.groups()) < 2:
        return none
    if text[-1].isdigit() and match[3] is None:  # 1h30: minutes, not seconds
        return (match[1], match[2], match[4], None)
    return match.groups()


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


def readable(value: float, unit: str) -> str:
    """The unit with which a value can be read: Gb/s for 8712076343 b/s; mostly its own.

    Values from 0.01 to 100,000 stay as they are, and so does what has no prefixes.
    """
    size = abs(value)
    if unit not in UNITS or not size or not math.isfinite(size) or 0.01 <= size < 100_000:
        return unit
    base = Fraction(size) * UNITS[unit][1]
    fits = [u for u in _alike(unit) if UNITS[u][1] <= base < 1000 * UNITS[u][1]]
    return fits[0] if fits else unit


@cache
def _alike(unit: str) -> list[str]:
    """The units that differ by their prefix only."""
    for prefixes in (_BINARY, _DECIMAL):
        for prefix in sorted(prefixes, key=len, reverse=True):
            base = unit.removeprefix(prefix)
            named = [one + base for one in prefixes if one + base in UNITS]
            if unit in named and len(named) > 1:
                return named
    return [name for name in ("ns", "us", "ms", "s") if unit in ("ns", "us", "ms", "s")]


def with_unit(value: object, unit: str) -> str:
    """`65 GB/s`; a plain count is its number alone, as the metric names what is counted."""
    return f"{value}" if unit in ("", "count") else f"{value} {unit}"


def count(number: object, thing: str, things: str = "") -> str:
    """`1 node`, `320 nodes`, `3 criteria`. things: the plural, where it does not end in s."""
    return f"{number} {thing if number == 1 else things or f'{thing}s'}"


# ---- rounding

Number = Fraction | Decimal | int
# Different decimals of so many digits have different floats (DBL_DIG of C). So a value that a tool
# prints with at most as many is judged as a float exactly as it is judged as a decimal.
PRINTED_DIGITS = 15
_DOWN = Context(prec=PRINTED_DIGITS, rounding=ROUND_FLOOR)


@dataclass(frozen=True)
class Rule:
    """A rule of rounding, of which the rest follows.

    whole: A number of steps as a whole number. A whole number stays as it is, a larger number never
        becomes a smaller one, what it becomes changes only at a whole number or half-way
        between two, and a number below 0 becomes what it would be above 0, with its sign.
    meaning: Its description in the manual.
    """

    whole: Callable[[Fraction], int]
    meaning: str


def _half_away(steps: Fraction) -> int:
    whole = (2 * abs(steps.numerator) + steps.denominator) // (2 * steps.denominator)
    return whole if steps >= 0 else -whole


# By the word before the step: `rounding: nearest 1 GB/s`; ties to even with `ties: even`.
# siteproof/report/recompute.py has each of them again.
RULES = {
    "nearest": Rule(_half_away, "to the nearest step"),
    "even": Rule(round, "to the nearest step, half-way to the even multiple"),
}
USUAL = "nearest"


def round_to(value: Number, step: Number, rule: str = USUAL) -> Fraction:
    """The multiple of step that value is rounded to."""
    step = Fraction(step)
    return RULES[rule].whole(Fraction(value) / step) * step


@dataclass(frozen=True)
class Limit:
    """The worst raw value that still meets a bound.

    value: The limit.
    inclusive: Whether the limit itself passes.
    """

    value: Fraction
    inclusive: bool

    def as_float(self, *, lowest: bool) -> float:
        """The float nearest to the limit that judges as it does, in an inclusive comparison.

        Every decimal of at most PRINTED_DIGITS digits is on the same side of both.
        """
        if not lowest:
            return -Limit(-self.value, self.inclusive).as_float(lowest=True)
        nearest = float(self.value)
        below = _DOWN.divide(Decimal(self.value.numerator), Decimal(self.value.denominator))
        passes = self.inclusive and below == self.value
        return nearest if passes or float(below) < nearest else math.nextafter(nearest, math.inf)


def lowest_passing(bound: Number, step: Number | None, rule: str = USUAL) -> Limit:
    """What a raw value must reach so that, rounded to step, it is at least bound."""
    if step is None:
        return Limit(Fraction(bound), True)
    step = Fraction(step)
    edge = _edge(math.ceil(Fraction(bound) / step), rule)
    return Limit(edge.value * step, edge.inclusive)


def highest_passing(bound: Number, step: Number | None, rule: str = USUAL) -> Limit:
    """What a raw value must not exceed so that, rounded to step, it is at most bound."""
    if step is None:
        return Limit(Fraction(bound), True)
    step = Fraction(step)
    edge = _edge(math.floor(Fraction(bound) / step) + 1, rule)
    return Limit(edge.value * step, not edge.inclusive)


def _edge(whole: int, rule: str) -> Limit:
    """From how many steps on the rule gives this whole number, or more.

    A rule changes only at a whole number or half-way, so it is the same everywhere between.
    """
    for edge in (whole - Fraction(1), whole - Fraction(1, 2)):
        if RULES[rule].whole(edge) >= whole:
            return Limit(edge, True)
        if RULES[rule].whole(edge + Fraction(1, 4)) >= whole:
            return Limit(edge, False)
    return Limit(Fraction(whole), True)
