"""RdmaPorts: the slowest active port, and those below the rate that the site states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import cast

from siteproof import units
from siteproof.derive import Derived, Given
from siteproof.parsers import Reading


def derive(given: Given) -> Derived:
    """lowest_rate and lowest_width of the active ports; ports_below, where the site states rates.

    facts: `stated`, b/s by the name of a device (mlx5_0) or of a port of it (mlx5_0_1). A stated
    device without an active port, or that the node lacks, is below its rate.
    """
    stated = cast("Mapping[str, str]", given.facts.get("stated") or {})
    found = [*given.readings, *_lowest(given.readings)]
    ports = {r.dims["port"] for r in given.readings if "port" in r.dims}
    rates = {r.dims["port"]: r for r in given.readings if r.metric == "rate"}
    limits = {port: limit for port in sorted(ports) if (limit := _stated(stated, port))}
    below = [port for port, limit in limits.items() if _rate(rates.get(port)) < limit]
    if limits:
        found.append(Reading("ports_below", Decimal(len(below)), "count"))
    absent = {r.dims["port"] for r in given.readings if r.metric == "absent"}
    for port in below:
        has = "no such device" if port in absent else "not active"
        found.append(_below(port, rates.get(port), has, limits[port]))
    return found, dict(given.conditions)


def _lowest(readings: Sequence[Reading]) -> Iterator[Reading]:
    for metric in ("rate", "width"):
        each = [r for r in readings if r.metric == metric]
        if each:
            lowest = min(each, key=_value)
            yield Reading(f"lowest_{metric}", lowest.value, lowest.unit)


def _value(reading: Reading) -> Decimal:
    return Decimal(reading.value)


def _stated(stated: Mapping[str, str], port: str) -> Fraction:
    """The rate of the port, or of its device."""
    return Fraction(stated.get(port) or stated.get(port.rpartition("_")[0], "0"))


def _rate(reading: Reading | None) -> Fraction:
    """b/s; 0 for a port that is not active."""
    return units.convert(_value(reading), reading.unit, "b/s") if reading else Fraction(0)


def _below(port: str, reading: Reading | None, has: str, limit: Fraction) -> Reading:
    """has: what is there where no rate is."""
    has = f"{reading.value} {reading.unit}" if reading else has
    gigabits = float(units.convert(limit, "b/s", "Gb/s"))
    return Reading("below", f"{has}, stated {gigabits:g} Gb/s", "text", {"port": port})
