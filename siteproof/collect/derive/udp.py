"""UDP: as fast as it goes, and in bursts; whether sender and receiver kept up.

UDP has no flow control: what a busy receiver does not fetch in time is lost, although the network
has carried it. Losses of bursts count where these were sent at the requested rate: nuttcp 6.1.2
sends a thousandth of it, loses nothing and exits with 0; and a sender that does not get its
processor in time sends no bursts either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from siteproof import units
from siteproof.collect.derive import Derived, Limit, Limitation, Measured
from siteproof.collect.derive.tcp import AROUND
from siteproof.errors import OutputError
from siteproof.parsers import Reading, values

BUSY = 90  # % of a core: the rest is lost between two looks at the clock
KEPT = ("program", "version", "mtu", "window_warning")  # what all runs of both programs have
OF_A_JOB = ("burst", "datagram", "duration", "window")
FILLED = Fraction(95, 100)  # of what the link carries: less, and the sender is the limit
METRICS = ("throughput", "sent", "loss", "cpu_sender", "cpu_receiver")
REQUESTED_MBPS = 300  # Mb/s: the -Ri300m of the contracts' commands
NEAR = Fraction(5, 100)  # by which the rate may miss


@dataclass(frozen=True)
class UdpResult:
    """What one run gave: its readings by metric, and its dimensions (siteproof/checks/udp.py)."""

    dims: Mapping[str, str]
    readings: Mapping[str, Reading]

    @property
    def conditions(self) -> dict[str, str]:
        """What it was measured with; a window of 0 is the host's default."""
        found = {key: self.dims[key] for key in OF_A_JOB}
        if found["window"] == "0":
            found["window"] = "default"
        return found

    @property
    def sent(self) -> Fraction:
        """The sender's rate in b/s."""
        reading = self.readings["sent"]
        return units.convert(Decimal(reading.value), reading.unit, "b/s")

    def share(self, metric: str) -> Decimal:
        """A share in %, as printed."""
        return Decimal(self.readings[metric].value)


def by_run(readings: Sequence[Reading]) -> list[UdpResult]:
    """The runs in the order of time. Raises OutputError where a run lacks a dimension."""
    found: dict[str, list[Reading]] = {}
    for reading in readings:
        if missing := sorted({"kind", *OF_A_JOB} - set(reading.dims)):
            raise OutputError(f"udp: a run without {', '.join(missing)}")
        found.setdefault(str(sorted(reading.dims.items())), []).append(reading)
    return [UdpResult(rows[0].dims, {row.metric: row for row in rows}) for rows in found.values()]


def of_all_runs(given: Mapping[str, str]) -> dict[str, str]:
    """What is true of all runs, whichever program made them."""
    return {key: given[key] for key in KEPT if key in given}


def of_receiver(runs: Sequence[UdpResult]) -> Limitation | None:
    """Set if datagrams were lost, and the receiver is the reason, or the reason is unknown."""
    losing = [run for run in runs if run.share("loss") > 0]
    if any(run.dims.get("discarded", "0") != "0" for run in losing):
        return Limitation(Limit.RECEIVER_SOCKET)
    if any(run.share("cpu_receiver") >= BUSY for run in losing):
        return Limitation(Limit.RECEIVER_MAY_BE)
    if any("discarded" not in run.dims for run in losing):
        return Limitation(Limit.DISCARDED_UNKNOWN)
    return None


def udp_bandwidth(given: Measured) -> Derived:
    """The values of the one run; warnings where an end, and not the network, is the limit."""
    runs = by_run(given.readings)
    run = values.only("udp", "runs", runs)
    conditions = {**of_all_runs(given.conditions), **run.conditions}
    del conditions["burst"]
    if limitation := _limit_of_sender(run, conditions, Fraction(given.fact("speed", "0"))):
        conditions["sender_warning"] = str(limitation)
    if limitation := of_receiver(runs):
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
    busy = run.share("cpu_sender") >= BUSY
    if not speed or "mtu" not in conditions:
        return Limitation(Limit.SENDER_MAY_BE) if busy else None
    mtu = int(values.positive("udp: mtu", conditions["mtu"]))
    datagram = int(values.positive("udp: datagram", conditions["datagram"]))
    if run.sent >= FILLED * carried(speed, mtu, datagram):
        return None
    return Limitation(Limit.SENDER_BUSY if busy else Limit.SENDER)


def udp_burst(given: Measured) -> Derived:
    """loss_small, loss_large (%), and largest_lossless (packets) with its burst_bound.

    Raises OutputError: `invalid` where the small or large bursts were not sent as requested.
    """
    runs = by_run(given.readings)
    conditions = of_all_runs(given.conditions)
    conditions["rate"] = f"{REQUESTED_MBPS} Mb/s"
    found = []
    for kind in ("small", "large"):
        of_kind = [run for run in runs if run.dims["kind"] == kind]
        if not of_kind:
            raise OutputError(f"udp: no run of {kind} bursts")
        run = of_kind[0]
        if not _at_requested_rate(run):
            raise OutputError(str(_wrong_rate(run)), "invalid")
        found.append(replace(run.readings["loss"], metric=f"loss_{kind}", dims=run.conditions))
    ladder = [run for run in runs if run.dims["kind"] in ("large", "step")]
    tried = _until_off_rate(ladder)
    bound = given.conditions.get("burst_bound", "")
    if len(tried) < len(ladder):
        conditions["burst_warning"] = str(_wrong_rate(ladder[len(tried)]))
        bound = tried[-1].dims["burst"]
    if not bound.isdecimal():
        raise OutputError(f"udp: burst_bound '{bound}' is not a whole number of packets")
    if limitation := of_receiver(runs):
        conditions["receiver_warning"] = str(limitation)
    return [*found, _largest(tried, bound)], conditions


def _at_requested_rate(run: UdpResult) -> bool:
    return abs(run.sent / 10**6 / REQUESTED_MBPS - 1) <= NEAR


def _wrong_rate(run: UdpResult) -> Limitation:
    rate = f"{float(run.sent / 10**6):.1f}"
    details = {"burst": run.dims["burst"], "rate": rate, "expected": str(REQUESTED_MBPS)}
    return Limitation(Limit.BURST_RATE, details)


def _until_off_rate(ladder: Sequence[UdpResult]) -> Sequence[UdpResult]:
    """The bursts before the first that could not be sent as requested, or up to the first loss."""
    for number, run in enumerate(ladder):
        if not _at_requested_rate(run):
            return ladder[:number]
        if run.share("loss") > 0:
            break
    return ladder


def _largest(ladder: Sequence[UdpResult], bound: str) -> Reading:
    """The largest of ever larger bursts before the first loss; 0 where the first lost something.

    bound: the largest that would have been tried. A value that equals it only shows that nothing
    was lost so far.
    """
    largest = "0"
    for run in ladder:
        if run.share("loss") > 0:
            break
        largest = run.dims["burst"]
    conditions = ladder[0].conditions
    dims = {"datagram": conditions["datagram"], "window": conditions["window"]}
    return Reading("largest_lossless", Decimal(largest), "packets", {**dims, "burst_bound": bound})
