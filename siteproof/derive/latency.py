"""Latency: ping's figures in us, and TCP's beside them."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from siteproof.errors import OutputError
from siteproof.parsers import Reading, ping

if TYPE_CHECKING:
    from siteproof.collect.raw import Raw

THOUSANDS = {"us": 0, "ms": 3, "s": 6}  # powers of ten: no digit is lost


def derive(
    readings: list[Reading], conditions: Mapping[str, str], raw: Raw, facts: Mapping[str, object]
) -> tuple[list[Reading], dict[str, str]]:
    """round_trip, min, mean, max (us), loss (%); tcp (us) where qperf measured it.

    `size` and `packets` are as ping says. Raises OutputError where several pings were run.
    """
    pings = [run for run in raw.runs if run.dims.get("program") == "ping"]
    if len(pings) != 1:
        raise OutputError(f"{len(pings)} runs of ping where one is expected")
    found = [_named(reading) for reading in readings]
    return found, {**conditions, **ping.conditions(pings[0].stdout)}


def _named(reading: Reading) -> Reading:
    """In us, and TCP's latency by a name of its own."""
    metric = "tcp" if reading.dims.get("test") == "tcp_lat" else reading.metric
    if reading.unit not in THOUSANDS:
        return Reading(metric, reading.value, reading.unit)
    value = Decimal(reading.value).scaleb(THOUSANDS[reading.unit])
    return Reading(metric, Decimal(f"{value:f}"), "us")
