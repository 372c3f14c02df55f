"""Which node explains the bad pairs, as sender, as receiver or as both, or which link.

A forward search (Hadi, Identifying Multiple Outliers in Multivariate Data, 1992): the better half
of the nodes is taken for good. Each other node, the better ones first, is compared with the pairs
of the good ones: its figure is the median of its own pairs with them, on the better side where
there are two, so that more than half must be bad. It is bad where it lacks more than the scatter
allows, else it is one of the good. So no node is accused for a bad peer, and a bad one widens no
limit. What is bad besides is a link.
All in logarithms: a pair's speed is that of its worse end, and a bad node takes a part of each.

Slow trunks and leaves: two parts of a network that are good inside and slow between them.

A cable or switch that carries all pairs between two sets of nodes makes all of these pairs slow,
and no node is at fault. Sets to look at: groups of the site, and every branch of the tree of an
average linkage (Sokal and Michener, 1958) of the pairs' rates, in which nodes across one slow trunk
are near each other. A block counts if its pairs are slower than those inside *either* set, by the
difference of two medians: nodes that are slow themselves are slow inside their set, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, exp, inf, isfinite, log, sqrt
from statistics import NormalDist, median

import numpy as np
from numpy.typing import NDArray

from siteproof.analysis import slow_nodes as rules
from siteproof.analysis.slow_nodes import (
    MAD_TO_SIGMA,
    MEDIAN_ERROR,
    MIN_DEFICIT,
    MIN_FLEET,
    RESOLUTION,
)
from siteproof.record.pair_units import grouped

FALSE_ALARM = 0.005  # wanted: the share of groups of pure noise in which anything is bad
# A pair: beyond z (Bonferroni) x (WIDER + PAIRS / n^2) robust sd of n pairs. Simulated: FALSE_ALARM
# of clean matrices of normal values, and .5 % of pairs whose loss is exponential or Student's t(3).
WIDER, PAIRS = 1.3, 55.0
MAY_BE_BAD = 20  # one pair of so many; the next one shows how long the tail is
ALONE = 0.25  # of the others' median: farther than they scatter, no count is too small
# A node: beyond LIMIT (1 + OWN / p) (1 + (OTHERS / n)^3) robust sd of n pairs of good nodes, with p
# pairs of its own; by all of its pairs, that over the root of 2; by those of one direction the last
# factor is squared. Simulated as above, also where nine tenths of the variance are of the nodes.
LIMIT, OWN, OTHERS = 3.3, 2.5, 6.7
# From MANY other nodes on, their figures show how far healthy ones differ: beyond z x
# (1 + FIGURES / n) of their robust sd.
MANY, FIGURES = 9, 20.0
ENOUGH = MIN_FLEET  # pairs; of fewer only a gross difference counts
ASYMMETRIC = 0.20  # the ExTENCI slides show 8 % between PSC and TACC
SIDES = SENDER, RECEIVER = "sender", "receiver"

Pair = tuple[str, str]  # sender, receiver
Numbers = NDArray[np.intp]


@dataclass(frozen=True)
class Culprit:
    """A node that explains bad pairs. sides: SENDER, RECEIVER or both; none without direction.

    deficit: of the median over its pairs, against the other nodes'. peers: how many.
    """

    node: str
    sides: tuple[str, ...]
    deficit: float
    peers: int

    def has(self, pair: Pair) -> bool:
        """Whether a pair is of its bad side or sides."""
        sides = self.sides or SIDES
        sends = pair[0] == self.node and SENDER in sides
        return sends or (pair[1] == self.node and RECEIVER in sides)

    def __str__(self) -> str:
        return f"{self.node} (as {' and '.join(self.sides)})" if self.sides else self.node


@dataclass(frozen=True)
class Blame:
    """The answer. bad: all bad pairs, explained or not. median: of the good ones.

    links: the bad pairs that no culprit explains, the worst first, each with what it lacks.
    directed: whether some pair was measured in both directions; else sides have no meaning.
    blocks: trunks and leaves that are slow; no node is accused for their pairs. judged: whether the
    pairs are enough to distinguish a bad one from the others.
    """

    culprits: tuple[Culprit, ...]
    links: Mapping[Pair, float]
    bad: frozenset[Pair]
    median: float
    directed: bool
    blocks: tuple[Block, ...] = ()
    judged: bool = True

    @property
    def alone(self) -> list[str]:
        """The bad links by name, the worst first: `a>b`, or `a<>b` where both ways are bad."""
        found = []
        for a, b in self.links:
            if (b, a) not in self.links:
                found.append(f"{a}>{b}")
            elif a < b:
                found.append(f"{a}<>{b}")
        return found


def blame(
    measured: Mapping[Pair, float | None],
    better: str,
    *,
    hubs: Collection[str] = (),
    broken: Collection[Pair] = (),
    groups: Collection[frozenset[str]] = (),
) -> Blame:
    """Which nodes and links explain the bad pairs.

    measured: by directed pair, all in one unit and above 0; None of a pair that gave no value.
    better: higher or lower. hubs: the servers of a star, whose clients have no other peer.
    broken: pairs that break their contract, which are bad, however alike all are.
    groups: sets of nodes that may share a part of the network, such as racks.
    """
    values = _with_worst(measured, better)
    directed = any((b, a) in values for a, b in values)
    culprits: list[Culprit] = []
    links: dict[Pair, float] = {}
    slow = [] if hubs else blocks(values, better, groups)
    bad = {pair for block in slow for pair in block.pairs}
    rates = _rates(values, better)
    rest = {pair: rate for pair, rate in rates.items() if pair not in bad}
    for alike in _alike(rest, hubs, directed):
        if hubs:
            found = _in_star(alike, _Links(alike, better, broken), hubs, directed)
        else:
            found = _Nodes(alike, better, broken, directed).search()
        culprits += found
        alone = _without(found, alike)
        fleet = _Links(alone or alike, better, broken)
        wrong = fleet.bad(alike).union(*(fleet.explained(culprit, alike) for culprit in found))
        links |= fleet.links(alone, wrong)
        bad |= wrong
    good = [value for pair, value in values.items() if pair not in bad] or list(values.values())
    return Blame(
        tuple(sorted(_joined(culprits), key=lambda c: (-c.deficit, c.node))),
        dict(sorted(links.items(), key=lambda link: (-link[1], link[0]))),
        frozenset(bad),
        median(good) if good else 0.0,
        directed,
        tuple(slow),
        len(values) >= ENOUGH,
    )


def over_groups(
    values: Mapping[Pair, float], better: str, groups: Mapping[str, Collection[str]]
) -> dict[Pair, float]:
    """What the better quarter of the pairs between each two groups reaches, as a pair of groups.

    So that `blame` names the group, or the two, whose pairs are bad: a bad node spoils less of
    them. Groups that share a node are not compared.
    """
    of: dict[str, list[str]] = grouped(
        (node, name) for name, members in sorted(groups.items()) for node in members
    )
    found: dict[Pair, list[float]] = grouped(
        ((min(one, other), max(one, other)), value)
        for (a, b), value in values.items()
        for one in of.get(a, ())
        for other in of.get(b, ())
        if set(groups[one]).isdisjoint(groups[other])
    )
    return {
        pair: sorted(own, reverse=better == "higher")[len(own) // 4]
        for pair, own in sorted(found.items())
    }


def asymmetries(values: Mapping[Pair, float], better: str) -> dict[Pair, float]:
    """The better direction of each pair, with what the other one lacks; the most unlike first."""
    found: dict[Pair, float] = {}
    for (a, b), one in values.items():
        other = values.get((b, a))
        if other is None or a > b or not (_is_usable(one) and _is_usable(other)):
            continue
        first = one >= other if better == "higher" else one <= other
        found[(a, b) if first else (b, a)] = 1 - min(one, other) / max(one, other)
    return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))


def _with_worst(measured: Mapping[Pair, float | None], better: str) -> dict[Pair, float]:
    """The values, and the worst there is of a pair without one."""
    worst = 0.0 if better == "higher" else inf
    return {pair: worst if value is None else value for pair, value in measured.items()}


def _without(culprits: Sequence[Culprit], rates: Mapping[Pair, float]) -> dict[Pair, float]:
    """The pairs that are of no culprit."""
    return {p: rate for p, rate in rates.items() if not any(c.has(p) for c in culprits)}


def _alike(
    rates: Mapping[Pair, float], hubs: Collection[str], directed: bool
) -> Iterator[dict[Pair, float]]:
    """The pairs that may be compared: in a star, to the servers and from them are two things."""
    for pairs in grouped((directed and pair[1] in hubs, pair) for pair in rates).values():
        yield {pair: rates[pair] for pair in pairs}


def _pairs_of(pairs: Iterable[Pair]) -> dict[str, list[Pair]]:
    """The pairs of each node."""
    return grouped((node, pair) for pair in pairs for node in pair)


def _is_usable(value: float) -> bool:
    return isfinite(value) and value > 0


def _rates(values: Mapping[Pair, float], better: str) -> dict[Pair, float]:
    """Logarithms, higher is better; -inf of a pair without a value."""
    sign = 1 if better == "higher" else -1
    return {pair: sign * log(v) if _is_usable(v) else -inf for pair, v in values.items()}


def _deficit(loss: float, better: str) -> float:
    """A loss of logarithms as a share of the typical value."""
    if not isfinite(loss):
        return 1.0
    return 1 - exp(-loss) if better == "higher" else exp(loss) - 1


def _mad(values: Floats) -> float:
    return float(np.median(np.abs(values - np.median(values))))


def _joined(found: Sequence[Culprit]) -> Iterator[Culprit]:
    """A culprit as sender and as receiver is one."""
    for node in dict.fromkeys(c.node for c in found):
        same = [c for c in found if c.node == node]
        sides = {side for c in same for side in c.sides}
        yield Culprit(
            node,
            tuple(side for side in SIDES if side in sides),
            max(c.deficit for c in same),
            max(c.peers for c in same),
        )


def limit(count: int) -> float:
    """How many robust sd one of so many pairs may lack (Bonferroni)."""
    return NormalDist().inv_cdf(1 - FALSE_ALARM / count) * (WIDER + PAIRS / count**2)


def largest_loss(losses: Floats) -> float:
    """The loss beyond which pairs are bad, of four pairs or more.

    The worst ones, a twentieth at least, may be bad: the next one shows how long the tail of the
    others is. They are more where they are apart from it by more than it allows.
    """
    count = len(losses)
    falling = np.sort(losses)[::-1]
    worse = np.arange(ceil(count / MAY_BE_BAD), count // 2)
    quantiles = [NormalDist().inv_cdf(1 - (number + 0.5) / count) for number in worse.tolist()]
    few = rules.FEW.get(count, count / (count - 0.8))
    sd = np.maximum(MAD_TO_SIGMA * few * _mad(losses), falling[worse] / quantiles)
    bounds = limit(count) * np.maximum(sd, RESOLUTION)
    apart = np.flatnonzero(falling[worse - 1] > bounds)
    return float(bounds[apart[-1] if apart.size else 0])


class _Links:
    """How single pairs stand among others that may be compared with them."""

    def __init__(self, rates: Mapping[Pair, float], better: str, broken: Collection[Pair]) -> None:
        self.better, self.broken = better, broken
        usable = np.array([rate for rate in rates.values() if isfinite(rate)] or [0.0])
        self.typical = float(np.median(usable) if len(usable) > 2 else usable.max())
        losses = self.typical - usable
        bound = largest_loss(losses) if len(usable) >= ENOUGH else inf
        self.bound = max(min(bound, _gross(losses)), -log(1 - MIN_DEFICIT))

    def deficit(self, rate: float) -> float:
        """What a pair lacks, as a share."""
        return _deficit(self.typical - rate, self.better)

    def explained(self, culprit: Culprit, rates: Mapping[Pair, float]) -> set[Pair]:
        """The pairs of a culprit that lack half of what it lacks, or more."""
        least = max(culprit.deficit / 2, MIN_DEFICIT)
        own = [pair for pair in rates if culprit.has(pair)]
        return {pair for pair in own if self.deficit(rates[pair]) >= least}

    def bad(self, rates: Mapping[Pair, float]) -> set[Pair]:
        """The pairs that break their contract, have no value, or are far from the others."""
        far = self.typical - self.bound
        lost = {pair for pair, rate in rates.items() if rate < far or not isfinite(rate)}
        return lost | {pair for pair in self.broken if pair in rates}

    def links(self, alone: Mapping[Pair, float], bad: Collection[Pair]) -> dict[Pair, float]:
        """The bad pairs that no culprit explains. alone: the rates of those without a culprit."""
        return {pair: self.deficit(rate) for pair, rate in alone.items() if pair in bad}


def _gross(losses: Floats) -> float:
    """The loss from which on pairs are so far from the others that no count is too small."""
    low = losses > -log(ALONE)
    if not low.any() or 2 * low.sum() > len(losses):
        return inf
    others = losses[~low]
    needed = -rules.Z_LIMIT * MAD_TO_SIGMA * rules.FEW.get(len(others), 1.0) * _mad(others)
    first = float(losses[low].min())
    return -log(ALONE) if first >= needed and 2 * (first - others.max()) >= needed else inf


def _in_star(
    rates: Mapping[Pair, float], links: _Links, hubs: Collection[str], directed: bool
) -> list[Culprit]:
    """Servers all of whose pairs are bad, then clients whose servers are good with others."""
    bad = links.bad(rates)
    left = set(bad)
    found = []
    of = _pairs_of(rates)
    for node in sorted(of, key=lambda node: (node not in hubs, node)):
        own = of[node]
        if node in hubs:
            is_guilty = len(own) > 1 and left.issuperset(own)
        else:
            is_guilty = 2 * len(left & set(own)) > len(own) and _has_good_servers(node, of, bad)
        if is_guilty:
            left -= set(own)
            sides = (SIDES[own[0].index(node)],) if directed else ()
            deficit = links.deficit(median([rates[pair] for pair in own]))
            found.append(Culprit(node, sides, deficit, len(own)))
    return found


def _has_good_servers(client: str, of: Mapping[str, Sequence[Pair]], bad: Collection[Pair]) -> bool:
    """Whether one server, or two if there are, is good with others. of: the pairs of each node."""
    own = of[client]
    good = 0
    for a, b in own:
        others = [pair in bad for pair in of[a if b == client else b] if pair not in own]
        good += bool(others) and 2 * sum(others) <= len(others)
    return good >= min(len(own), 2)


class _Nodes:
    """The search for bad nodes among pairs that may be compared.

    ends: senders and receivers of all pairs, as numbers; each pair twice if it has no direction.
    real: their rates; rates: -inf where a contract is broken. of: by side and node, its own pairs.
    ways: as what a node can be bad. figures: by way and node, NaN where it has no pairs.
    """

    def __init__(
        self, rates: Mapping[Pair, float], better: str, broken: Collection[Pair], directed: bool
    ) -> None:
        self.better = better
        self.names = sorted({node for pair in rates for node in pair})
        place = {node: number for number, node in enumerate(self.names)}
        ends = np.array([[place[a], place[b]] for a, b in rates]).T
        self.copies = 1 if directed else 2
        self.ends = ends if directed else np.hstack([ends, ends[::-1]])
        self.real = np.tile(list(rates.values()), self.copies)
        self.rates = np.where([pair in broken for pair in rates] * self.copies, -inf, self.real)
        self.of = [_by_node(side, len(place)) for side in self.ends]
        self.ways = ((0,), (1,), (0, 1)) if directed else ((0,),)
        everybody = np.ones((2, len(place)), dtype=bool)
        own = [[self._own(node, way, everybody) for node in place.values()] for way in self.ways]
        self.figures = np.array([[_figure(self.rates[pairs]) for pairs in way] for way in own])

    def search(self) -> list[Culprit]:
        """The bad nodes."""
        worst = np.nanmin(self.figures, axis=0)
        order = np.argsort(-worst, kind="stable")
        half = order[: len(order) // 2 + 1]
        is_clear = worst >= np.median(worst[half]) - MIN_DEFICIT
        is_clear[half] = True
        good = np.array([is_clear, is_clear])
        found = []
        for node in order[~is_clear[order]].tolist():
            culprit = self._judged(node, good)
            sides = (culprit.sides or SIDES) if culprit else ()
            good[:, node] = [side not in sides for side in SIDES]
            found += [culprit] if culprit else []
        return found

    def _own(self, node: int, way: Sequence[int], good: Bools) -> Numbers:
        """A node's pairs with good peers."""
        of = [self.of[side][node] for side in way]
        peers = [self.ends[1 - side][own] for side, own in zip(way, of, strict=True)]
        wanted = [good[1 - side][peer] for side, peer in zip(way, peers, strict=True)]
        found: Numbers = np.concatenate(of)[np.concatenate(wanted)]
        return found

    def _judged(self, node: int, good: Bools) -> Culprit | None:
        others = self.rates[good[0][self.ends[0]] & good[1][self.ends[1]]]
        typical = float(np.median(others)) if len(others) else -inf
        if not isfinite(typical):
            return None  # most pairs are bad
        losses: dict[Sequence[int], float] = {}
        is_bad = False
        for way in self.ways:
            own = self.rates[self._own(node, way, good)]
            if len(own) < 2 * len(way):
                continue  # a single bad pair is a link
            by_pairs = self._by_pairs(own, others, len(way))
            of_others = np.delete(
                self.figures[[len(other) == len(way) for other in self.ways]], node, 1
            )
            by_figures = self._by_figures(of_others, typical, own, others)
            losses[way] = typical - _figure(own)
            is_bad |= losses[way] > max(min(by_pairs, by_figures), MIN_DEFICIT)
        return self._culprit(node, losses, typical) if is_bad else None

    def _by_pairs(self, own: Floats, others: Floats, directions: int) -> float:
        """How much a node with these pairs may lack where pairs scatter as these do."""
        parts = [others, own] if isfinite(np.median(own)) else [others]
        away = np.concatenate([np.abs(part - np.median(part)) for part in parts])
        sd = MAD_TO_SIGMA * float(np.median(away)) * len(away) / max(1, len(away) - 2)
        few = 1 + (OTHERS * self.copies / len(others)) ** 3
        if directions * self.copies == 1:
            few *= few
        of_many = LIMIT / sqrt(directions) * (1 + OWN / len(own)) * sd
        return min(few * of_many, max(-log(ALONE), of_many))

    def _by_figures(self, figures: Floats, typical: float, own: Floats, others: Floats) -> float:
        """How much a node may lack where the others' figures, by way and node, are these."""
        usable = figures[np.isfinite(figures)]
        if len(usable) < MANY * len(figures):
            return inf
        pairs = max(1.0, len(others) / len(usable))
        noise = MAD_TO_SIGMA * _mad(others) / sqrt(pairs) / 2  # few medians may agree by chance
        sd = max(MAD_TO_SIGMA * _mad(usable), noise, RESOLUTION) * sqrt(max(1, pairs / len(own)))
        z = NormalDist().inv_cdf(1 - FALSE_ALARM / len(self.ways) / len(usable))
        return typical - float(np.median(usable)) + z * (1 + FIGURES / len(usable)) * sd

    def _culprit(self, node: int, losses: Mapping[Sequence[int], float], typical: float) -> Culprit:
        """A bad node: a side that lacks less than half of what the other one lacks is not bad."""
        single = {way[0]: loss for way, loss in losses.items() if len(way) == 1}
        bad = [side for side, loss in single.items() if 2 * loss >= max(single.values())]
        sides = tuple(SIDES[side] for side in bad) if self.copies == 1 else ()
        own = np.concatenate([self.of[side][node] for side in bad])
        deficit = _deficit(typical - _figure(self.real[own]), self.better)
        return Culprit(self.names[node], sides, deficit, len(own) // len(bad))


def _by_node(ends: Numbers, count: int) -> list[Numbers]:
    """The pairs of each node that have it at this end."""
    first = np.cumsum(np.bincount(ends, minlength=count))[:-1]
    return np.split(np.argsort(ends, kind="stable"), first)


def _figure(rates: Floats) -> float:
    """The median, the better one of two: more than half of the pairs must be bad."""
    return float(np.sort(rates)[len(rates) // 2]) if len(rates) else np.nan


Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Sides = tuple[Bools, Bools]

LEAST = 2  # nodes of a set; a single one is a bad node
LOSS = 0.05  # of the pairs between the sets; a smaller one is no fault
# Simulated: .1 % of clean matrices of 4 to 32 nodes exceed ERRORS x (1 + FEW / pairs), also where
# the pairs of a node are alike; the noise of few pairs is uncertain.
ERRORS, FEW = 4.0, 6.0
QUARTER = 25  # per cent: three quarters of the pairs between are below three quarters of the inner
LOWEST = 1e-3  # of the median: what a pair without a value counts as
DENSE = 0.5  # of the pairs between two sets, and inside each
MAX_BLOCKS = 8  # blocks that are looked for


@dataclass(frozen=True)
class Block:
    """The pairs between a set of nodes and others. inside: the smaller set; share: what they lack.

    pairs: those that are slow: both directions, or only one.
    """

    inside: frozenset[str]
    outside: frozenset[str]
    share: float
    pairs: frozenset[Pair]


def blocks(
    values: Mapping[Pair, float], better: str, groups: Collection[frozenset[str]] = ()
) -> list[Block]:
    """The slow blocks of pairs, those that explain most first.

    values: by directed pair, above 0 where there is one. groups: sets of nodes that may share a
    part of the network.
    """
    nodes = sorted({node for pair in values for node in pair})
    if len(nodes) < 2 * LEAST:
        return []
    ways = _ways(values, nodes, better)
    both = np.fmin(ways, ways.T)
    found: list[Block] = []
    candidates = list(_candidates(both, nodes, groups))
    while len(found) < MAX_BLOCKS:
        candidates = [sides for sides in candidates if _is_dense(both, *sides)]
        scores = [_score(both, *sides) for sides in candidates]
        if max(scores, default=0.0) <= 0:
            break
        inside, outside = candidates[scores.index(max(scores))]
        found.append(_block(ways, both, inside, outside, nodes))
        both[np.ix_(inside, outside)] = both[np.ix_(outside, inside)] = np.nan
    return found


def _ways(values: Mapping[Pair, float], nodes: Sequence[str], better: str) -> Floats:
    """The logarithm of each pair's value, higher is better; NaN where there is none."""
    place = {node: number for number, node in enumerate(nodes)}
    usable = [value for value in values.values() if 0 < value < np.inf]
    middle = float(np.median(usable)) if usable else 1.0
    found = np.full((len(nodes), len(nodes)), np.nan)
    for (a, b), value in values.items():
        low = middle * LOWEST if better == "higher" else middle / LOWEST
        size = float(np.log((value if 0 < value < np.inf else low) / middle))
        found[place[a], place[b]] = size if better == "higher" else -size
    return found


def _candidates(
    both: Floats, nodes: Sequence[str], groups: Collection[frozenset[str]]
) -> Iterator[Sides]:
    """Two sets of two nodes or more, the smaller one first; together they need not be all nodes."""
    seen = set()
    own = [np.array([node in group for node in nodes]) for group in groups]
    splits = [*((one, ~one) for one in own), *_splits(both)]
    for one, other in splits:
        inside, outside = (one, other) if one.sum() <= other.sum() else (other, one)
        key = inside.tobytes(), outside.tobytes()
        if inside.sum() >= LEAST and key not in seen:
            seen.add(key)
            yield inside, outside


def _splits(both: Floats) -> Iterator[Sides]:
    """Every branch of the tree compared with its sister, and with all other nodes."""
    from scipy.cluster import hierarchy

    count = len(both)
    near = np.where(np.isnan(both), np.nanmedian(both), both)
    away = float(near.max()) - near[np.triu_indices(count, 1)]
    members = list(np.eye(count, dtype=bool))
    for one, other, *_ in hierarchy.linkage(away, "average"):
        sisters = members[int(one)], members[int(other)]
        members.append(sisters[0] | sisters[1])
        yield sisters
        yield members[-1], ~members[-1]


def _parts(both: Floats, inside: Bools, outside: Bools) -> tuple[Floats, Floats, Floats]:
    """The pairs between two sets, and those inside of each, every pair once."""
    upper = np.triu(~np.isnan(both), 1)
    between = both[np.ix_(inside, outside)]
    within = [both[upper & side[:, None] & side] for side in (inside, outside)]
    return between[~np.isnan(between)], within[0], within[1]


def _is_dense(both: Floats, inside: Bools, outside: Bools) -> bool:
    """Whether most pairs between and inside were measured: of few pairs a tree is chance."""
    sizes = int(inside.sum()), int(outside.sum())
    possible = sizes[0] * sizes[1], *(n * (n - 1) / 2 for n in sizes)
    there = (part.size for part in _parts(both, inside, outside))
    return all(n >= DENSE * most for n, most in zip(there, possible, strict=True))


def _score(both: Floats, inside: Bools, outside: Bools) -> float:
    """How much the block explains, in pairs; below 0 where the evidence is not enough."""
    between, *within = _parts(both, inside, outside)
    if not between.size or not all(part.size for part in within):
        return -1.0
    middle = float(np.median(between))
    lower = min(within, key=lambda part: float(np.median(part)))
    loss = float(np.median(lower)) - middle
    if 1 - exp(-loss) < LOSS:
        return -1.0
    if np.percentile(between, 100 - QUARTER) >= min(np.percentile(w, QUARTER) for w in within):
        return -1.0
    large = [part - np.median(part) for part in (between, *within) if part.size > LEAST]
    away = np.concatenate(large or [np.empty(0)])
    if away.size < 2 * LEAST:
        return -1.0
    sd = max(MAD_TO_SIGMA * float(np.median(np.abs(away))), float(away.std()) / 2, LOSS / 10)
    error = sd * MEDIAN_ERROR * sqrt(1 / between.size + 1 / lower.size)
    if loss / error < ERRORS * (1 + FEW / away.size):
        return -1.0
    return loss * between.size


def _block(
    ways: Floats, both: Floats, inside: Bools, outside: Bools, nodes: Sequence[str]
) -> Block:
    between, *within = _parts(both, inside, outside)
    typical = min(float(np.median(part)) for part in within)
    loss = typical - float(np.median(between))
    pairs = set()
    for one, other in ((inside, outside), (outside, inside)):
        way = ways[np.ix_(one, other)]
        if not np.isnan(way).all() and typical - float(np.nanmedian(way)) > loss / 2:
            rows, columns = np.flatnonzero(one), np.flatnonzero(other)
            for row, column in np.argwhere(~np.isnan(way)).tolist():
                pairs.add((nodes[rows[row]], nodes[columns[column]]))
    names = np.array(nodes)
    return Block(
        frozenset(names[inside].tolist()),
        frozenset(names[outside].tolist()),
        1 - exp(-loss),
        frozenset(pairs),
    )
