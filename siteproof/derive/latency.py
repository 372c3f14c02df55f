"""Latency: ping's times in us, and TCP's next to them."""

from __future__ import annotations

from decimal import Decimal

from siteproof.derive import Derived, Given
from siteproof.errors import OutputError
from siteproof.parsers import Reading, ping

POWERS = {"us": 0, "ms": 3, "s": 6}  # of ten: no digit is lost


def derive(given: Given) -> Derived:
    """round_trip, min, mean, max (us), loss (%); tcp (us) where qperf measured it.

    `size` and `packets` are as ping prints them. Raises OutputError where ping ran several times.
    """
    pings = [run for run in given.raw.runs if run.dims.get("program") == "ping"]
    if len(pings) != 1:
        raise OutputError(f"{len(pings)} runs of ping where one is expected")
    found = [_named(reading) for reading in given.readings]
    return found, {**given.conditions, **ping.conditions(pings[0].stdout)}


def _named(reading: Reading) -> Reading:
    """In us, and TCP's latency by a name of its own."""
    metric = "tcp" if reading.dims.get("test") == "tcp_lat" else reading.metric
    if reading.unit not in POWERS:
        return Reading(metric, reading.value, reading.unit)
    value = Decimal(reading.value).scaleb(POWERS[reading.unit])
    return Reading(metric, Decimal(f"{value:f}"), "us")
