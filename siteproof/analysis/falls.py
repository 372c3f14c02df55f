"""Nodes that fell against their own past: since which run, by how much, and how certain that is.

Each node is its own control (a paired test), so that no share of bad nodes hides another. What all
nodes did in a run is taken away first: their median.
Then every number of newest runs is compared with those before them, by the difference of two means
in standard errors (CUSUM: Page, Continuous Inspection Schemes, Biometrika 41, 1954), which are
corrected for the autocorrelation of the runs (as of a process
AR(1), see siteproof.analysis.spread).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from siteproof.analysis.screen import row_medians
from siteproof.analysis.slow_nodes import (
    CLEAR_FALL,
    MAD_TO_SIGMA,
    MIN_HISTORY,
    RESOLUTION,
    UNSTABLE_RUNS,
)
from siteproof.analysis.spread import CLIP, MAX_MEMORY

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

LEAST = 0.03  # of several runs; of a single one CLEAR_FALL
FALSE_ALARM = 0.0005  # wanted: the share of healthy series with a fall of any node, of any length …
LENGTHS = 10  # … of which so many are independent (Bonferroni)
FEW = 10.0  # noise known from n differences is uncertain itself: the limit grows by 1 + FEW / n
NEAR = 3.5  # standard errors or deviations: who is farther off did not do what all did
ROUNDS = 3  # of looking at what all did without those that seem to have fallen
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
    limit = errors * (1 + FEW / max(1, differences))
    limit_of_pairs = errors * (1 + FEW / max(1, len(values) * (2 * PAIRED - 1)))
    fallen = np.zeros(len(values), dtype=bool)
    for _ in range(ROUNDS):
        scan = _Scan.of(level, coarse, fallen)
        again = scan.greatest >= NEAR
        if (again == fallen).all() or 2 * np.count_nonzero(again) >= len(values):
            break
        fallen = again  # they hide what all others did
    found = scan.falls(limit, typical)
    if differences < FEW or level.shape[1] < UNSTABLE_RUNS:
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
    least = CLEAR_FALL if length == 1 else LEAST
    is_back = now[-1] - np.median(before) > -size / 2 and now[-1] - np.median(now) > NEAR * sd
    if loss < least or size < limit * error or is_back:
        return None
    return float(loss), float(error)
