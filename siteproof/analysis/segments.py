"""A series cut into segments of one level each, and how certain each change of level is.

Search: least squares with a penalty for each change point (Killick, Fearnhead, Eckley, J. Am. Stat.
Assoc. 107, 2012), as `ruptures` has it; outliers are pulled in first, so that none makes a segment.
Certainty: Welch's test (Biometrika 34, 1947) of two means of clipped values, in which each side has
its own scatter, and which counts only as many values as are independent (`spread.long_run`). For
few values, Chernoff's bound (Ann. Math. Stat. 23, 1952) of a sum of residuals is a second limit: a
series that has outliers now and then has three in a row by chance. The place of a change is as
uncertain as it is small: Bai, Rev. Econ. Stat. 79 (1997).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from itertools import pairwise
from math import exp, inf, sqrt

import numpy as np

from siteproof.analysis.screen import SHARE
from siteproof.analysis.spread import (
    CLIP,
    SAME,
    UNKNOWN,
    Floats,
    Typical,
    clipped,
    jumps,
    long_run,
    middle,
    robust_sd,
    running_median,
)

LEAST = 2  # values in a segment at the end; elsewhere …
DIP = 3  # … and in one between two others
STAIR = 5  # values of a level between a higher and a lower one; of fewer it is none
LONGEST_DIP = 20  # values of an episode; what lasts longer is two steps
ERRORS = 5.0  # standard errors that a change of level must have
CHANCE = 0.02  # of so large a change anywhere in a series without one
PENALTY = 12.0  # of a change point, in long-run variances: what is found has 3.5 standard errors
BORROWED = 30  # values of the whole series that count with the own ones of a segment …
SHORT = 60  # values, of which fewer may scatter little by chance
NOISIER = 2.0  # … unless its own variance is so many times as large
FLIPS = 5  # change points between the same two levels that are modes, not steps
NEAR = 0.25  # of the distance of two levels: so near to one of them a segment is at it
MOSTLY = 0.75  # of the segments and of the changes between them
BACK = 0.5  # of a dip's depth: levels before and after it that differ by less are one level
EXACT = 1000  # of the range: the scatter of values that have none
FAR = 1.2  # of a dip's depth: further off, a value means no more
TILTS = np.geomspace(0.1, 100, 40)  # of Chernoff's bound, per depth
PLACE = 20.0  # long-run variances, per squared change, that `at` is off at most in 99 %


@dataclass(frozen=True)
class Change:
    """A change of level. at: the first value after it.

    end: of an episode, the first value that is as before again; None where it lasts.
    before, after: means of clipped values. sd: scatter of one value around the levels.
    errors: the change in standard errors. chance: of so large a one anywhere in a series without.
    """

    at: int
    end: int | None
    before: float
    after: float
    sd: float
    errors: float
    chance: float
    n_before: int
    n_after: int

    @property
    def severity(self) -> float:
        """Its size in units of the scatter of one value; 0 where there is none."""
        return abs(self.after - self.before) / self.sd if self.sd else 0.0

    @property
    def within(self) -> int:
        """By how many values `at` may be too early or too late, with 99 %."""
        of_one = self.errors**2 * (1 / self.n_before + 1 / self.n_after)
        return round(PLACE / of_one) if of_one else max(self.n_before, self.n_after)


@dataclass(frozen=True)
class Segments:
    """Values without gaps, and where their level changes. typical: of series of the same kind."""

    values: Floats
    typical: Typical = UNKNOWN

    @cached_property
    def steps(self) -> list[int]:
        """The first index of each segment but the first; the weakest are given up one by one."""
        found = change_points(self.values, self.typical)
        while found:
            weak = _weaker_than_neighbours(self._strengths(found))
            if not weak:
                break
            found = [place for at, place in enumerate(found) if at not in weak]
        return found

    def _strengths(self, found: Sequence[int]) -> list[tuple[bool, float, float]]:
        """Of each step: whether it is certain, and how likely it is, the least certain first."""
        spans = [range(a, b) for a, b in pairwise([0, *found, self.values.size])]
        tests = _Tests(self, [[span] for span in spans])
        short = [len(left) < DIP or len(right) < DIP for left, right in pairwise(spans)]
        if len(spans[-1]) == LEAST:
            short[-1] = len(spans[-2]) < DIP
        changes = [tests.change([left], [right]) for left, right in pairwise(spans)]
        return [
            (not small and _certain(one), -one.chance, one.errors)
            for one, small in zip(changes, short, strict=True)
        ]

    @cached_property
    def changes(self) -> list[Change]:
        """Steps and episodes, by their beginning."""
        if not self.steps:
            return []
        levels = [[range(a, b)] for a, b in pairwise([0, *self.steps, self.values.size])]
        tests = _Tests(self, levels)
        found = []
        while (at := tests.episode(levels)) is not None:
            before, dip, after = levels[at - 1 : at + 2]
            same = before + after
            begin, end = dip[0].start, dip[-1].stop
            found.append(replace(tests.change(same, dip), at=begin, end=end))
            apart = _certain(tests.change(before, after))
            levels[at - 1 : at + 2] = [before, after] if apart else [same]
        begins = [level[0].start for level in levels]
        for at in range(len(levels) - 2, 0, -1):
            if sum(map(len, levels[at])) < STAIR:  # on the way from one level to the next
                del levels[at], begins[at + 1]
        for at, (left, right) in enumerate(pairwise(levels), 1):
            found.append(replace(tests.change(left, right), at=begins[at]))
        return sorted(found, key=lambda one: one.at)

    @cached_property
    def middles(self) -> Floats:
        """The median of each segment."""
        return np.array([middle(part) for part in np.split(self.values, self.steps)])

    @cached_property
    def away(self) -> Floats:
        """Each value minus its segment's median."""
        sizes = np.diff([0, *self.steps, self.values.size])
        return self.values - np.repeat(self.middles, sizes)

    @cached_property
    def modes(self) -> tuple[float, float] | None:
        """The two levels between which the segments go to and fro, the lower first; else None."""
        if len(self.steps) < FLIPS:
            return None
        high = self.middles > (self.middles.min() + self.middles.max()) / 2
        levels = [float(np.median(self.middles[high == up])) for up in (False, True)]
        off = np.minimum(*(np.abs(self.middles - level) for level in levels))
        flips = np.diff(high) != 0
        near = off <= NEAR * (levels[1] - levels[0])
        if flips.sum() < FLIPS or min(flips.mean(), near.mean()) < MOSTLY:
            return None
        up = np.repeat(high, np.diff([0, *self.steps, self.values.size])).mean()
        return (levels[0], levels[1]) if SHARE <= up <= 1 - SHARE else None


def change_points(values: Floats, typical: Typical) -> list[int]:
    """What the search finds, unconfirmed."""
    if values.size < 2 * LEAST or np.ptp(values) <= SAME * float(np.abs(values).max()):
        return []
    sd, factor = jumps(values)
    if sd == 0:
        sd = float(np.ptp(values)) / EXACT
    if values.size < SHORT:  # which show no autocorrelation, and a few low runs look like one
        factor = typical.factor
    level = running_median(values)
    pulled = (level + np.clip(values - level, -CLIP * sd, CLIP * sd) - middle(values)) / sd
    starts = _pelt()(pulled[:, None], PENALTY * factor, LEAST)
    found, at = [], int(starts[values.size])
    while at > 0:
        found.append(at)
        at = int(starts[at])
    return found[::-1]


@cache
def _pelt() -> Callable[[Floats, float, int], Sequence[int]]:
    """The search itself, of `ruptures.KernelCPD("linear")`, without the rest of its package.

    That imports all of scipy.stats, half a second of each command that searches. It returns of
    each end where the last segment before it begins.
    """
    package = find_spec("ruptures")
    folders = package.submodule_search_locations if package else None
    spec = PathFinder.find_spec("ekcpd", [f"{one}/detection/_detection" for one in folders or ()])
    if spec is None or spec.loader is None:
        raise ImportError("ruptures has no ruptures.detection._detection.ekcpd")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Callable[[Floats, float, int], Sequence[int]] = module.ekcpd_pelt_L2
    return found


Level = Sequence[range]  # the values of one level: before an episode, and after it


@dataclass(frozen=True)
class _Side:
    """What is known of the values of one level. variance: of one value."""

    values: Floats
    mean: float
    variance: float
    freedom: float


class _Tests:
    """Tests of neighbouring levels of one series, with what all of it shows of its scatter."""

    def __init__(self, segments: Segments, levels: Sequence[Level]) -> None:
        self._values = values = segments.values
        typical = segments.typical
        parts = [self._of(level) for level in levels]
        away = np.empty(values.size)
        for level, part in zip(levels, parts, strict=True):
            rest = part - middle(part)
            begin = 0
            for span in level:
                away[span.start : span.stop] = rest[begin : begin + len(span)]
                begin += len(span)
        self._away = away
        self._sd = robust_sd(away, float(np.abs(values).max(initial=0.0)))
        pulled = np.clip(away, -CLIP * self._sd, CLIP * self._sd)
        self._free = max(1, values.size - len(levels))
        self._variance = float(pulled @ pulled) / self._free
        if values.size < SHORT and typical.noise:
            others = (typical.noise * middle(values)) ** 2
            self._free += BORROWED if self._variance <= NOISIER * others else 0
            self._variance = max(self._variance, others)
        self._factor = typical.factor
        if values.size >= SHORT or not typical.noise:
            self._factor = max(typical.factor, long_run(away, self._sd, len(levels)))
        self._typical = typical

    def _of(self, level: Level) -> Floats:
        return np.concatenate([self._values[span.start : span.stop] for span in level])

    def _side(self, level: Level) -> _Side:
        part = self._of(level)
        mean, variance = clipped(part, self._sd)
        own = part.size - 1
        noisier = part.size >= 2 * DIP and variance > NOISIER * self._variance
        free = 0.0 if noisier else min(float(BORROWED), self._free)
        both = (free * self._variance + own * variance) / (free + own)
        return _Side(part, mean, both, min(free + own, self._free))

    def change(self, before: Level, after: Level) -> Change:
        """The change from one level to the next."""
        left, right = self._side(before), self._side(after)
        errors, free = _welch(left, right, self._factor)
        chance = _tail(errors, free)
        few = min(left, right, key=lambda side: side.values.size)
        if errors > 0 and few.values.size <= LONGEST_DIP:
            other = right if few is left else left
            spans = before if few is left else after
            chance = max(chance, self._bound(spans, few, other.mean))
        newest = after[-1].stop == self._values.size and right.values.size < STAIR
        places = STAIR - LEAST if newest else self._values.size
        return Change(
            after[0].start,
            None,
            left.mean,
            right.mean,
            sqrt(self._variance),
            errors,
            min(1.0, places * chance),
            left.values.size,
            right.values.size,
        )

    def _bound(self, spans: Level, few: _Side, level: float) -> float:
        """Chernoff's bound of the chance that so many residuals have such a mean."""
        depth = few.mean - level
        others = np.ones(self._away.size, dtype=bool)
        for span in spans:
            others[span.start : span.stop] = False
        if not depth or not others.any():
            return 0.0
        z = np.clip(self._away[others] / depth, -FAR, FAR)
        mean = float(np.clip((few.values - level) / depth, -FAR, FAR).mean())
        others_do = np.exp(np.outer(TILTS, z)).mean(axis=1)
        rare = np.exp(TILTS)  # as outliers may be so rare that this series shows none
        wild = self._wild(depth)
        rate = TILTS * mean - np.log((1 - wild) * others_do + wild * rare)
        noise = min(1.0, CLIP * float(np.sqrt(np.mean(z**2))))  # a depth beyond it is no noise
        factor = 1 + (self._factor - 1) * noise
        return exp(-max(0.0, float(rate.max())) * few.values.size / sqrt(factor))

    def _wild(self, depth: float) -> float:
        """The share of values that are so far off alone."""
        level = middle(self._values)
        if not self._typical.count or not level:
            return 0.5 / self._values.size
        return self._typical.wild(depth / abs(level))

    def episode(self, levels: Sequence[Level]) -> int | None:
        """The shortest dip or burst between two levels that are alike, and have more values."""
        sizes = [sum(map(len, level)) for level in levels]
        means = [self._side(level).mean for level in levels]
        found = []
        for at in range(1, len(levels) - 1):
            edges = means[at] - means[at - 1], means[at] - means[at + 1]
            alike = abs(edges[0] - edges[1]) <= BACK * min(map(abs, edges))
            mostly = sizes[at] <= min(LONGEST_DIP, sizes[at - 1] + sizes[at + 1])
            if edges[0] * edges[1] > 0 and alike and mostly:
                found.append((sizes[at], at))
        return min(found)[1] if found else None


def _weaker_than_neighbours(order: Sequence[tuple[bool, float, float]]) -> set[int]:
    """Those that are not certain, but no two next to each other: without one the other may be."""
    weak: set[int] = set()
    for at in sorted(range(len(order)), key=order.__getitem__):
        if not order[at][0] and not {at - 1, at + 1} & weak:
            weak.add(at)
    return weak


def _certain(one: Change) -> bool:
    return one.errors >= ERRORS and one.chance <= CHANCE


def _welch(left: _Side, right: _Side, factor: float) -> tuple[float, float]:
    """Standard errors of a difference of means, and its degrees of freedom."""
    parts = [(side.variance / side.values.size, side.freedom) for side in (left, right)]
    total = sum(part for part, _ in parts)
    gap = abs(right.mean - left.mean)
    if total == 0:
        return (inf if gap else 0.0), 1.0
    free = total**2 / sum(part**2 / own for part, own in parts)
    return gap / sqrt(factor * total), free


def _tail(errors: float, free: float) -> float:
    """Chance of a difference of so many standard errors, to either side."""
    if errors == inf:
        return 0.0
    from scipy.special import stdtr  # a sixth of a second, which only those who search should pay

    return 2 * float(stdtr(free, -errors))
