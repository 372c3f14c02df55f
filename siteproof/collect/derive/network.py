"""Between nodes: TCP, UDP and its bursts, latency, the MTU, messages of MPI, and RDMA.

A full-size TCP segment of a packet of MTU bytes carries MTU - 52 (IPv4 20, TCP 20, time stamps 12)
and takes MTU + 38 on Ethernet (header 14, check 4, preamble 8, gap 12; IEEE 802.3): 9.415 Gb/s of
10 at an MTU of 1500, 9.900 at 9000.

UDP has no flow control: what a busy receiver does not fetch in time is lost, although the network
has carried it. Losses of bursts count where these were sent at the requested rate: nuttcp 6.1.2
sends a thousandth of it, loses nothing and exits with 0; and a sender that does not get its
processor in time sends no bursts either.

What a link carries while all of its pairs run: the mean of their sum, the best second, fairness.

A tool prints in whole seconds when a run began (iperf3 3.12), so a pair's intervals may truly lie
up to UNKNOWN later than printed, each pair's by another part of it. Therefore a second at either
end of the time that all have in common does not count, and what counts was moved while all ran. It
also means that a "second" of two pairs may lie up to a second apart: the peak of rates that swing
faster than that is too high or too low. That the clients' clocks agree is assumed (NTP).

Fairness: Jain, Chiu and Hawe, A Quantitative Measure of Fairness and Discrimination for Resource
Allocation in Shared Computer Systems, DEC-TR-301 (1984): 1 if all are alike, 1/n if one has it all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import takewhile
from statistics import median
from typing import cast

from siteproof import units
from siteproof.analysis.plateau import bandwidth_delay
from siteproof.collect.derive import Derived, Measured, in_microseconds, must_be
from siteproof.errors import OutputError
from siteproof.parsers import Reading, count, ping, values
from siteproof.parsers.iperf3 import Interval
from siteproof.parsers.rdma_ports import ERRORS
from siteproof.record.pair_units import FROM, TO

HEADERS, AROUND = 52, 38  # bytes
OF_A_JOB = ("reverse", "protocol", "omit", "block")  # dimensions hold the same
SWEPT = {"throughput": "rate", "retransmits": "retransmits"}
BUFFERS = ("rmem_max", "wmem_max")
SILENT_LOSS = "larger packets are lost without an error message, which can stall TCP"


def tcp_bandwidth(given: Measured) -> Derived:
    """Add `share_of_link` (%) where the site knows the link's speed; warn of small buffers."""
    conditions = {key: value for key, value in given.conditions.items() if key not in OF_A_JOB}
    readings = list(given.readings)
    mtu = given.fact("mtu", conditions.get("mtu", ""))
    speed = Fraction(given.fact("speed", "0"))
    if speed and mtu:
        size = int(values.number("tcp: mtu", mtu))
        if size <= HEADERS:
            raise OutputError(f"tcp: an MTU of {size} bytes holds no segment")
        most = goodput(speed, size)
        for reading in given.readings:
            if reading.metric == "throughput":
                share = units.convert(Decimal(reading.value), reading.unit, "b/s") / most
                readings.append(Reading("share_of_link", _percent(share), "%", reading.dims))
    round_trip = Fraction(given.fact("round_trip", "0"))
    if warning := _small_buffers(conditions, int(bandwidth_delay(speed / 8, round_trip))):
        conditions["window_warning"] = warning
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


def _percent(share: Fraction) -> Decimal:
    return Decimal(f"{float(share) * 100:.2f}")


def _small_buffers(conditions: Mapping[str, str], under_way: int) -> str:
    """Set if a socket cannot hold what is under way: bandwidth by round trip, in bytes."""
    texts = [conditions.get(key, "") for key in BUFFERS]
    limits = [int(text) for text in texts if text.isdecimal() and len(text) < 20]
    if not limits or min(limits) >= under_way:
        return ""
    return (
        f"TCP buffers of at most {min(limits)} bytes, the path holds {under_way}: one stream "
        "cannot fill it"
    )


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
    found = []
    for reading in map(in_microseconds, given.readings):
        metric = "tcp" if reading.dims.get("test") == "tcp_lat" else reading.metric
        found.append(replace(reading, metric=metric, dims={}))
    return found, {**given.conditions, **ping.conditions(run.stdout)}


def path_mtu(given: Measured) -> Derived:
    """Add `device` (B), the MTU of the client's own device, where the client knows it.

    What a path does with larger packets, and what the client has, are warnings and no conditions.
    """
    conditions = {key: value for key, value in given.conditions.items() if key not in BUFFERS}
    own, promised = conditions.pop("mtu", ""), given.fact("mtu", "")
    if conditions.pop("silent", "no") == "yes":
        conditions["silent_warning"] = SILENT_LOSS
    if not own:
        return given.readings, conditions
    device = values.positive("path_mtu: the device's MTU", own)
    if promised and device < Decimal(promised):
        conditions["device_warning"] = f"the client's own MTU is {own}, expected {promised}"
    return [*given.readings, Reading("device", device, "B")], conditions


BUSY = 90  # % of a core: the rest is lost between two looks at the clock
KEPT = ("program", "version", "mtu", "window_warning")  # what all runs of both programs have
OF_A_RUN = ("burst", "datagram", "duration", "window")
FILLED = Fraction(95, 100)  # of what the link carries: less, and the sender is the limit
UDP = ("throughput", "sent", "loss", "cpu_sender", "cpu_receiver")
REQUESTED_MBPS = 300  # Mb/s: the -Ri300m of the contracts' commands
NEAR = Fraction(5, 100)  # by which the rate may miss
# What limits a run. Without numbers: a report prints the same sentence once for many nodes.
SENDER_MAY_BE = "the sender's processor was busy: it may be the limit"
SENDER = "the sender did not fill the link{}: it is the limit, and not the network"
RECEIVER_SOCKET = (
    "datagrams came through the network and found the receiver's socket full: the loss is not the "
    "network's alone"
)
RECEIVER_MAY_BE = "datagrams were lost while the receiver's processor was busy: it may be the limit"
DISCARDED_UNKNOWN = "the number of lost datagrams that the receiver itself discarded is not known"


@dataclass(frozen=True)
class UdpResult:
    """What one run gave: its readings by metric, and its dimensions (checks/per_pair.py)."""

    dims: Mapping[str, str]
    readings: Mapping[str, Reading]

    @property
    def conditions(self) -> dict[str, str]:
        """What it was measured with; a window of 0 is the host's default."""
        window = "default" if self.dims["window"] == "0" else self.dims["window"]
        return {key: self.dims[key] for key in OF_A_RUN} | {"window": window}

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
        if missing := sorted({"kind", *OF_A_RUN} - set(reading.dims)):
            raise OutputError(f"udp: a run without {', '.join(missing)}")
        found.setdefault(str(sorted(reading.dims.items())), []).append(reading)
    return [UdpResult(rows[0].dims, {row.metric: row for row in rows}) for rows in found.values()]


def _of_all_runs(given: Measured) -> dict[str, str]:
    return {key: given.conditions[key] for key in KEPT if key in given.conditions}


def of_receiver(runs: Sequence[UdpResult]) -> str:
    """Set if datagrams were lost, and the receiver is the reason, or the reason is unknown."""
    losing = [run for run in runs if run.share("loss") > 0]
    if any(run.dims.get("discarded", "0") != "0" for run in losing):
        return RECEIVER_SOCKET
    if any(run.share("cpu_receiver") >= BUSY for run in losing):
        return RECEIVER_MAY_BE
    if any("discarded" not in run.dims for run in losing):
        return DISCARDED_UNKNOWN
    return ""


def udp_bandwidth(given: Measured) -> Derived:
    """The values of the one run; warnings where an end, and not the network, is the limit."""
    runs = by_run(given.readings)
    run = values.only("udp", "runs", runs)
    conditions = {**_of_all_runs(given), **run.conditions}
    del conditions["burst"]
    if warning := _of_sender(run, conditions, Fraction(given.fact("speed", "0"))):
        conditions["sender_warning"] = warning
    if warning := of_receiver(runs):
        conditions["receiver_warning"] = warning
    found = [replace(run.readings[name], dims={}) for name in UDP if name in run.readings]
    return found, conditions


def _of_sender(run: UdpResult, conditions: Mapping[str, str], speed: Fraction) -> str:
    """Set if less was sent than the link carries, or may have been."""
    busy = run.share("cpu_sender") >= BUSY
    if not speed or "mtu" not in conditions:
        return SENDER_MAY_BE if busy else ""
    mtu = int(values.positive("udp: mtu", conditions["mtu"]))
    datagram = int(values.positive("udp: datagram", conditions["datagram"]))
    carried = speed * datagram / (mtu + AROUND)  # of Ethernet in b/s, a datagram a packet
    if run.sent >= FILLED * carried:
        return ""
    return SENDER.format(", as its processor was busy" if busy else "")


def udp_burst(given: Measured) -> Derived:
    """loss_small, loss_large (%), and largest_lossless (packets) with its burst_bound.

    Raises OutputError: `invalid` where the small or large bursts were not sent as requested.
    """
    runs = by_run(given.readings)
    conditions = _of_all_runs(given)
    conditions["rate"] = f"{REQUESTED_MBPS} Mb/s"
    found = []
    for kind in ("small", "large"):
        of_kind = [run for run in runs if run.dims["kind"] == kind]
        if not of_kind:
            raise OutputError(f"udp: no run of {kind} bursts")
        run = of_kind[0]
        if not _at_requested_rate(run):
            raise OutputError(_wrong_rate(run), "invalid")
        found.append(replace(run.readings["loss"], metric=f"loss_{kind}", dims=run.conditions))
    ladder = [run for run in runs if run.dims["kind"] in ("large", "step")]
    largest, warning = _climbed(ladder)
    bound = given.conditions.get("burst_bound", "")
    if warning:
        conditions["burst_warning"], bound = warning, largest
    if not bound.isdecimal():
        raise OutputError(f"udp: burst_bound '{bound}' is not a whole number of packets")
    if warning := of_receiver(runs):
        conditions["receiver_warning"] = warning
    # A value that equals its bound only shows that nothing was lost so far.
    dims = {key: ladder[0].conditions[key] for key in ("datagram", "window")}
    dims["burst_bound"] = bound
    found.append(Reading("largest_lossless", Decimal(largest), "packets", dims))
    return found, conditions


def _climbed(ladder: Sequence[UdpResult]) -> tuple[str, str]:
    """The largest burst before the first loss; and why no larger one counts, if not for a loss."""
    good = list(takewhile(lambda run: _at_requested_rate(run) and run.share("loss") == 0, ladder))
    largest, after = good[-1].dims["burst"] if good else "0", ladder[len(good) :]
    return largest, _wrong_rate(after[0]) if after and not _at_requested_rate(after[0]) else ""


def _at_requested_rate(run: UdpResult) -> bool:
    return abs(run.sent / 10**6 / REQUESTED_MBPS - 1) <= NEAR


def _wrong_rate(run: UdpResult) -> str:
    rate = f"{float(run.sent / 10**6):.1f} Mb/s, expected {REQUESTED_MBPS} Mb/s"
    return f"bursts of {run.dims['burst']} packets were sent at {rate}"


_RANK = re.compile(r"^rank ([0-9]{1,9}) on (\S{1,200})$", re.MULTILINE)
MESSAGES = ("latency", "bandwidth")


def mpi_ping_pong(given: Measured) -> Derived:
    """latency (us) of the smallest and bandwidth of the largest size; *_by_size of each.

    facts: smallest and largest, in bytes. Raises OutputError: `invalid` if rank 0 was not on the
    client or rank 1 not on the server.
    """
    conditions = dict(given.conditions)
    server = conditions.pop("server", "")
    client = given.raw.meta.get("node", "")
    for run in given.raw.runs:
        if client == server:
            raise OutputError(f"client and server are both {client}", "invalid")
        must_run_on(run.stdout, client, server)
    each = [in_microseconds(reading) for reading in given.readings]
    by_size = [
        Reading(f"{r.metric}_by_size", r.value, r.unit, {"size": r.dims["size"]}) for r in each
    ]
    smallest, largest = given.fact("smallest"), given.fact("largest")
    conditions |= {"latency_size": smallest, "bandwidth_size": largest}
    found = [_at(each, "latency", smallest), _at(each, "bandwidth", largest), *by_size]
    return found, conditions


def must_run_on(text: str, first: str, second: str) -> None:
    """Raises OutputError unless ranks 0 and 1 ran on these nodes; each prints its own before."""
    ranks = sorted(set(_RANK.findall(text)))
    found = ", ".join(f"{rank} on {node}" for rank, node in ranks)
    must_be("ranks", found or "none", f"0 on {first}, 1 on {second}")


def _at(readings: list[Reading], metric: str, size: str) -> Reading:
    """The value of one size, without the dimension. Raises OutputError."""
    found = [r for r in readings if r.metric == metric and r.dims["size"] == size]
    must_be(f"values of {metric} at {size} bytes", len(found), 1, "parse")
    return Reading(metric, found[0].value, found[0].unit)


def message_sweep(given: Measured) -> Derived:
    """latency (us) and bandwidth (MB/s) of each size, with the dimension `size`.

    facts: tasks_per_node of the point; conditions: its nodes, which are no condition of the value.
    Raises OutputError: `invalid` if the ranks ran elsewhere.
    """
    conditions = dict(given.conditions)
    nodes = conditions.pop("nodes", "").split()
    one_a_node = given.fact("tasks_per_node", "1") == "1"
    needed = 2 if one_a_node else 1
    if len(nodes) < needed:
        raise OutputError(f"two ranks on {len(nodes)} nodes, expected {needed}", "invalid")
    for run in given.raw.runs:
        must_run_on(run.stdout, nodes[0], nodes[needed - 1])
    each = [in_microseconds(reading) for reading in given.readings]
    found = [replace(r, dims={"size": r.dims["size"]}) for r in each if r.metric in MESSAGES]
    return found, conditions


def collectives(given: Measured) -> Derived:
    """The readings of ranks that ran as placed. facts: tasks and tasks_per_node of the point."""
    for run in given.raw.runs:
        ranks_on(run.stdout, int(given.fact("tasks")), int(given.fact("tasks_per_node", "1")))
    return given.readings, dict(given.conditions)


def ranks_on(text: str, tasks: int, per_node: int) -> dict[int, str]:
    """The node of each rank; each prints its own before.

    Raises OutputError: `invalid` unless each ran once, and on as many nodes as requested.
    """
    lines = _RANK.findall(text)
    found = {int(rank): node for rank, node in lines}
    must_be("ranks", len(lines), tasks)
    must_be("ranks that differ, from 0 on", len(found.keys() & set(range(tasks))), tasks)
    must_be("nodes of the ranks", len(set(found.values())), -(-tasks // per_node))
    return found


def congestion(given: Measured) -> Derived:
    """The same; and with load as a multiple of without: latency_ratio, latency_p99_ratio (x), and
    bandwidth_ratio."""
    readings, conditions = collectives(given)
    values_at = {(r.metric, r.dims.get("load")): Decimal(r.value) for r in readings}
    for name in ("latency", "latency_p99", "bandwidth"):
        loaded, alone = values_at.get((name, "yes")), values_at.get((name, "no"))
        if loaded is not None and alone is not None:
            ratio = values.quotient(loaded, alone)
            readings = [*readings, Reading(f"{name}_ratio", ratio, "x")]
    return readings, conditions


def bisection(given: Measured) -> Derived:
    """bandwidth: what all pairs across the halves carry both ways, the median of the rounds; pair:
    of each pair one direction, from node to node (MB/s)."""
    _, conditions = collectives(given)
    nodes: dict[int, str] = {}
    for run in given.raw.runs:
        nodes |= ranks_on(run.stdout, int(given.fact("tasks")), 1)
    sums: dict[str, Decimal] = {}
    found = []
    for r in given.readings:
        if r.dims["kind"] == "across":
            number = r.dims["round"]
            sums[number] = sums.get(number, Decimal(0)) + 2 * Decimal(r.value)
        else:
            ends = {FROM: nodes[int(r.dims["a"])], TO: nodes[int(r.dims["b"])]}
            found.append(Reading("pair", r.value, r.unit, ends))
    return [Reading("bandwidth", median(sums.values()), "MB/s"), *found], conditions


RDMA = {  # by the names of the parser
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
    found = list(given.readings)
    for metric in ("rate", "width"):
        if each := [r for r in given.readings if r.metric == metric]:
            lowest = min(each, key=lambda r: Decimal(r.value))
            found.append(Reading(f"lowest_{metric}", lowest.value, lowest.unit))
    there = {r.dims["port"]: r for r in given.readings if r.metric in ("rate", "absent")}
    ports = sorted({r.dims["port"] for r in given.readings if "port" in r.dims})
    limits = {port: stated.get(port) or stated.get(port.rpartition("_")[0]) for port in ports}
    texts = {port: _below(there.get(port), limit) for port, limit in limits.items()}
    below = [Reading("below", text, "text", {"port": port}) for port, text in texts.items() if text]
    if any(limits.values()):
        found.append(count("ports_below", len(below)))
    return [*found, *below], dict(given.conditions)


def _below(there: Reading | None, limit: str | None) -> str:
    """The rate of a port, and what is stated of it; empty: it has no less, or none is stated."""
    has, runs_at = "not active" if there is None else "no such device", Fraction(0)
    if there and there.metric == "rate":
        has = f"{there.value} {there.unit}"
        runs_at = units.convert(Decimal(there.value), there.unit, "b/s")
    if runs_at >= Fraction(limit or 0):
        return ""
    return f"{has}, stated {float(units.convert(Fraction(limit or 0), 'b/s', 'Gb/s')):g} Gb/s"


def _errors(readings: Sequence[Reading]) -> dict[tuple[str, str], int]:
    """The errors counted, by port and counter."""
    return {
        (r.dims["port"], r.dims["counter"]): int(r.value)
        for r in readings
        if r.dims.get("counter") in ERRORS
    }


def rdma_write(given: Measured) -> Derived:
    """Bandwidths as printed, latencies in us (`latency` is the median); errors_grown (count).

    Raises OutputError where a run is missing or there are several.
    """
    named = {r.metric: r for r in given.readings if r.metric in RDMA}
    for metric in ("bandwidth", "typical"):
        must_be(f"values of {metric}", sum(r.metric == metric for r in given.readings), 1, "parse")
    found = [replace(r, metric=RDMA[name], dims={}) for name, r in named.items()]
    conditions = dict(given.conditions) | {
        "bandwidth_size": named["bandwidth"].dims["size"],
        "latency_size": named["typical"].dims["size"],
    }
    before, after = (_errors(given.of_phase(phase)) for phase in ("before", "after"))
    if before and after:  # not every device keeps counters
        # One that was reset meanwhile did not grow.
        grown = {at: max(0, number - before.get(at, number)) for at, number in after.items()}
        found.append(count("errors_grown", sum(grown.values())))
        found += [
            Reading("error_grown", Decimal(more), "count", {"port": port, "counter": counter})
            for (port, counter), more in grown.items()
            if more
        ]
    return found, conditions


UNKNOWN = 1  # seconds by which an interval may truly be later than printed
ENOUGH = Fraction(1, 2)  # of the shortest run: less in common is no measurement of all together
LONGEST = 86400  # seconds that any run may last
GAP = Fraction(1, 100)  # of a pair's time that its intervals may leave out


@dataclass(frozen=True)
class Together:
    """All pairs in the time that they share. seconds: its length; rates in b/s; fairness: to 1."""

    seconds: Fraction
    aggregate: Fraction
    peak_second: Fraction
    fairness: Fraction


def together(moved: Mapping[str, Sequence[Interval]]) -> Together:
    """All pairs together, from each pair's intervals. Raises OutputError.

    moved: by the pair's name; intervals in the order of time, by the client's clock.
    """
    runs = {name: _seconds(name, intervals) for name, intervals in moved.items()}
    begin = max(first for first, _ in runs.values()) + UNKNOWN
    end = min(last for _, last in runs.values()) - UNKNOWN
    shortest = min(last - first for first, last in runs.values())
    if end - begin < max(Fraction(1), ENOUGH * shortest):
        late = max(runs, key=lambda name: runs[name][0])
        raise OutputError(
            f"all {len(runs)} pairs ran together for {max(float(end - begin), 0):.1f} s of "
            f"{float(shortest):.1f} s only; the last to begin was {late}",
            "generic",
        )
    each = [_carried(intervals, begin, end) for intervals in moved.values()]
    total = sum(each)
    if not total:
        raise OutputError("nothing was moved while all pairs ran", "invalid")
    return Together(
        end - begin,
        total / (end - begin),
        max(_by_second(moved.values(), begin, int(end - begin))),
        jain(each),
    )


def jain(shares: Sequence[Fraction]) -> Fraction:
    """Jain's fairness index of what each has got; not all of them 0."""
    squares = sum((share**2 for share in shares), Fraction(0))
    return sum(shares, Fraction(0)) ** 2 / (len(shares) * squares)


def _seconds(name: str, intervals: Sequence[Interval]) -> tuple[Fraction, Fraction]:
    """When a pair's first interval begins and its last one ends. Raises OutputError."""
    if not intervals:
        raise OutputError(f"{name}: no interval counts", "invalid")
    first = Fraction(intervals[0].start)
    last = Fraction(intervals[-1].start) + Fraction(intervals[-1].seconds)
    total = sum(Fraction(row.seconds) for row in intervals)
    if not 0 < last - first <= LONGEST or abs(total - (last - first)) > GAP * (last - first):
        raise OutputError(f"{name}: its intervals do not follow each other", "invalid")
    return first, last


def _carried(intervals: Sequence[Interval], begin: Fraction, end: Fraction) -> Fraction:
    """The bits of a stretch of time; of an interval that reaches beyond, its part."""
    found = Fraction(0)
    for row in intervals:
        start, seconds = Fraction(row.start), Fraction(row.seconds)
        inside = min(end, start + seconds) - max(begin, start)
        if inside > 0:
            found += Fraction(row.bits) * inside / seconds
    return found


def _by_second(pairs: Iterable[Sequence[Interval]], begin: Fraction, count: int) -> list[Fraction]:
    """The bits of all pairs in each of so many seconds from `begin` on."""
    sums = [Fraction(0)] * count
    for intervals in pairs:
        for row in intervals:
            first = int(Fraction(row.start) - begin)
            last = int(Fraction(row.start) + Fraction(row.seconds) - begin)
            for number in range(max(0, first), min(count, last + 1)):
                sums[number] += _carried([row], begin + number, begin + number + 1)
    return sums
