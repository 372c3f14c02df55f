"""TCP between two nodes: the share of what link and MTU allow, and buffers for the path.

A full-size TCP segment of a packet of MTU bytes carries MTU - 52 (IPv4 20, TCP 20, time stamps 12)
and takes MTU + 38 on Ethernet (header 14, check 4, preamble 8, gap 12; IEEE 802.3): 9.415 Gb/s of
10 at an MTU of 1500, 9.900 at 9000.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from siteproof import units
from siteproof.analysis.aggregate import together
from siteproof.errors import OutputError
from siteproof.parsers import Reading, figures

if TYPE_CHECKING:
    from siteproof.collect.raw import Raw
    from siteproof.parsers.iperf3 import Interval

HEADERS, AROUND = 52, 38  # bytes
OF_A_RUN = ("reverse", "protocol", "omit", "block")  # say nothing that dimensions do not


def derive(
    readings: list[Reading], conditions: Mapping[str, str], raw: Raw, facts: Mapping[str, object]
) -> tuple[list[Reading], dict[str, str]]:
    """Add `share_of_link` (%) where the site knows the link's speed; warn of small buffers."""
    kept = {key: value for key, value in conditions.items() if key not in OF_A_RUN}
    mtu = str(facts.get("mtu", "")) or conditions.get("mtu", "")
    speed = Fraction(str(facts.get("speed", "0")))
    if speed and mtu:
        most = goodput(speed, _whole(mtu))
        readings = [
            *readings,
            *(
                Reading("share_of_link", _percent(reading, most), "%", reading.dims)
                for reading in readings
                if reading.metric == "throughput"
            ),
        ]
    if warning := _small_buffers(kept, speed, Fraction(str(facts.get("round_trip", "0")))):
        kept["window_warning"] = warning
    return readings, kept


def of_link(moved: Mapping[str, Sequence[Interval]], facts: Mapping[str, object]) -> list[Reading]:
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
        share = Decimal(f"{float(whole.aggregate / speed) * 100:.2f}")
        readings.append(Reading("efficiency", share, "%"))
    return readings


def goodput(speed: Fraction, mtu: int) -> Fraction:
    """The b/s of TCP's payload that Ethernet of that speed carries at an MTU in bytes."""
    return speed * (mtu - HEADERS) / (mtu + AROUND)


def _whole(mtu: str) -> int:
    """An MTU that holds a segment, in bytes. Raises OutputError."""
    size = int(figures.number("tcp: mtu", mtu))
    if size <= HEADERS:
        raise OutputError(f"tcp: an MTU of {size} bytes holds no segment")
    return size


def _percent(reading: Reading, most: Fraction) -> Decimal:
    share = units.convert(Decimal(reading.value), reading.unit, "b/s") / most
    return Decimal(f"{float(share) * 100:.2f}")


def _small_buffers(conditions: Mapping[str, str], speed: Fraction, round_trip: Fraction) -> str:
    """A word where a socket cannot hold what is under way: bandwidth by round trip, in bytes."""
    held = [
        int(v)
        for key in ("rmem_max", "wmem_max")
        if (v := conditions.get(key, "")).isdecimal() and len(v) < 20
    ]
    product = int(speed * round_trip / 8)
    if not held or min(held) >= product:
        return ""
    return (
        f"TCP buffers of at most {min(held)} bytes, the path holds {product}: one stream "
        "cannot fill it"
    )
