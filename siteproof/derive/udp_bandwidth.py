"""UDP as fast as it goes: whether the sender could fill the link, and the receiver empty it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from siteproof.derive import udp_limits
from siteproof.derive.tcp_bandwidth import AROUND
from siteproof.derive.udp_limits import UdpRun
from siteproof.errors import OutputError
from siteproof.parsers import Reading, figures

if TYPE_CHECKING:
    from siteproof.collect.raw import Raw

FILLED = Fraction(95, 100)  # of what the link carries: less, and the sender is the limit
METRICS = ("throughput", "sent", "loss", "cpu_sender", "cpu_receiver")


def derive(
    readings: list[Reading], conditions: Mapping[str, str], raw: Raw, facts: Mapping[str, object]
) -> tuple[list[Reading], dict[str, str]]:
    """The one run's figures; warnings where an end, and not the network, is the limit."""
    runs = udp_limits.by_run(readings)
    if len(runs) != 1:
        raise OutputError(f"udp: {len(runs)} runs where one is expected")
    (run,) = runs
    kept = {**udp_limits.conditions(conditions), **run.told}
    del kept["burst"]
    warnings = {
        "sender_warning": _slow_sender(run, kept, Fraction(str(facts.get("speed", "0")))),
        "receiver_warning": udp_limits.receiver_warning(runs),
    }
    found = [replace(run.readings[name], dims={}) for name in METRICS if name in run.readings]
    return found, kept | {key: words for key, words in warnings.items() if words}


def carried(speed: Fraction, mtu: int, datagram: int) -> Fraction:
    """The b/s of UDP's payload that Ethernet of that speed carries, one datagram a packet."""
    return speed * datagram / (mtu + AROUND)


def _slow_sender(run: UdpRun, conditions: Mapping[str, str], speed: Fraction) -> str:
    """A word where less was sent than the link carries, or may have been.

    Without figures, as a report tells the same words once; `sent` and `cpu_sender` have them.
    """
    busy = run.share("cpu_sender") >= udp_limits.BUSY
    if not speed or "mtu" not in conditions:
        return "the sender's processor was busy: it may be the limit" if busy else ""
    mtu, datagram = (
        int(figures.positive(f"udp: {key}", conditions[key])) for key in ("mtu", "datagram")
    )
    if run.sent >= FILLED * carried(speed, mtu, datagram):
        return ""
    why = ", as its processor was busy" if busy else ""
    return f"the sender did not fill the link{why}: it is the limit, and not the network"
