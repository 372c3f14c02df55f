"""What a measured curve shows: its peak, where it becomes flat, and where it falls again.

Repetitions are reported by their median and range, not by a mean: Hoefler and Belli, Scientific
Benchmarking of Parallel Computing Systems, SC15. The standard error of a median is that of a mean
times sqrt(pi / 2): Kenney and Keeping, Mathematics of Statistics (1962). What the rules find on
curves whose truth is known: benchmarks/plateau.py.

What a sweep shows besides its curves: tasks on a node, fairness between ranks, model bounds.

A measured value is shown with the bound of what can be reached: rule 11 of Hoefler and Belli,
Scientific Benchmarking of Parallel Computing Systems, SC15. The rate of a window: Padhye, Firoiu,
Towsley and Kurose, Modeling TCP Throughput, SIGCOMM 98; the bandwidth-delay product: RFC 1072.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from itertools import pairwise
from statistics import fmean, mean, median

FEWEST_POINTS = 4  # points: fewer than three parameters and one more fit anything
JOIN = 3  # parameters that a join counts for: as one, it is seen on one straight line in ten
LEAST_RISE = 0.05  # of the slope: 1 is twice the rate with twice the tasks
TINY = 1e-12  # what arithmetic leaves of a residual of zero


@dataclass(frozen=True)
class _Line:
    start: float
    slope: float
    residual: float


def fit(xs: Sequence[float], ys: Sequence[float]) -> float | None:
    """The break of a curve that rises and is then flat; None where one line describes it as well.

    xs: ascending, different. ys: the medians. Points where either is not above 0 have no logarithm
    and do not count.
    """
    kept = [(math.log2(x), math.log2(y)) for x, y in zip(xs, ys, strict=True) if x > 0 and y > 0]
    if len(kept) < FEWEST_POINTS:
        return None
    ts, vs = [t for t, _ in kept], [v for _, v in kept]
    single = _line(ts, vs)
    best = min(((_bent(ts, vs, c), c) for c in _candidates(ts, vs)), key=lambda f: f[0].residual)
    hinge, at = best
    if hinge.slope < LEAST_RISE or at >= ts[-1] or not _worth_it(hinge, single, len(ts)):
        return None
    return float(2**at)


def _candidates(ts: Sequence[float], vs: Sequence[float]) -> Iterator[float]:
    """Where the best join may lie: at a point, or where line and mean of a division meet."""
    yield from ts[1:]
    for cut in range(2, len(ts)):
        rising = _line(ts[:cut], vs[:cut])
        if rising.slope > 0:
            at = (fmean(vs[cut:]) - rising.start) / rising.slope
            if ts[cut - 1] <= at <= ts[cut]:
                yield at


def _bent(ts: Sequence[float], vs: Sequence[float], at: float) -> _Line:
    """The best line of which all beyond `at` is level."""
    return _line([min(t, at) for t in ts], vs)


def _line(ts: Sequence[float], vs: Sequence[float]) -> _Line:
    centre, level = fmean(ts), fmean(vs)
    width = sum((t - centre) ** 2 for t in ts)
    slope = sum((t - centre) * (v - level) for t, v in zip(ts, vs, strict=True)) / width
    start = level - slope * centre
    return _Line(
        start, slope, sum((v - start - slope * t) ** 2 for t, v in zip(ts, vs, strict=True))
    )


def _worth_it(hinge: _Line, single: _Line, count: int) -> bool:
    """Schwarz's criterion, with the join counted for more than the one parameter that it is."""
    gain = count * math.log((single.residual + TINY) / (hinge.residual + TINY))
    return gain > JOIN * math.log(count)


NEAR = 0.05  # of the peak: a point that is so close to it has reached it
CREEP = math.log2(1.02)  # the least slope of a line that never becomes level: 2 % a doubling
EXACT = 1e-9  # of a value: what binary fractions leave of an equality
ERRORS = 3  # standard errors by which a fall must exceed the noise
DOUBT = 2  # standard errors of which 5 % must be more: with less the plateau is a rough one
MEDIAN_ERROR = math.sqrt(math.pi / 2)  # standard error of a median as a multiple of a mean's
FEWEST = 2  # repetitions; of fewer the noise is not known


@dataclass(frozen=True)
class Point:
    """All repetitions at one place of the axis. values: finite, of one unit."""

    x: float
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.values or not all(map(math.isfinite, (self.x, *self.values))):
            raise ValueError(f"no finite values at {self.x}")

    @property
    def median(self) -> float:
        """The middle of the repetitions."""
        return median(self.values)

    @property
    def low(self) -> float:
        """The lowest repetition."""
        return min(self.values)

    @property
    def high(self) -> float:
        """The highest repetition."""
        return max(self.values)


@dataclass(frozen=True)
class At:
    """A place on the axis that was found."""

    x: float

    def __str__(self) -> str:
        return f"{self.x:g}"


@dataclass(frozen=True)
class Beyond:
    """A place beyond everything that was measured: censored, not a number."""

    last: float

    def __str__(self) -> str:
        return f">{self.last:g}"


@dataclass(frozen=True)
class Nowhere:
    """There is no such place."""

    def __str__(self) -> str:
        return "none"


class Why(StrEnum):
    """Why something cannot be decided from what was measured."""

    NOTHING_CARRIED = "nothing_carried"
    NO_DOUBLING = "no_doubling"
    ONE_REPETITION = "one_repetition"
    FEW_POINTS = "few_points"


@dataclass(frozen=True)
class Unknown:
    """It cannot be decided from what was measured."""

    why: Why


Place = At | Beyond | Unknown
Decline = At | Nowhere | Unknown


@dataclass(frozen=True)
class CurveShape:
    """What one curve shows. noise: coefficient of variation; None with one repetition a point.

    plateau: the smallest x with 95 % of the best median of any larger x. fit: where a rising and a
    flat line meet; None where two lines describe the curve no better than one does.
    gain: of the last doubling, a share; None where the points span none. doubtful: noise may be
    larger than the 5 % that decide the plateau.
    """

    peak: Point
    plateau: Place
    fit: float | None
    decline: Decline
    noise: float | None
    gain: float | None
    doubtful: bool


def points(values: Mapping[float, Iterable[float]]) -> list[Point]:
    """The points of a curve in the order of the axis. Raises ValueError for what is not finite."""
    return sorted((Point(x, tuple(repeated)) for x, repeated in values.items()), key=lambda p: p.x)


def find(curve: Sequence[Point]) -> CurveShape:
    """What a curve shows where a higher value is better. curve: ordered, not empty."""
    top, falls = peak(curve), decline(curve)
    before = [p for p in curve if not isinstance(falls, At) or p.x < falls.x]
    return CurveShape(
        top,
        plateau(curve),
        fit([p.x for p in before], [p.median for p in before]),
        falls,
        noise(curve),
        last_gain(curve),
        doubtful(curve),
    )


def peak(curve: Sequence[Point]) -> Point:
    """The highest median; of equal ones the first."""
    return max(curve, key=lambda p: (p.median, -p.x))


def plateau(curve: Sequence[Point]) -> Place:
    """The smallest x within 5 % of the peak; beyond the last where the curve still rises there.

    It still rises if the last point is the peak and the last doubling gained more than 5 %, or if
    all of it is one line, which no level part describes better, and that gains 2 % a doubling. To
    ask for 95 % of the peak, or of the best median of any larger x, is the same.
    """
    top = peak(curve)
    if top.median <= 0:
        return Unknown(Why.NOTHING_CARRIED)
    if _rises_throughout(curve):
        return Beyond(curve[-1].x)
    if top is curve[-1]:
        gain = last_gain(curve)
        if gain is None:
            return Unknown(Why.NO_DOUBLING)
        if gain > NEAR + EXACT:
            return Beyond(top.x)
    return At(next(p.x for p in curve if p.median >= (1 - NEAR - EXACT) * top.median))


def _rises_throughout(curve: Sequence[Point]) -> bool:
    """Whether all of it is one rising line, clearly so: by three standard errors of its slope."""
    kept = [p for p in curve if p.x > 0 and p.median > 0]
    if len(kept) < FEWEST_POINTS:
        return False
    ts, vs = [math.log2(p.x) for p in kept], [math.log2(p.median) for p in kept]
    line, centre = _line(ts, vs), fmean(ts)
    width = sum((t - centre) ** 2 for t in ts)
    error = math.sqrt(line.residual / (len(ts) - 2) / width)
    clear = line.slope >= max(CREEP, ERRORS * error) and vs[-1] - vs[0] > 0
    return clear and all(_bent(ts, vs, at).residual > line.residual for at in ts[1:-1])


def last_gain(curve: Sequence[Point]) -> float | None:
    """What the last doubling of x gained, as a share; None where the points do not span one.

    Between two points the curve is a straight line of log2 and log2.
    """
    last = curve[-1]
    half = last.x / 2
    if curve[0].x <= 0 or half < curve[0].x:
        return None
    before = _between(curve, half)
    return last.median / before - 1 if before > 0 else math.inf


def _between(curve: Sequence[Point], x: float) -> float:
    """The median at x, which lies among the points."""
    for left, right in pairwise(curve):
        if left.x <= x <= right.x:
            if min(left.median, right.median) <= 0:
                return left.median
            share = math.log(x / left.x) / math.log(right.x / left.x)
            return left.median * math.pow(right.median / left.median, share)
    raise ValueError(f"{x} lies outside of the curve")


def decline(curve: Sequence[Point]) -> Decline:
    """The first point after the peak from which all medians lie clearly below it.

    Clearly: by 5 %, and by three standard errors of the difference of two medians of n
    repetitions, CV sqrt(pi/2) sqrt(2/n). n: the fewest at the peak and after it.
    """
    top = peak(curve)
    after = [p for p in curve if p.x > top.x]
    if top.median <= 0 or not _tail(after, (1 - NEAR) * top.median):
        return Nowhere()
    spread = noise(curve)
    if spread is None:
        return Unknown(Why.ONE_REPETITION)
    fewest = min(len(p.values) for p in (top, *after))
    limit = max(NEAR, ERRORS * _error(spread, fewest))
    fallen = _tail(after, (1 - limit) * top.median)
    return At(fallen[0].x) if fallen else Nowhere()


def _tail(after: Sequence[Point], limit: float) -> list[Point]:
    """The last points, as many as lie below the limit without a break."""
    kept: list[Point] = []
    for point in reversed(after):
        if point.median >= limit:
            break
        kept.insert(0, point)
    return kept


def noise(curve: Iterable[Point]) -> float | None:
    """The coefficient of variation, pooled over all points with two repetitions or more."""
    squares, degrees = 0.0, 0
    for point in curve:
        centre = mean(point.values)
        if len(point.values) >= FEWEST and centre > 0:
            squares += sum((v / centre - 1) ** 2 for v in point.values)
            degrees += len(point.values) - 1
    return math.sqrt(squares / degrees) if degrees else None


def doubtful(curve: Sequence[Point]) -> bool:
    """Whether two medians differ by noise alone by as much as decides the plateau."""
    spread = noise(curve)
    fewest = min(len(p.values) for p in curve)
    return spread is not None and DOUBT * _error(spread, fewest) > NEAR


def _error(spread: float, repetitions: int) -> float:
    """The standard error of the difference of two medians, as a share."""
    return MEDIAN_ERROR * spread * math.sqrt(2 / repetitions)


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
