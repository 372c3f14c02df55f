"""Nodes of one role in run after run: their kinds, and each compared with all of its kind.

The rule for one run is that of siteproof.analysis.slow_nodes. Of three to nine nodes the MAD may be
that of the bad ones; there a gross deficit against the others alone counts as well.

Two kinds of nodes in one role, such as two makes of memory, are recognised by their speeds: a
mixture of two normal distributions with one variance is compared with a single one by the
Bayesian information criterion (Schwarz, Estimating the Dimension of a Model, 1978); a difference
of 6 is strong evidence (Kass and Raftery, Bayes Factors, 1995). The kinds must be apart, too:
by D of Ashman, Bird and Zepf (Detecting Bimodality in Astronomical Datasets, 1994), where 2 is
needed for two peaks, and far more here, as a rank depends on it. The fit: EM (Dempster, Laird and
Rubin, 1977), from the best cut into two (Otsu, 1979). A few nodes far from all others
would take this cut for themselves, and hide a kind: they are left out of it.

Nodes that fell against their own past: since which run, by how much, and how certain that is.

Each node is its own control (a paired test), so that no share of bad nodes hides another. What all
nodes did in a run is taken away first: their median.
Then every number of newest runs is compared with those before them, by the difference of two means
in standard errors (CUSUM: Page, Continuous Inspection Schemes, Biometrika 41, 1954), which are
corrected for the autocorrelation of the runs (as of a process
AR(1), see siteproof.analysis.spread).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from math import log
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from siteproof.analysis.screen import row_medians
from siteproof.analysis.slow_nodes import (
    CLEAR_DEFICIT,
    CLEAR_FALL,
    FEW,
    MAD_TO_SIGMA,
    MIN_DEFICIT,
    MIN_FLEET,
    MIN_HISTORY,
    RESOLUTION,
    UNSTABLE_RUNS,
    Z_LIMIT,
    Level,
)
from siteproof.analysis.spread import CLIP, MAX_MEMORY

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.intp]

COVERS = 0.5  # of the nodes: a run with fewer, such as a retest, has no median of its own
MIN_GROSS = 3  # nodes: of two either may be the bad one
FEW_NODES = 9
LEAST_SHARE = 0.12  # fewer nodes are bad rather than of another kind …
LEAST = 3  # … and so are one or two
EVIDENCE = 6.0  # Kass and Raftery: strong
APART = 3.5  # standard deviations of a kind
FAR = 8.0  # robust standard deviations of a part: who is farther is of no kind
ROUNDS = 50  # of EM
SAME = 1e-9
SMALLEST = 0.001  # of a level: a smaller spread is that of printing


@dataclass(frozen=True)
class Ranks:
    """z, deficit, slow: of each node in each run. z: NaN where too few nodes allow none.

    fleet: the nodes that the values of each run are compared with.
    """

    z: Floats
    deficit: Floats
    slow: Bools
    fleet: tuple[Level, ...]


def ranks(values: Floats, better: str, noise: float = 0.0) -> Ranks:
    """Compare nodes of one kind. values: (nodes, runs), NaN where a node was not measured.

    better: higher or lower. noise: from run to run, as a share. A run that measured less than half
    of the nodes is compared with the last one that measured more, or with the first one.
    """
    alike = _like(~np.isnan(values))
    fleet = [_level(column) for column in values.T]
    if not alike.size and len(fleet):
        last = np.array([row[~np.isnan(row)][-1] for row in values if not np.isnan(row).all()])
        fleet = [_level(last)] * len(fleet)
    elif alike.size:
        fleet = [fleet[number] for number in alike]
    sign = 1 if better == "higher" else -1
    medians, sds, counts = (
        np.array([getattr(one, name) for one in fleet], dtype=float)
        for name in ("median", "sd", "size")
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        deficit = np.where(medians > 0, sign * (1 - values / medians), 0.0)
        z = np.where((medians > 0) & (counts >= MIN_FLEET), sign * (values - medians) / sds, np.nan)
        slow = (z < Z_LIMIT) & (deficit >= MIN_DEFICIT)
    if MIN_GROSS <= len(values) <= FEW_NODES:
        slow |= _gross(values, better, noise)
    return Ranks(z, deficit, slow, tuple(fleet))


def _like(there: Bools) -> Ints:
    """Of each run, the run whose nodes its values are compared with; empty if there is none."""
    whole = np.flatnonzero(there.sum(axis=0) >= COVERS * len(there))
    if not whole.size:
        return whole
    before = np.searchsorted(whole, np.arange(there.shape[1]), side="right") - 1
    return whole[np.maximum(before, 0)]


def _level(column: Floats) -> Level:
    known = column[~np.isnan(column)]
    if not known.size:
        return Level(0.0, 0.0, 0)
    centre = float(np.median(known))
    return Level(centre, float(np.median(np.abs(known - centre))), known.size)


def _gross(values: Floats, better: str, noise: float) -> Bools:
    """Who lacks a fifth of the others' median, and more than they differ from each other."""
    sign = 1 if better == "higher" else -1
    found = np.zeros(values.shape, dtype=bool)
    for node in range(len(values)):
        others = np.delete(values, node, axis=0).T
        count = (~np.isnan(others)).sum(axis=1)
        centre = row_medians(others)
        mad = row_medians(np.abs(others - centre[:, None]))
        few = np.array([FEW.get(number, 1.1) for number in count.tolist()])
        sd = np.maximum(MAD_TO_SIGMA * few * mad, max(RESOLUTION, noise) * centre)
        with np.errstate(divide="ignore", invalid="ignore"):
            deficit = sign * (1 - values[node] / centre)
            far = sign * (values[node] - centre) < Z_LIMIT * sd
            found[node] = (count >= MIN_GROSS - 1) & far & (deficit >= CLEAR_DEFICIT)
    return found


def kinds(levels: Floats) -> Ints:
    """The kind of each node: 0 the most frequent. All 0 where there is only one.

    levels: the logarithm of where each node lies; NaN for a node that is left out, which is of
    the kind that it is nearest to.
    """
    found = np.zeros(levels.size, dtype=np.intp)
    known = np.flatnonzero(~np.isnan(levels))
    parts = _split(levels[known])
    if len(parts) < 2:
        return found
    parts.sort(key=lambda part: (-part.size, -float(levels[known][part].mean())))
    _give_back(levels[known], parts)
    for kind, part in enumerate(parts):
        found[known[part]] = kind
    return found


def _give_back(values: Floats, parts: list[Ints]) -> None:
    """A node far above its kind is a slow one of the next kind above."""
    order = sorted(range(len(parts)), key=lambda kind: float(np.median(values[parts[kind]])))
    for lower, upper in pairwise(order):
        part = parts[lower]
        above = values[part] - np.median(values[part])
        sd = MAD_TO_SIGMA * float(np.median(np.abs(above)))
        lost = above > max(-Z_LIMIT * sd, MIN_DEFICIT)
        parts[lower] = part[~lost]
        parts[upper] = np.sort(np.concatenate((parts[upper], part[lost])))


def _split(values: Floats) -> list[Ints]:
    """The indexes of each kind; a part that is two again is split again."""
    upper = _two(values)
    if upper is None:
        return [np.arange(values.size)]
    found = []
    for side in (np.flatnonzero(upper), np.flatnonzero(~upper)):
        found += [side[part] for part in _split(values[side])]
    return found


def _two(values: Floats) -> NDArray[np.bool_] | None:
    """Which values are of the upper kind; None if there is one kind."""
    n = values.size
    least = max(LEAST, LEAST_SHARE * n)
    everyone, values = values, _without_few(values, least)
    if n - values.size >= least or values.size < 2 * LEAST or float(np.ptp(values)) <= SAME:
        return None
    n = values.size
    share, low, high, sd = _fit(values, values > _cut(values))
    if high - low < APART * sd or not LEAST_SHARE <= share <= 1 - LEAST_SHARE:
        return None
    one = np.log(max(float(values.std()), SMALLEST)) * n + n / 2
    two = -_likelihood(values, share, low, high, sd)
    if 2 * (one - two) - 2 * log(n) < EVIDENCE:  # two more parameters: a level and a share
        return None
    cut = (low + high) / 2 - sd**2 / (high - low) * log(share / (1 - share))
    count = int((values > cut).sum())
    return everyone > cut if min(count, n - count) >= least else None


def _without_few(values: Floats, least: float) -> Floats:
    """Without the nodes that are so far from all others that the best cut parts only them."""
    while values.size >= 2 * LEAST and float(np.ptp(values)) > SAME:
        upper = values > _cut(values)
        count = int(upper.sum())
        if min(count, values.size - count) >= least:
            return values[_near(values, upper)]
        values = values[upper == (2 * count >= values.size)]
    return values


def _near(values: Floats, upper: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which values are not far from all others of their part: these would widen it."""
    near = np.ones(values.size, dtype=bool)
    for part in (upper, ~upper):
        away = np.abs(values[part] - np.median(values[part]))
        near[part] = away <= FAR * max(MAD_TO_SIGMA * float(np.median(away)), SMALLEST)
    return near


def _cut(values: Floats) -> float:
    """Where two parts have the least variance inside."""
    ranked = np.sort(values)
    below = np.arange(1, ranked.size)
    sums = np.cumsum(ranked)
    low, high = sums[:-1] / below, (sums[-1] - sums[:-1]) / (ranked.size - below)
    best = int(((high - low) ** 2 * below * (ranked.size - below)).argmax())
    return float(ranked[best] + ranked[best + 1]) / 2


def _fit(values: Floats, upper: NDArray[np.bool_]) -> tuple[float, float, float, float]:
    """Share of the upper kind, both levels, and their standard deviation."""
    weight = upper.astype(float)
    share = low = high = sd = 0.0
    for _ in range(ROUNDS):
        before = share, low, high
        share = float(weight.mean())
        high = float((weight * values).sum() / max(weight.sum(), SAME))
        low = float(((1 - weight) * values).sum() / max((1 - weight).sum(), SAME))
        within = weight * (values - high) ** 2 + (1 - weight) * (values - low) ** 2
        sd = max(float(np.sqrt(within.mean())), SMALLEST)
        if (
            np.allclose(before, (share, low, high), rtol=0, atol=1e-7)
            or not SAME < share < 1 - SAME
        ):
            break
        odds = log(share / (1 - share)) + (high - low) * (values - (high + low) / 2) / sd**2
        weight = 1 / (1 + np.exp(-np.clip(odds, -500, 500)))
    return share, low, high, sd


def _likelihood(values: Floats, share: float, low: float, high: float, sd: float) -> float:
    """The logarithm, without the constant of the normal distribution."""
    parts = [
        np.log(max(part, SAME)) - (values - level) ** 2 / (2 * sd**2)
        for part, level in ((share, high), (1 - share, low))
    ]
    return float(np.logaddexp(*parts).sum()) - values.size * log(sd)


LEAST_FALL = 0.03  # of several runs; of a single one CLEAR_FALL
FALSE_ALARM = 0.0005  # wanted: the share of healthy series with a fall of any node, of any length …
LENGTHS = 10  # … of which so many are independent (Bonferroni)
FEW_RUNS = (
    10.0  # noise known from n differences is uncertain itself: the limit grows by 1 + FEW / n
)
NEAR = 3.5  # standard errors or deviations: who is farther off did not do what all did
LOOKS = 3  # of looking at what all did without those that seem to have fallen
OTHERS = 3  # nodes; of fewer it is not known what all did
PAIRED = 10  # runs before and as many after: what loss could they show?


@dataclass(frozen=True)
class Falls:
    """Of each node: runs since it fell (0: it did not), the share that it lost, and its error.

    noise: the typical standard deviation from run to run, as a share. moved: what all nodes did in
    each run, as a share, against their own levels. scatter: as noise, but without that. shown: the
    smallest loss that PAIRED runs after as many can show; 0 where the scatter is not known.
    """

    runs: Ints
    loss: Floats
    error: Floats
    noise: float
    moved: Floats
    scatter: float
    shown: float


def falls(values: Floats, better: str) -> Falls:
    """Which nodes are lower, since some run, than they were before.

    values: (nodes, runs), the oldest run first, above 0; NaN where a node was not measured.
    better: higher or lower.
    """
    level = _logarithms(values, better)
    _, typical, differences = _noise(level)
    coarse = _coarse(level)
    errors = NormalDist().inv_cdf(1 - FALSE_ALARM / (LENGTHS * max(1, len(values))))
    limit = errors * (1 + FEW_RUNS / max(1, differences))
    limit_of_pairs = errors * (1 + FEW_RUNS / max(1, len(values) * (2 * PAIRED - 1)))
    fallen = np.zeros(len(values), dtype=bool)
    for _ in range(LOOKS):
        scan = _Scan.of(level, coarse, fallen)
        again = scan.greatest >= NEAR
        if (again == fallen).all() or 2 * np.count_nonzero(again) >= len(values):
            break
        fallen = again  # they hide what all others did
    found = scan.falls(limit, typical)
    if differences < FEW_RUNS or level.shape[1] < UNSTABLE_RUNS:
        return found
    return replace(found, shown=scan.shown(limit_of_pairs))


def _logarithms(values: Floats, better: str) -> Floats:
    """Higher is better."""
    with np.errstate(divide="ignore", invalid="ignore"):
        level = np.log(np.where(values > 0, values, np.nan))
    return level if better == "higher" else -level


def _noise(level: Floats) -> tuple[Floats, float, int]:
    """Standard deviation from run to run of each node, that of most, and of how many differences.

    Of differences of neighbours, so that a fall is not taken for noise.
    """
    if level.shape[1] < 2:
        return np.full(len(level), RESOLUTION), 0.0, 0
    between = np.abs(np.diff(newest_last(level), axis=1))
    count = (~np.isnan(between)).sum(axis=1)
    own = MAD_TO_SIGMA / np.sqrt(2) * row_medians(between, 0.0)
    known = own[count >= MIN_HISTORY - 1]
    typical = float(np.median(known)) if known.size else 0.0
    return np.maximum(own, max(typical, RESOLUTION)), typical, int(count.sum())


def _coarse(level: Floats) -> Floats:
    """Standard deviation of nodes most of whose runs give the same figure, as of two digits; or 0.

    The median of the differences is 0 there, so their squares count, but for the largest.
    """
    between = np.abs(np.diff(newest_last(level), axis=1))
    if not between.shape[1]:
        return np.zeros(len(level))
    count = (~np.isnan(between)).sum(axis=1)
    squares = np.nan_to_num(between) ** 2
    rest = np.maximum(squares.sum(axis=1) - squares.max(axis=1), 0.0)
    sd = np.sqrt(rest / np.maximum(count - 1, 1) / 2)
    found: Floats = np.where(row_medians(between, 0.0) == 0, sd, 0.0)
    return np.maximum(found, float(np.median(found)))


def newest_last(values: Floats) -> Floats:
    """Each row without its gaps in between: they come first, and the newest value is the last."""
    gaps = np.isnan(values)
    rows = np.flatnonzero(gaps.any(axis=1))
    if not rows.size:
        return values
    found, order = values.copy(), np.argsort(~gaps[rows], axis=1, kind="stable")
    found[rows] = np.take_along_axis(values[rows], order, axis=1)
    return found


@dataclass(frozen=True)
class _Scan:
    """All lengths of all nodes at once. rest: the newest run is the last; there: no gap.

    best: the length that differs most, less one, and greatest: by how many standard errors. factor:
    how much larger these are than those of independent runs.
    """

    rest: Floats
    there: NDArray[np.bool_]
    sd: Floats
    factor: float
    best: Ints
    greatest: Floats
    moved: Floats

    @staticmethod
    def of(level: Floats, coarse: Floats, fallen: NDArray[np.bool_]) -> _Scan:
        """coarse: the least sd of each node. fallen: who does not count in what all did."""
        centred = level - row_medians(level)[:, None]
        moved = _moved(centred[~fallen])
        rest = newest_last(centred - moved)
        sd = np.maximum(_noise(rest)[0], coarse)  # what all did hides no fall of one
        there = ~np.isnan(rest)
        score = np.clip(rest / sd[:, None], -2 * CLIP, 2 * CLIP)
        np.copyto(score, 0.0, where=~there)
        size, before, after = _differences(score, there)
        r = _memory(_without_fall(score, there, size, before, after))
        sd = sd / np.sqrt(1 - r)  # differences of neighbours that are alike show less of the noise
        factor = float(np.sqrt((1 + r) / (1 - r)))
        size *= np.sqrt(1 - r) / factor
        best = size.argmax(axis=1)
        greatest = np.take_along_axis(size, best[:, None], axis=1)[:, 0]
        return _Scan(rest, there, sd, factor, best, greatest, moved)

    def falls(self, limit: float, noise: float) -> Falls:
        """Those beyond a limit, each looked at by itself."""
        runs = np.zeros(len(self.rest), dtype=np.intp)
        loss, error = np.zeros(len(self.rest)), np.zeros(len(self.rest))
        for row in np.flatnonzero(self.greatest >= limit).tolist():
            known, length = self.rest[row, self.there[row]], int(self.best[row]) + 1
            one = _fall(known, length, float(self.sd[row]), self.factor, limit)
            if one is not None:
                runs[row], loss[row], error[row] = length, *one
        return Falls(runs, loss, error, noise, np.expm1(self.moved), self.scatter, 0.0)

    @property
    def scatter(self) -> float:
        """The typical standard deviation from run to run, without what all nodes did."""
        return float(np.median(self.sd)) if self.sd.size else 0.0

    def shown(self, limit: float) -> float:
        """The smallest loss that is as many standard errors of PAIRED runs after as many."""
        return float(-np.expm1(-limit * self.scatter * self.factor * np.sqrt(2 / PAIRED)))


def _moved(centred: Floats) -> Floats:
    """What all nodes did in each run, against their own levels."""
    measured = (~np.isnan(centred)).sum(axis=0)
    return np.where(measured >= OTHERS, row_medians(centred.T, 0.0), 0.0)


def _differences(score: Floats, there: NDArray[np.bool_]) -> tuple[Floats, Floats, Floats]:
    """By how many standard errors the newest 1, 2, 3 … runs are lower than those before them.

    And the means of both.
    """
    now: Floats = np.cumsum(score[:, ::-1], axis=1)
    count: Floats = np.cumsum(there[:, ::-1], axis=1, dtype=float)
    total, runs = now[:, -1:], count[:, -1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        before, after = (total - now) / (runs - count), now / count
        size = (before - after) / np.sqrt(1 / count + 1 / (runs - count))
    size[(runs - count < MIN_HISTORY) | ~there[:, ::-1]] = 0.0
    return size, before, after


def _without_fall(
    score: Floats, there: NDArray[np.bool_], size: Floats, before: Floats, after: Floats
) -> Floats:
    """What is left of each row without its greatest difference; 0 in gaps."""
    if not size.shape[1]:
        return score
    best = np.abs(size).argmax(axis=1)[:, None]
    is_new = np.arange(score.shape[1]) >= score.shape[1] - 1 - best
    levels = [np.nan_to_num(np.take_along_axis(part, best, axis=1)) for part in (after, before)]
    return np.where(there, score - np.where(is_new, *levels), 0.0)


def _memory(left: Floats) -> float:
    """Autocorrelation of neighbours, of all rows together; 0 to MAX_MEMORY.

    With the correction for short rows of Marriott and Pope (Biometrika 41, 1954).
    """
    small = np.clip(left, -CLIP / 2, CLIP / 2)
    squares = float((small**2).sum())
    if squares <= 0:
        return 0.0
    r = float((small[:, 1:] * small[:, :-1]).sum()) / squares
    return float(min(max(r + (1 + 4 * r) / left.shape[1], 0.0), MAX_MEMORY))


def _fall(
    known: Floats, length: int, sd: float, factor: float, limit: float
) -> tuple[float, float] | None:
    """Loss and error of one node that may have fallen `length` runs ago, by medians."""
    before, now = known[:-length], known[-length:]
    size = float(np.median(before) - np.median(now))
    error = sd * factor * np.sqrt(1 / before.size + 1 / now.size)
    loss = -np.expm1(-size)
    least = CLEAR_FALL if length == 1 else LEAST_FALL
    is_back = now[-1] - np.median(before) > -size / 2 and now[-1] - np.median(now) > NEAR * sd
    if loss < least or size < limit * error or is_back:
        return None
    return float(loss), float(error)
