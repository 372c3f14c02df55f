"""RDMA: the slowest active port and those below the stated rate; bandwidth, latency and errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import cast

from siteproof import units
from siteproof.collect.derive import Derived, Measured, must_be
from siteproof.parsers import Reading
from siteproof.parsers.rdma_ports import ERRORS

METRICS = {  # by the names of the parser
    "bandwidth": "bandwidth",
    "bandwidth_peak": "bandwidth_peak",
    "message_rate": "message_rate",
    "typical": "latency",
    "min": "latency_min",
    "mean": "latency_mean",
    "p99": "latency_p99",
    "p999": "latency_p999",
    "max": "latency_max",
}


def rdma_ports(given: Measured) -> Derived:
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
            lowest = min(each, key=_number)
            yield Reading(f"lowest_{metric}", lowest.value, lowest.unit)


def _stated(stated: Mapping[str, str], port: str) -> Fraction:
    """The rate of the port, or of its device."""
    return Fraction(stated.get(port) or stated.get(port.rpartition("_")[0], "0"))


def _rate(reading: Reading | None) -> Fraction:
    """b/s; 0 for a port that is not active."""
    return units.convert(_number(reading), reading.unit, "b/s") if reading else Fraction(0)


def _below(port: str, reading: Reading | None, has: str, limit: Fraction) -> Reading:
    """has: what is there where no rate is."""
    has = f"{reading.value} {reading.unit}" if reading else has
    gigabits = float(units.convert(limit, "b/s", "Gb/s"))
    return Reading("below", f"{has}, stated {gigabits:g} Gb/s", "text", {"port": port})


def rdma_write(given: Measured) -> Derived:
    """Bandwidths as printed, latencies in us (`latency` is the median); errors_grown (count).

    Raises OutputError where a run is missing or there are several.
    """
    named = {r.metric: r for r in given.readings if r.metric in METRICS}
    for metric in ("bandwidth", "typical"):
        must_be(f"values of {metric}", sum(r.metric == metric for r in given.readings), 1, "parse")
    found = [replace(r, metric=METRICS[name], dims={}) for name, r in named.items()]
    conditions = dict(given.conditions) | {
        "bandwidth_size": named["bandwidth"].dims["size"],
        "latency_size": named["typical"].dims["size"],
    }
    before, after = (given.of_phase(phase) for phase in ("before", "after"))
    if _counted(before) and _counted(after):  # not every device keeps counters
        grown = _grown(before, after)
        found.append(Reading("errors_grown", Decimal(sum(map(_number, grown))), "count"))
        found += grown
    return found, conditions


def _counted(readings: Sequence[Reading]) -> bool:
    return any(r.dims.get("counter") in ERRORS for r in readings)


def _grown(before: Sequence[Reading], after: Sequence[Reading]) -> list[Reading]:
    """The errors that grew, by port and counter; a counter that was reset meanwhile did not."""
    first = {_key(r): _number(r) for r in before if r.metric == "counter"}
    found = []
    for reading in after:
        if reading.metric != "counter" or reading.dims["counter"] not in ERRORS:
            continue
        more = _number(reading) - first.get(_key(reading), _number(reading))
        if more > 0:
            port, counter = _key(reading)
            dims = {"port": port, "counter": counter}
            found.append(Reading("error_grown", more, "count", dims))
    return found


def _key(reading: Reading) -> tuple[str, str]:
    return reading.dims["port"], reading.dims["counter"]


def _number(reading: Reading) -> Decimal:
    return Decimal(reading.value)
