"""Paths between two nodes: TCP's share of what link and MTU allow, buffers, latency, and the MTU.

A full-size TCP segment of a packet of MTU bytes carries MTU - 52 (IPv4 20, TCP 20, time stamps 12)
and takes MTU + 38 on Ethernet (header 14, check 4, preamble 8, gap 12; IEEE 802.3): 9.415 Gb/s of
10 at an MTU of 1500, 9.900 at 9000.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from siteproof import units
from siteproof.analysis import arithmetic
from siteproof.analysis.aggregate import together
from siteproof.collect.derive import Derived, Limit, Limitation, Measured, in_microseconds
from siteproof.errors import OutputError
from siteproof.parsers import Reading, ping, values
from siteproof.parsers.iperf3 import Interval

HEADERS, AROUND = 52, 38  # bytes
OF_A_JOB = ("reverse", "protocol", "omit", "block")  # dimensions hold the same
SWEPT = {"throughput": "rate", "retransmits": "retransmits"}
BUFFERS = ("rmem_max", "wmem_max")


def tcp_bandwidth(given: Measured) -> Derived:
    """Add `share_of_link` (%) where the site knows the link's speed; warn of small buffers."""
    conditions = {key: value for key, value in given.conditions.items() if key not in OF_A_JOB}
    readings = list(given.readings)
    mtu = given.fact("mtu", conditions.get("mtu", ""))
    speed = Fraction(given.fact("speed", "0"))
    if speed and mtu:
        most = goodput(speed, _mtu(mtu))
        for reading in given.readings:
            if reading.metric == "throughput":
                share = units.convert(Decimal(reading.value), reading.unit, "b/s") / most
                readings.append(Reading("share_of_link", _percent(share), "%", reading.dims))
    round_trip = Fraction(given.fact("round_trip", "0"))
    if limitation := _limit_of_window(conditions, int(arithmetic.under_way(speed, round_trip))):
        conditions["window_warning"] = str(limitation)
    return readings, conditions


def tcp_bandwidth_of_link(
    moved: Mapping[str, Sequence[Interval]], facts: Mapping[str, object]
) -> list[Reading]:
    """What a link carries while all of its pairs run: their sum (b/s), its best second, fairness.

    moved: each pair's intervals. efficiency: in % of the link's speed, where the site knows it.
    """
    whole = together(moved)
    readings = [
        Reading("aggregate", Decimal(round(whole.aggregate)), "b/s"),
        Reading("peak_second", Decimal(round(whole.peak_second)), "b/s"),
        Reading("fairness", Decimal(f"{float(whole.fairness):.4f}"), "x"),
        Reading("seconds_together", Decimal(f"{float(whole.seconds):.2f}"), "s"),
    ]
    if speed := Fraction(str(facts.get("speed", "0"))):
        readings.append(Reading("efficiency", _percent(whole.aggregate / speed), "%"))
    return readings


def goodput(speed: Fraction, mtu: int) -> Fraction:
    """The b/s of TCP's payload that Ethernet of that speed carries at an MTU in bytes."""
    return speed * (mtu - HEADERS) / (mtu + AROUND)


def _mtu(text: str) -> int:
    """An MTU that holds a segment, in bytes. Raises OutputError."""
    size = int(values.number("tcp: mtu", text))
    if size <= HEADERS:
        raise OutputError(f"tcp: an MTU of {size} bytes holds no segment")
    return size


def _percent(share: Fraction) -> Decimal:
    return Decimal(f"{float(share) * 100:.2f}")


def _limit_of_window(conditions: Mapping[str, str], under_way: int) -> Limitation | None:
    """Set if a socket cannot hold what is under way: bandwidth by round trip, in bytes."""
    limits = []
    for key in ("rmem_max", "wmem_max"):
        text = conditions.get(key, "")
        if text.isdecimal() and len(text) < 20:
            limits.append(int(text))
    if not limits or min(limits) >= under_way:
        return None
    details = {"limit": str(min(limits)), "under_way": str(under_way)}
    return Limitation(Limit.SOCKET_BUFFER, details)


def tcp_sweep(given: Measured) -> Derived:
    """rate (b/s, as the receiver counted it) and retransmits of one run."""
    found = [replace(r, metric=SWEPT[r.metric]) for r in given.readings if r.metric in SWEPT]
    return found, {key: value for key, value in given.conditions.items() if key not in OF_A_JOB}


def latency(given: Measured) -> Derived:
    """round_trip, min, mean, max (us), loss (%); tcp (us) where qperf measured it.

    `size` and `packets` are as ping prints them. Raises OutputError where ping ran several times.
    """
    pings = [run for run in given.raw.runs if run.dims.get("program") == "ping"]
    run = values.only("latency", "runs of ping", pings)
    found = [
        replace(
            in_microseconds(reading),
            metric="tcp" if reading.dims.get("test") == "tcp_lat" else reading.metric,
            dims={},
        )
        for reading in given.readings
    ]
    return found, {**given.conditions, **ping.conditions(run.stdout)}


def path_mtu(given: Measured) -> Derived:
    """Add `device` (B), the MTU of the client's own device, where the client knows it.

    What a path does with larger packets, and what the client has, are warnings and no conditions.
    """
    conditions = {key: value for key, value in given.conditions.items() if key not in BUFFERS}
    own, promised = conditions.pop("mtu", ""), given.fact("mtu", "")
    if conditions.pop("silent", "no") == "yes":
        conditions["silent_warning"] = str(Limitation(Limit.SILENT_LOSS))
    if not own:
        return given.readings, conditions
    device = values.positive("path_mtu: the device's MTU", own)
    if promised and device < Decimal(promised):
        limitation = Limitation(Limit.DEVICE_MTU, {"own": own, "expected": promised})
        conditions["device_warning"] = str(limitation)
    return [*given.readings, Reading("device", device, "B")], conditions
