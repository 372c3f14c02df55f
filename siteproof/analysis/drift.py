"""Slow drift: a slope that no step explains.

Theil (1950) and Sen, J. Am. Stat. Assoc. 63 (1968): the median of the slopes of all pairs, and the
interval from Kendall's statistic, widened where neighbouring runs resemble each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

from siteproof.analysis.scale import YEAR, Floats, robust_sd, timed, variance_factor
from siteproof.analysis.season import Season, season

__all__ = ["NO_DRIFT", "Drift", "Season", "season", "slope", "theil_sen"]

MOST = 400  # values whose pairs are all compared; more are thinned by medians of neighbours
FEWEST = 8  # values without which no slope is told
WIDE = 3.29  # of the interval: 99.9 %
DRIFT_SD = 1.0  # robust sd that a drift must make over the whole time


@dataclass(frozen=True)
class Drift:
    """A slope. per_year, low, high: in the unit of the values, a year; 99.9 % interval.

    relative_per_year: of the median. total: over the whole time. significant: the interval has no
    zero, and the total exceeds the scatter.
    """

    per_year: float
    relative_per_year: float
    total: float
    low: float
    high: float
    significant: bool


NO_DRIFT = Drift(0.0, 0.0, 0.0, 0.0, 0.0, False)


def slope(times: ArrayLike, values: ArrayLike) -> Drift:
    """Theil-Sen slope. times: datetime64, or seconds; values that are not finite count as gaps."""
    seconds, known = timed(times, values)[:2]
    if known.size < FEWEST or seconds[0] == seconds[-1]:
        return NO_DRIFT
    x, y = _thinned((seconds - seconds[0]) / YEAR, known)
    per_year, low, high = theil_sen(x, y)
    centre = float(np.median(known))
    left = known - centre - per_year * ((seconds - seconds[0]) / YEAR)
    sd = robust_sd(left - np.median(left), float(np.abs(known).max()))
    span = float(seconds[-1] - seconds[0]) / YEAR
    significant = not low <= 0 <= high and abs(per_year * span) > DRIFT_SD * sd
    return Drift(per_year, per_year / abs(centre) if centre else 0.0, per_year * span,
                 low, high, significant)


def theil_sen(x: Floats, y: Floats) -> tuple[float, float, float]:
    """Slope and the ends of its 99.9 % interval; all 0 where no two x differ."""
    first, second = np.triu_indices(x.size, 1)
    run = x[second] - x[first]
    slopes = (y[second] - y[first])[run != 0] / run[run != 0]
    if slopes.size == 0:
        return 0.0, 0.0, 0.0
    middle = float(np.median(slopes))
    left = y - middle * x
    left = left - np.median(left)
    factor = variance_factor(left, robust_sd(left, float(np.abs(y).max())))
    n = x.size
    width = WIDE * sqrt(factor * n * (n - 1) * (2 * n + 5) / 18)
    ends = [int((slopes.size - width) / 2), int((slopes.size + width) / 2) + 1]
    low, high = (min(max(end, 0), slopes.size - 1) for end in ends)
    parts = np.partition(slopes, (low, high))
    return middle, float(parts[low]), float(parts[high])


def _thinned(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """At most MOST points: medians of neighbours, so that pairs do not cost the square of years."""
    size = -(-x.size // MOST)
    if size == 1:
        return x, y
    whole = x.size // size * size
    cut = x.size - whole  # the oldest, fewer than a group
    return (np.median(x[cut:].reshape(-1, size), axis=1),
            np.median(y[cut:].reshape(-1, size), axis=1))


