"""Steps in a series of runs: since when is it another level?

Two stages, as 10,000 nodes have 200,000 series. The screen looks at all of them at once: CUSUM
(Page, Biometrika 41, 1954) and MOSUM (Chu, Hornik, Kuan, Biometrika 82, 1995) of robustly scaled,
clipped values. What it flags is confirmed by kernel change-point detection with a Gaussian kernel
(Arlot, Celisse, Harchaoui, JMLR 20, 2019), which does not mind outliers.

A change point is told only where the medians differ by more than the scatter explains, also where
neighbouring runs resemble each other. A series that flips between two levels has modes, not steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, log, pi, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from siteproof.analysis.scale import (
    CLIP,
    MAD_TO_SIGMA,
    MEAN_TO_SIGMA,
    SAME,
    Floats,
    finite,
    robust_sd,
    variance_factor,
)

THRESHOLD = 6.0  # of the screen: independent normal values reach 5 in one series of thousands
WIDTHS = (10, 20, 45)  # of the moving sums, in runs
BATCH = 2048  # series at a time: what fits the processor's cache and little memory
LEAST = 5  # runs on each side of a step; fewer are provisional
LONGEST = 1000  # the newest runs that are searched: memory and time are quadratic
ERRORS = 4.5  # standard errors of the medians' difference that a step must have …
EFFECT = 1.2  # … and robust sd, below which a step hides in the scatter
MIN_RELATIVE = 0.02  # a smaller step is worth no alert
MIN_SD = 3.0  # nor one of fewer robust sd
CONTROL_SD = 3.0  # limits of control around the median
LAST, OUTSIDE = 3, 2  # two of the last three runs outside, on one side: out of control
FLIPS = 4  # change points between the same two levels that are modes, not steps


@dataclass(frozen=True)
class Step:
    """One step. before, after: medians. relative: of before, signed. robust_sd: around the levels.

    confidence: in words, of the share of a series without a step that would not look like this.
    """

    before: float
    after: float
    relative: float
    robust_sd: float
    n_before: int
    n_after: int
    confidence: str

    @property
    def provisional(self) -> bool:
        """Whether too few runs stand on a side."""
        return min(self.n_before, self.n_after) < LEAST


def screen(values: ArrayLike, *, threshold: float = THRESHOLD) -> NDArray[np.bool_]:
    """Which series deserve a closer look. values: (series, points), NaN is a gap."""
    table = np.asarray(values)
    if table.ndim != 2:
        raise ValueError("screen wants a table of series and points")
    found = np.zeros(len(table), dtype=bool)
    for begin in range(0, len(table), BATCH):
        found[begin:begin + BATCH] = _flagged(finite(table[begin:begin + BATCH]), threshold)
    return found


def find(values: ArrayLike, *, min_size: int = LEAST) -> list[int]:
    """The index of the first run after each confirmed step; of the newest LONGEST runs.

    Values that are not finite count as gaps. Empty for a series with modes: see `modes`.
    """
    array = finite(np.asarray(values, dtype=float).ravel())
    known = np.flatnonzero(~np.isnan(array))[-LONGEST:]
    series = _Series(array[known], min_size)
    return [] if series.flips else [int(known[at]) for at in series.steps]


def left_out(values: ArrayLike) -> int:
    """How many of the oldest runs are not searched."""
    return max(0, int(np.isfinite(np.asarray(values, dtype=float)).sum()) - LONGEST)


def modes(values: ArrayLike, *, min_size: int = LEAST) -> tuple[float, float] | None:
    """The two levels between which a series flips to and fro, the lower first; else None."""
    array = finite(np.asarray(values, dtype=float).ravel())
    series = _Series(array[~np.isnan(array)][-LONGEST:], min_size)
    return series.levels if series.flips else None


def describe(
    values: ArrayLike, index: int, before_from: int = 0, after_to: int | None = None
) -> Step:
    """The step at `index`: of the values from `before_from`, up to but without `after_to`."""
    array = finite(np.asarray(values, dtype=float).ravel())
    sides = [part[~np.isnan(part)] for part in (array[before_from:index], array[index:after_to])]
    if not all(part.size for part in sides):
        raise ValueError("a step has values on both sides")
    before, after = middles = [float(np.median(part)) for part in sides]
    away = np.concatenate([part - mid for part, mid in zip(sides, middles, strict=True)])
    sd = robust_sd(away, max(abs(before), abs(after)))
    counts = [part.size for part in sides]
    errors = _errors(after - before, sd, variance_factor(away, sd), *counts)
    return Step(before, after, _relative(before, after), sd, *counts,
                _confidence(errors, sum(counts)))


def worth_an_alert(step: Step) -> bool:
    """Whether a step is large enough: 2 %, and 3 robust sd. Provisional ones are, too."""
    least = MIN_SD * step.robust_sd / abs(step.before) if step.before else 0.0
    return step.before != step.after and abs(step.relative) >= max(MIN_RELATIVE, least)


def out_of_control(values: ArrayLike, region: slice | Sequence[int] | NDArray) -> list[int]:
    """Those of the last three runs that are outside, if they are two or more, on one side.

    region: the control region, as an index into values; outside is beyond its median -+ 3 robust
    sd. Empty if it has fewer than five values.
    """
    array = finite(np.asarray(values, dtype=float).ravel())
    control = array[region]
    control = control[~np.isnan(control)]
    if control.size < LEAST:
        return []
    centre = float(np.median(control))
    limit = CONTROL_SD * robust_sd(control - centre, abs(centre)) + SAME * abs(centre)
    last = np.flatnonzero(~np.isnan(array))[-LAST:]
    for side in (1, -1):
        outside = [int(at) for at in last if side * (array[at] - centre) > limit]
        if len(outside) >= OUTSIDE:
            return outside
    return []


@dataclass(frozen=True)
class _Series:
    """Values without gaps, and the steps in them."""

    values: Floats
    min_size: int

    @cached_property
    def steps(self) -> list[int]:
        """What stands the test of its own scatter, the weakest given up first."""
        found = _change_points(self.values, self.min_size)
        while found:
            strength = [self._strength(found, at) for at in range(len(found))]
            weakest = min(range(len(found)), key=strength.__getitem__)
            if strength[weakest] >= 1:
                break
            del found[weakest]
        return found

    @cached_property
    def levels(self) -> tuple[float, float]:
        """The medians of the lower and of the higher segments."""
        middles = [float(np.median(part)) for part in np.split(self.values, self.steps)]
        cut = (min(middles) + max(middles)) / 2
        low, high = ([m for m in middles if (m > cut) == up] for up in (False, True))
        return float(np.median(low)), float(np.median(high or low))

    @cached_property
    def flips(self) -> bool:
        """Whether all change points lie between the same two levels, to and fro."""
        if len(self.steps) < FLIPS:
            return False
        middles = np.array([float(np.median(part)) for part in np.split(self.values, self.steps)])
        low, high = self.levels
        gap = high - low
        near = np.minimum(abs(middles - low), abs(middles - high)) < gap / 4
        return bool(near.all() and (np.diff(middles > (low + high) / 2) != 0).all())

    def _strength(self, found: list[int], at: int) -> float:
        """1 or more: a step. Of the smaller of its two tests."""
        parts = np.split(self.values, found)
        away = np.concatenate([part - np.median(part) for part in parts])
        sd = robust_sd(away, float(np.abs(self.values).max()))
        before, after = parts[at], parts[at + 1]
        change = float(np.median(after) - np.median(before))
        if sd == 0:
            return inf if change else 0.0
        errors = _errors(change, sd, variance_factor(away, sd), before.size, after.size)
        return min(errors / ERRORS, abs(change) / sd / EFFECT)


def _change_points(values: Floats, min_size: int) -> list[int]:
    if values.size < 2 * min_size or not (spread := np.ptp(values)):
        return []
    scaled = (values - np.median(values)) / spread
    gamma = _gamma(scaled)
    from ruptures import KernelCPD  # half a second, which only those who search should pay

    search = KernelCPD("rbf", min_size=min_size, params={"gamma": gamma})
    return search.fit(scaled[:, None]).predict(pen=log(values.size))[:-1]


def _gamma(scaled: Floats) -> float:
    """The median heuristic: 1 / median squared distance of pairs, of those that differ."""
    distances = np.square(scaled[:, None] - scaled[None, :]).ravel()
    middle = float(np.median(distances))
    if middle <= SAME:
        middle = float(np.mean(distances))
    return 1 / middle


def _errors(change: float, sd: float, factor: float, before: int, after: int) -> float:
    """How many standard errors of a difference of medians."""
    if sd == 0:
        return inf if change else 0.0
    return abs(change) / (sd * sqrt(factor * pi / 2 * (1 / before + 1 / after)))


def _relative(before: float, after: float) -> float:
    if before == after:
        return 0.0
    return (after - before) / abs(before) if before else (inf if after > before else -inf)


def _confidence(errors: float, places: int) -> str:
    """Chance that one of so many places looks like that by chance, in words."""
    from scipy.special import stdtr  # as late as ruptures

    chance = min(1.0, 2 * places * float(stdtr(max(1, places - 2), -errors)))
    return "above 99.9 %" if chance < 0.001 else f"{1 - chance:.1%}".replace("%", " %")


def _flagged(table: Floats, threshold: float) -> NDArray[np.bool_]:
    """One batch: the greatest of all sums beside the threshold."""
    scaled, there = _scaled(table)
    flagged = np.zeros(len(table), dtype=bool)
    for statistic in _statistics(scaled, there):
        flagged |= statistic > threshold
    return flagged


def _scaled(table: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Robust z, clipped, 0 in a gap; and where there is a value."""
    there = ~np.isnan(table)
    if table.shape[1] == 0 or not there.any():
        return np.zeros_like(table), there
    centre = _medians(table)
    away = table - centre[:, None]
    size = np.abs(np.where(there, table, 0)).max(axis=1)
    sd = MAD_TO_SIGMA * _medians(np.abs(away))
    np.copyto(away, 0.0, where=~there)
    count = np.maximum(there.sum(axis=1), 1)
    mean = MEAN_TO_SIGMA * np.abs(away).sum(axis=1) / count
    sd = np.where(sd > SAME * size, sd, mean)
    quiet = sd <= SAME * size
    return np.clip(np.where(quiet[:, None], 0, away / np.where(quiet, 1, sd)[:, None]),
                   -CLIP, CLIP), there


def _medians(table: Floats) -> Floats:
    """Of each row without its NaN, which sort last; 0 for an empty row."""
    count = table.shape[1] - np.isnan(table).sum(axis=1)
    ranked = np.sort(table, axis=1)
    rows = np.arange(len(table))
    low, high = np.maximum(count - 1, 0) // 2, np.minimum(count // 2, table.shape[1] - 1)
    return np.where(count > 0, (ranked[rows, low] + ranked[rows, high]) / 2, 0.0)


def _statistics(scaled: Floats, there: NDArray[np.bool_]) -> Iterator[Floats]:
    """CUSUM and each MOSUM: the greatest standardised difference of two means, per series."""
    zero = np.zeros((len(scaled), 1))
    sums = np.hstack([zero, np.cumsum(scaled, axis=1)])
    counts = np.hstack([zero, np.cumsum(there, axis=1)])
    points = scaled.shape[1]
    if points < 2:
        return
    yield _difference(sums[:, 1:-1], counts[:, 1:-1],
                      sums[:, -1:] - sums[:, 1:-1], counts[:, -1:] - counts[:, 1:-1])
    for width in WIDTHS:
        if points < 2 * width:
            break
        left, right = slice(0, points - 2 * width + 1), slice(2 * width, points + 1)
        middle = slice(width, points - width + 1)
        yield _difference(sums[:, middle] - sums[:, left], counts[:, middle] - counts[:, left],
                          sums[:, right] - sums[:, middle], counts[:, right] - counts[:, middle])


def _difference(left: Floats, n_left: Floats, right: Floats, n_right: Floats) -> Floats:
    """The greatest of |mean - mean| / sqrt(1/n + 1/n) in each row; 0 where a side is empty."""
    some = (n_left > 0) & (n_right > 0)
    a, b = np.where(some, n_left, 1), np.where(some, n_right, 1)
    return np.where(some, np.abs(left / a - right / b) / np.sqrt(1 / a + 1 / b), 0).max(axis=1)
