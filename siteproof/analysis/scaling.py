"""What a sweep shows besides its curves: tasks on a node, fairness between ranks, model bounds.

A measured value is shown with the bound of what can be reached: rule 11 of Hoefler and Belli,
Scientific Benchmarking of Parallel Computing Systems, SC15. The rate of a window: Padhye, Firoiu,
Towsley and Kurose, Modeling TCP Throughput, SIGCOMM 98; the bandwidth-delay product: RFC 1072.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from statistics import median

from siteproof.analysis.plateau import EXACT, NEAR, Point

SAME_TASKS, SAME_NODES = "the same tasks", "the same nodes"


@dataclass(frozen=True)
class Loss:
    """What some tasks a node lose against one a node, as a share; negative is a gain.

    typical: the median over all places that both measured; worst: the largest, at so many tasks.
    """

    tasks_per_node: int
    typical: float
    worst: float
    worst_at: int
    places: int


@dataclass(frozen=True)
class Packing:
    """The most tasks on a node that lose at most 5 %, none of the fewer losing more.

    compared_at: the same tasks on fewer nodes, or the same nodes with more tasks. losses: of all
    numbers a node that were compared.
    """

    most: int
    compared_at: str
    losses: Sequence[Loss]


def packing(lines: Mapping[int, Sequence[Point]]) -> Packing | None:
    """How many tasks a node carries; None where nothing can be compared with one a node.

    lines: by tasks a node, the rate of all tasks together against their number. The same tasks are
    compared where any number a node has some; otherwise the same nodes.
    """
    alone = {int(p.x): p.median for p in lines.get(1, ()) if p.median > 0}
    more = {k: lines[k] for k in sorted(lines) if k > 1}
    for compared_at in (SAME_TASKS, SAME_NODES):
        losses = [
            loss
            for k, points in more.items()
            if (loss := _loss(k, points, alone, compared_at)) is not None
        ]
        if losses:
            return Packing(_most(losses), compared_at, losses)
    return None


def _loss(
    per_node: int, points: Sequence[Point], alone: Mapping[int, float], compared_at: str
) -> Loss | None:
    share = per_node if compared_at == SAME_NODES else 1
    lost = {
        int(p.x): 1 - p.median / alone[int(p.x) // share]
        for p in points
        if int(p.x) % share == 0 and int(p.x) // share in alone
    }
    if not lost:
        return None
    at = max(lost, key=lambda tasks: (lost[tasks], tasks))
    return Loss(per_node, median(lost.values()), lost[at], at, len(lost))


def _most(losses: Sequence[Loss]) -> int:
    """Up to the first that loses more than 5 % in the median."""
    most = 1
    for loss in losses:
        if loss.typical > NEAR + EXACT:
            break
        most = loss.tasks_per_node
    return most


def efficiency(rates: Mapping[int, Fraction]) -> dict[int, Fraction]:
    """By number of nodes, the rate of a node as a share of that on the smallest number of nodes.

    rates: above 0, of all nodes together. With the times T of a problem that stays the same this is
    T1 / (n Tn), and T1 / Tn where it grows with the nodes: Gustafson, Reevaluating Amdahl's Law,
    Communications of the ACM 31 (1988).
    """
    least = min(rates)
    return {n: rate * least / (n * rates[least]) for n, rate in sorted(rates.items())}


def fairness(slowest: Sequence[float], fastest: Sequence[float]) -> float | None:
    """The slowest rank's rate as a share of the fastest's, the median of the repetitions.

    A parallel maximum hides slow ranks. None without a repetition that has both.
    """
    shares = [low / high for low, high in zip(slowest, fastest, strict=True) if high > 0]
    return median(shares) if shares else None


@dataclass(frozen=True)
class Facts:
    """What is known of one point of a sweep; rates in bytes a second, times in seconds.

    client, server: the link of one node. link: the narrowest part between the two sides. window: in
    bytes, of one stream.
    """

    nodes: int = 1
    client: Fraction | None = None
    servers: int = 0
    server: Fraction | None = None
    link: Fraction | None = None
    round_trip: Fraction | None = None
    window: Fraction | None = None
    streams: int = 1


class Part(StrEnum):
    """What bounds a rate."""

    CLIENTS = "clients"
    SERVERS = "servers"
    LINK = "link"
    WINDOWS = "windows"


@dataclass(frozen=True)
class Bound:
    """What a part of the system can carry at most. count: of the part. rate: bytes a second."""

    part: Part
    count: int
    rate: Fraction


def bounds(facts: Facts) -> list[Bound]:
    """The bounds that the facts give, the tightest first."""
    found = []
    if facts.client:
        found.append(Bound(Part.CLIENTS, facts.nodes, facts.nodes * facts.client))
    if facts.servers and facts.server:
        found.append(Bound(Part.SERVERS, facts.servers, facts.servers * facts.server))
    if facts.link:
        found.append(Bound(Part.LINK, 1, facts.link))
    if facts.window and facts.round_trip:
        rate = facts.streams * facts.window / facts.round_trip
        found.append(Bound(Part.WINDOWS, facts.streams, rate))
    return sorted(found, key=lambda bound: bound.rate)


def bandwidth_delay(rate: Fraction, round_trip: Fraction) -> Fraction:
    """The bytes under way that fill a path; rate in bytes a second, round trip in seconds."""
    return rate * round_trip
