"""UDP as fast as it goes: whether the sender can fill the link, and the receiver keep up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from siteproof.derive import Derived, Given, udp_limits
from siteproof.derive.limitations import Limit, Limitation
from siteproof.derive.tcp_bandwidth import AROUND
from siteproof.derive.udp_limits import UdpResult
from siteproof.errors import OutputError
from siteproof.parsers import values

FILLED = Fraction(95, 100)  # of what the link carries: less, and the sender is the limit
METRICS = ("throughput", "sent", "loss", "cpu_sender", "cpu_receiver")


def derive(given: Given) -> Derived:
    """The values of the one run; warnings where an end, and not the network, is the limit."""
    runs = udp_limits.by_run(given.readings)
    if len(runs) != 1:
        raise OutputError(f"udp: {len(runs)} runs where one is expected")
    (run,) = runs
    conditions = {**udp_limits.conditions(given.conditions), **run.conditions}
    del conditions["burst"]
    if limitation := _limit_of_sender(run, conditions, Fraction(given.fact("speed", "0"))):
        conditions["sender_warning"] = str(limitation)
    if limitation := udp_limits.of_receiver(runs):
        conditions["receiver_warning"] = str(limitation)
    found = [replace(run.readings[name], dims={}) for name in METRICS if name in run.readings]
    return found, conditions


def carried(speed: Fraction, mtu: int, datagram: int) -> Fraction:
    """The b/s of UDP's payload that Ethernet of that speed carries, one datagram a packet."""
    return speed * datagram / (mtu + AROUND)


def _limit_of_sender(
    run: UdpResult, conditions: Mapping[str, str], speed: Fraction
) -> Limitation | None:
    """Set if less was sent than the link carries, or may have been."""
    busy = run.share("cpu_sender") >= udp_limits.BUSY
    if not speed or "mtu" not in conditions:
        return Limitation(Limit.SENDER_MAY_BE) if busy else None
    mtu = int(values.positive("udp: mtu", conditions["mtu"]))
    datagram = int(values.positive("udp: datagram", conditions["datagram"]))
    if run.sent >= FILLED * carried(speed, mtu, datagram):
        return None
    return Limitation(Limit.SENDER_BUSY if busy else Limit.SENDER)
