"""Slow drift: a slope that no step explains.

Theil (1950) and Sen, J. Am. Stat. Assoc. 63 (1968): the median of the slopes of all pairs, and the
interval from Kendall's statistic, widened where neighbouring runs resemble each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import erfc, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from siteproof.analysis.spread import CLIP, YEAR, Floats, long_run, middle, robust_sd, timed

MAX_ALL_PAIRS = 200  # values whose pairs are all compared; of more, a part …
MAX_PLACES = (
    1000  # … and of more than these, only medians of neighbours: memory grows with the pairs
)
FEWEST = 8  # values; of fewer no slope is computed
LONG_ENOUGH = 30  # values from which on a drift is an alert
LOOK = 2.0  # standard errors of a correlation, below which no slope is sought
WIDE = 3.29  # of the interval: 99.9 %
MIN_RELATIVE = 0.02  # of the median, over the whole time: less is worth no alert
DRIFT_SD = 1.0  # robust sd that a drift must make over the whole time


@dataclass(frozen=True)
class Drift:
    """A slope. per_year, low, high: in the unit of the values, a year; 99.9 % interval.

    total: over the whole time; relative: as a share of the median. significant: the interval has no
    zero, and the total exceeds the scatter. chance: of such a slope in a series without one, by
    Kendall's statistic with its variance widened: Hamed and Rao, J. Hydrology 204 (1998).
    """

    per_year: float
    relative: float
    total: float
    low: float
    high: float
    significant: bool
    chance: float = 1.0


NO_DRIFT = Drift(0.0, 0.0, 0.0, 0.0, 0.0, False, 1.0)


def slope(
    times: ArrayLike, values: ArrayLike, steps: Sequence[int] = (), factor: float = 1.0
) -> Drift:
    """Theil-Sen slope. times: datetime64, or seconds; values that are not finite count as gaps.

    steps: among the values without gaps, by time; then only pairs between two steps are compared.
    factor: how many times the variance of a mean exceeds that of independent values, at least.
    """
    seconds, known, _ = timed(times, values)
    if known.size < FEWEST or seconds[0] == seconds[-1]:
        return NO_DRIFT
    years = (seconds - seconds[0]) / YEAR
    segments = np.searchsorted(np.asarray(steps, dtype=np.intp), np.arange(known.size), "right")
    per_year, low, high, chance = _theil_sen(*_few(years, known, segments), factor)
    sd = robust_sd(_away(years, known, segments, per_year), float(np.abs(known).max()))
    total = per_year * float(years[-1])
    centre = abs(middle(known))
    return Drift(
        per_year,
        total / centre if centre else 0.0,
        total,
        low,
        high,
        not low <= 0 <= high and abs(total) > DRIFT_SD * sd,
        chance,
    )


def worth_an_alert(drift: Drift) -> bool:
    """Whether a drift is proven, and large enough."""
    return drift.significant and abs(drift.relative) >= MIN_RELATIVE


def may_drift(values: Floats) -> bool:
    """Whether a slope is worth the look: by the correlation of clipped values with their order.

    It leaves out only what `slope` would not call significant, but for rare cases.
    """
    away = values - middle(values)
    sd = robust_sd(away, float(np.abs(values).max(initial=0.0)))
    if sd == 0:
        return False
    z = np.clip(away / sd, -CLIP, CLIP)
    z -= z.mean()
    order = np.arange(z.size) - (z.size - 1) / 2
    r = float(z @ order) / sqrt(float(z @ z) * float(order @ order))
    return abs(r) * sqrt(z.size) > LOOK


def _few(
    x: Floats, y: Floats, segments: NDArray[np.intp]
) -> tuple[Floats, Floats, NDArray[np.intp]]:
    """At most as many places as are compared in pairs: medians of neighbours in a segment."""
    size = -(-x.size // MAX_PLACES)
    if size == 1:
        return x, y, segments
    begins = np.searchsorted(segments, np.arange(int(segments[-1]) + 2))
    bounds = [
        slice(at, min(at + size, end))
        for begin, end in pairwise(begins.tolist())
        for at in range(begin, end, size)
    ]
    return (
        np.array([middle(x[some]) for some in bounds]),
        np.array([middle(y[some]) for some in bounds]),
        np.array([segments[some.start] for some in bounds]),
    )


def _away(x: Floats, y: Floats, segments: NDArray[np.intp], slope: float) -> Floats:
    """What a slope leaves of the values, around the median of each segment."""
    left = y - slope * x
    parts = (left[segments == one] for one in range(int(segments[-1]) + 1))
    return np.concatenate([part - middle(part) for part in parts])


def _theil_sen(
    x: Floats, y: Floats, segments: NDArray[np.intp], least: float = 1.0
) -> tuple[float, float, float, float]:
    """Slope, ends of its 99.9 % interval, and chance; 0 where no two x differ."""
    first, second = _pairs(x.size)
    use = (x[first] != x[second]) & (segments[first] == segments[second])
    first, second = first[use], second[use]
    if not first.size:
        return 0.0, 0.0, 0.0, 1.0
    slopes = (y[second] - y[first]) / (x[second] - x[first])
    slope = float(np.median(slopes))
    away = _away(x, y, segments, slope)
    n = np.bincount(segments)
    factor = max(least, long_run(away, robust_sd(away, float(np.abs(y).max())), 1 + n.size))
    error = sqrt(factor * float(np.sum(n * (n - 1) * (2 * n + 5))) / 18)
    half = WIDE * error / float(np.sum(n * (n - 1)))  # as a share of the slopes, by rank
    low, high = (
        min(max(int(slopes.size * share), 0), slopes.size - 1) for share in (0.5 - half, 0.5 + half)
    )
    parts = np.partition(slopes, (low, high))
    pairs = float(np.sum(n * (n - 1))) / 2
    z = abs(float(np.sign(slopes).mean())) * pairs / error
    return slope, float(parts[low]), float(parts[high]), erfc(z / sqrt(2))


@lru_cache(maxsize=8)
def _pairs(size: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """All pairs of so many values; of more than MAX_ALL_PAIRS every second, third … of them."""
    first, second = np.triu_indices(size, 1)
    if size <= MAX_ALL_PAIRS:
        return first, second
    use = (first + second) % -(-size // MAX_ALL_PAIRS) == 0
    return first[use], second[use]
