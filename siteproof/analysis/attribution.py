"""Which node explains the bad pairs, as sender, as receiver or as both, or which link.

Peeling: a node's figure is the median over its peers, on the better side where there are two, so
that more than half of its pairs must be bad. Figures far below the others' (robust z, as in
siteproof.analysis.slow_nodes) are suspects; the one that explains most is accused, its pairs leave,
and the rest is looked at again, so that no node is accused for a bad peer. What is bad then is a
link.
The idea of medians by row and column: Tukey, Exploratory Data Analysis (1977), median polish.
Unlike its sums, a pair's speed is that of its worse end, so a node takes all of its pairs along.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, inf, isfinite, log, sqrt
from statistics import NormalDist, median, median_high, median_low

from siteproof.analysis import arithmetic
from siteproof.analysis import slow_nodes as rules
from siteproof.analysis.blocks import Block, blocks
from siteproof.analysis.slow_nodes import MIN_DEFICIT, MIN_FLEET, Middle

FALSE_ALARM = 0.005  # wanted: the share of groups of pure noise in which anything is bad
# The MAD of few values is itself uncertain. Simulated for normal values, 4,000 times for each count
# of nodes, also where up to nine tenths of the variance are of the nodes: by which factor the limit
# must grow to keep FALSE_ALARM. Of pairs by 1 + PAIRS / count. The figures of n nodes, which all
# have some pairs in common, by 1 + NODES / n from 8 on, and by FEWER below.
PAIRS, NODES = 14.0, 10.0
FEWER = {2: 19.0, 3: 19.0, 4: 7.8, 5: 3.7, 6: 3.0, 7: 2.6}
GROSS = 0.5  # of the others' median: so far apart from all of them, no count is too small
ALONE = 0.25  # of a single other one
# A rate cannot fall by more than all of itself, so among few and scattered ones no z of differences
# reaches the limit, even of a dead link; from here on the z is that of the logarithms.
HALF = 0.5
ENOUGH = MIN_FLEET  # pairs; of fewer only a gross difference counts
ASYMMETRIC = 0.20  # the ExTENCI slides show 8 % between PSC and TACC
SENDER, RECEIVER, EITHER = "sender", "receiver", ""

Pair = tuple[str, str]  # sender, receiver
Unit = tuple[str, str]  # node, SENDER or RECEIVER; EITHER where the quantity has no direction
Misses = Callable[[float], bool]


@dataclass(frozen=True)
class Culprit:
    """A node that explains bad pairs. sides: SENDER, RECEIVER or both; none without direction.

    deficit: of the median over its pairs, against the other nodes'. peers: how many.
    """

    node: str
    sides: tuple[str, ...]
    deficit: float
    peers: int

    def __str__(self) -> str:
        return f"{self.node} (as {' and '.join(self.sides)})" if self.sides else self.node


@dataclass(frozen=True)
class BadPair:
    """A pair that no culprit explains. value: None where it was tried and gave none."""

    sender: str
    receiver: str
    value: float | None
    deficit: float


@dataclass(frozen=True)
class Blame:
    """The answer. bad: all bad pairs, explained or not. median: of the good ones.

    directed: whether some pair was measured in both directions; else sides have no meaning.
    blocks: trunks and leaves that are slow; no node is accused for their pairs. judged: whether the
    pairs are enough to distinguish a bad one from the others.
    """

    culprits: tuple[Culprit, ...]
    links: tuple[BadPair, ...]
    bad: frozenset[Pair]
    median: float
    directed: bool
    blocks: tuple[Block, ...] = ()
    judged: bool = True

    @property
    def alone(self) -> list[str]:
        """The bad links by name, the worst first: `a>b`, or `a<>b` where both ways are bad."""
        ways = {(p.sender, p.receiver) for p in self.links}
        found = []
        for p in self.links:
            both = (p.receiver, p.sender) in ways
            if not both:
                found.append(f"{p.sender}>{p.receiver}")
            elif p.sender < p.receiver:
                found.append(f"{p.sender}<>{p.receiver}")
        return found


def figures(trials: Mapping[Pair, Sequence[float]], better: str) -> dict[Pair, float]:
    """The median of each pair's trials; of a pair without a value the worst there is."""
    worst = 0.0 if better == "higher" else inf
    return {pair: median(values) if values else worst for pair, values in trials.items()}


def blame(
    trials: Mapping[Pair, Sequence[float]],
    better: str,
    *,
    hubs: Collection[str] = (),
    misses: Misses = lambda _value: False,
    groups: Collection[frozenset[str]] = (),
) -> Blame:
    """Which nodes and links explain the bad pairs.

    trials: by directed pair, all in one unit and above 0; none of a pair that gave no value.
    better: higher or lower. hubs: the servers of a star, whose clients have no other peer.
    misses: whether a figure breaks its contract, which makes it bad, however alike all are.
    groups: sets of nodes that may share a part of the network, such as racks.
    """
    values = figures(trials, better)
    directed = any((b, a) in values for a, b in values)
    culprits: list[Culprit] = []
    links: list[BadPair] = []
    slow = [] if hubs else blocks(values, better, groups)
    bad = {pair for block in slow for pair in block.pairs}
    rest = {pair: value for pair, value in values.items() if pair not in bad}
    for alike in _alike(rest, hubs, directed):
        group = _Group(alike, better, hubs, misses, directed)
        culprits += group.peeled()
        links += group.links()
        bad |= group.bad
    good = [value for pair, value in values.items() if pair not in bad] or list(values.values())
    return Blame(
        tuple(sorted(_joined(culprits), key=lambda c: (-c.deficit, c.node))),
        tuple(sorted(links, key=lambda p: (-p.deficit, p.sender, p.receiver))),
        frozenset(bad),
        median(good) if good else 0.0,
        directed,
        tuple(slow),
        len(values) >= ENOUGH,
    )


@dataclass(frozen=True)
class Asymmetry:
    """Two directions of a pair: the better one first. share: what the worse one lacks."""

    better: Pair
    share: float


def asymmetries(values: Mapping[Pair, float], better: str) -> list[Asymmetry]:
    """How much the directions of each pair differ, the most unlike first."""
    found = []
    for (a, b), one in values.items():
        other = values.get((b, a))
        if other is None or a > b or not (_is_usable(one) and _is_usable(other)):
            continue
        first = one >= other if better == "higher" else one <= other
        share = 1 - (arithmetic.asymmetry(one, other) or 0)
        found.append(Asymmetry((a, b) if first else (b, a), share))
    return sorted(found, key=lambda a: (-a.share, a.better))


def _is_usable(value: float) -> bool:
    return isfinite(value) and value > 0


def limit(count: int, nodes: int = 0) -> float:
    """The robust z beyond which one of so many values is bad (Bonferroni).

    nodes: of how many nodes the values are figures; 0: they are pairs.
    """
    factor = FEWER.get(nodes, 1 + NODES / nodes) if nodes else 1 + PAIRS / count
    return NormalDist().inv_cdf(1 - FALSE_ALARM / count) * factor


def gross(values: Collection[float], better: str) -> float | None:
    """The value from which on some are so far from the others that no count is too small.

    Less than half of the others' median, and farther than those scatter. None if there is none.
    """
    logs = sorted(log(value) for value in values if _is_usable(value))
    if better == "lower":
        logs = sorted(-one for one in logs)
    middle = median(logs) if len(logs) > 2 else max(logs, default=0.0)
    low = [one for one in logs if one <= middle + log(GROSS)]
    high = logs[len(low) :]
    if not low or 2 * len(low) > len(logs):
        return None
    typical = rules.level(high)
    needed = -rules.Z_LIMIT * typical.mad * rules.MAD_TO_SIGMA * rules.FEW.get(typical.size, 1.0)
    needed = max(needed, -log(ALONE if len(high) == 1 else GROSS))
    found = [one for one in low if typical.median - one >= needed and 2 * (high[0] - one) >= needed]
    if not found:
        return None
    bound = (max(found) + high[0]) / 2
    return exp(bound if better == "higher" else -bound)


def _alike(
    values: Mapping[Pair, float], hubs: Collection[str], directed: bool
) -> list[dict[Pair, float]]:
    """The pairs that may be compared: in a star, to the servers and from them are two things."""
    groups: dict[bool, dict[Pair, float]] = {}
    for pair, value in values.items():
        groups.setdefault(directed and pair[1] in hubs, {})[pair] = value
    return list(groups.values())


def _joined(found: Sequence[Culprit]) -> Iterator[Culprit]:
    """A culprit as sender and as receiver is one."""
    for node in dict.fromkeys(c.node for c in found):
        same = [c for c in found if c.node == node]
        sides = {side for c in same for side in c.sides}
        yield Culprit(
            node,
            tuple(s for s in (SENDER, RECEIVER) if s in sides),
            max(c.deficit for c in same),
            max(c.peers for c in same),
        )


@dataclass(frozen=True)
class _Fleet:
    """Where some values stand, the z beyond which one is bad, and from where on it surely is."""

    middle: Middle
    limit: float
    gross: float | None
    peers: float = 0.0  # of a figure, typically; one of fewer pairs scatters more


class _Group:
    """Pairs that may be compared with each other. live: those that no accused unit explains."""

    def __init__(
        self,
        values: dict[Pair, float],
        better: str,
        hubs: Collection[str],
        misses: Misses,
        directed: bool,
    ) -> None:
        self.values, self.better, self.hubs, self.misses = values, better, hubs, misses
        self.sides = (SENDER, RECEIVER) if directed else (EITHER, EITHER)
        self.live: dict[Unit, dict[Unit, float]] = {}
        for (a, b), value in values.items():
            one, other = (a, self.sides[0]), (b, self.sides[1])
            self.live.setdefault(one, {})[other] = value
            self.live.setdefault(other, {})[one] = value
        self.bad: set[Pair] = set()

    def peeled(self) -> list[Culprit]:
        """Accuse, and look again, until nobody is left who can be accused."""
        found: list[Culprit] = []
        while accused := self._round():
            found += accused
        return found

    def links(self) -> list[BadPair]:
        """The bad pairs that remain; after peeling."""
        sender, receiver = self.sides
        remain = {
            (a, b): v
            for (a, b), v in self.values.items()
            if (b, receiver) in self.live.get((a, sender), {})
        }
        fleet = self._fleet((remain or self.values).values())
        self.bad |= {pair for pair, v in self.values.items() if self._is_bad(v, fleet)}
        found = []
        for pair, value in remain.items():
            if pair in self.bad:
                known = value if _is_usable(value) else None
                found.append(BadPair(*pair, known, self._deficit(value, fleet)))
        return found

    def _round(self) -> list[Culprit]:
        """Those who can be accused by the fleet as it stands, the one that explains most first."""
        own = {unit: self._figure(pairs.values()) for unit, pairs in self.live.items()}
        # A server's figure is the median of its clients': counted again, it would shrink the MAD.
        known = {unit: v for unit, v in own.items() if unit[0] not in self.hubs}
        fleet = self._fleet(known.values(), len({node for node, _ in known}), self._noise(known))
        typical = median([len(self.live[unit]) for unit in known]) if known else 0
        fleet = replace(fleet, peers=typical)
        suspects = {unit for unit, v in own.items() if self._is_bad(v, fleet, len(self.live[unit]))}
        found = []
        while suspects:
            worst = max(sorted(suspects), key=lambda unit: self._explains(unit, fleet))
            suspects.remove(worst)
            if self._guilty(worst, fleet):
                deficit = self._deficit(self._figure(self.live[worst].values()), fleet)
                sides = (worst[1],) if worst[1] else ()
                found.append(Culprit(worst[0], sides, deficit, len(self.live[worst])))
                self.bad |= self._explained(worst)
                self._remove(worst)
                suspects &= self.live.keys()
        return found

    def _guilty(self, unit: Unit, fleet: _Fleet) -> bool:
        """Whether a suspect's pairs are bad, and its peers good with others."""
        pairs = self.live[unit]
        if not self._is_bad(self._figure(pairs.values()), fleet, len(pairs)):
            return False  # its bad pairs were explained by those accused before
        if unit[0] in self.hubs:
            return len(pairs) > 1 and all(self._is_bad(v, fleet) for v in pairs.values())
        good = sum(self._is_good_with_others(peer, unit, fleet) for peer in pairs)
        if self.hubs and len(pairs) == 1:
            return good == 1  # its server is good with others: it is the client or its cable
        return len(pairs) > 1 and good > 1

    def _is_good_with_others(self, peer: Unit, unit: Unit, fleet: _Fleet) -> bool:
        others = [value for other, value in self.live[peer].items() if other != unit]
        return bool(others) and not self._is_bad(self._figure(others), fleet)

    def _explained(self, unit: Unit) -> set[Pair]:
        """The pairs of an accused unit that are as bad as its figure, which accuses it."""
        figure = self._figure(self.live[unit].values())
        found = set()
        for peer, value in self.live[unit].items():
            if _is_as_bad(value, figure, self.better):
                pair = (unit[0], peer[0])
                forth = unit[1] != RECEIVER and pair in self.values
                found.add(pair if forth else pair[::-1])
        return found

    def _remove(self, unit: Unit) -> None:
        for peer in self.live.pop(unit):
            del self.live[peer][unit]
            if not self.live[peer]:
                del self.live[peer]

    def _figure(self, values: Collection[float]) -> float:
        return (median_high if self.better == "higher" else median_low)(values)

    def _noise(self, units: Collection[Unit]) -> float:
        """The least standard deviation of figures: half of that of means of the pairs' noise.

        The few medians of a small matrix may agree by chance.
        """
        pairs = [v for unit in units for v in self.live[unit].values() if _is_usable(v)]
        peers = len(pairs) / max(1, len(units))
        return rules.middle(pairs).sd / sqrt(peers) / 2 if peers > 1 and not self.hubs else 0.0

    def _fleet(self, values: Iterable[float], nodes: int = 0, least: float = 0.0) -> _Fleet:
        """Where the values stand; pairs without a value do not count for the spread.

        nodes: of how many nodes they are figures. least: of their standard deviation.
        """
        usable = [v for v in values if _is_usable(v)]
        middle = rules.middle(usable or [0.0])
        middle = replace(middle, sd=max(middle.sd, least))
        return _Fleet(middle, limit(middle.count, nodes), gross(usable, self.better))

    def _explains(self, unit: Unit, fleet: _Fleet) -> float:
        """How much of the badness goes if this unit goes."""
        shares = (self._deficit(v, fleet) for v in self.live[unit].values())
        return sum(min(max(share, 0.0), 1.0) for share in shares)

    def _deficit(self, value: float, fleet: _Fleet) -> float:
        return rules.standing(value, fleet.middle, self.better)[1] if isfinite(value) else 1.0

    def _is_bad(self, value: float, fleet: _Fleet, peers: int = 0) -> bool:
        """peers: of how many pairs the value is the figure."""
        if self.misses(value) or not _is_usable(value):
            return True
        if fleet.gross is not None and _is_as_bad(value, fleet.gross, self.better):
            return True
        middle = fleet.middle
        z, deficit = rules.standing(value, middle, self.better)
        if z is not None and deficit >= HALF:  # of a rate; a time has no such floor
            z = min(z, log(value / middle.median) * middle.median / middle.sd)
        scatter = sqrt(max(1.0, fleet.peers / peers)) if peers else 1.0
        return z is not None and z < -fleet.limit * scatter and deficit >= MIN_DEFICIT


def _is_as_bad(value: float, bound: float, better: str) -> bool:
    return value <= bound if better == "higher" else value >= bound
