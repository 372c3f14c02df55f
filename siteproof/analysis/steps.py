"""What is reported of a change of level: its size, how sure it is, whether it is a unit's factor.

Whether there is one, `segments` decides; a fleet's page is decided by `reported`.

How small a change of level could have been found follows from the scatter and the number of runs:
the difference of two means has a standard error, and a change is reported from so many of them on;
one that is larger by the normal quantile of the wanted probability is found with it: Lachin,
Controlled Clinical Trials 2 (1981), section 3.

Slow drift: a slope that no step explains.

Theil (1950) and Sen, J. Am. Stat. Assoc. 63 (1968): the median of the slopes of all pairs, and the
interval from Kendall's statistic, widened where neighbouring runs resemble each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import erfc, inf, log, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from siteproof.analysis.segments import BORROWED, CHANCE, DIP, ERRORS, LONGEST_DIP, Change
from siteproof.analysis.spread import CLIP, YEAR, Floats, long_run, middle, robust_sd, timed

MIN_RELATIVE = 0.02  # a smaller change is worth no alert
FALSE = 0.05  # of what a page reports: the expected share that is wrong
UNITS = (1000.0, 1024.0, 1024**2 / 1000**2)  # k and Ki, M and Mi: factors of a mistaken unit
WIDE = 0.01  # of a change from the factor of k or Ki
ROUNDED = 0.0005  # of one from that of M and Mi, or three of its standard errors …
APART = 0.0013  # … which are less than what lies between it and an ordinary change of …
ORDINARY = (1.05, 0.95, 1 / 1.05)  # … which these must not explain as well


def unit_factor(change: Change) -> float:
    """The factor between two units that explains a change of level, or 0.

    That of M and Mi is nearly a gain of 5 %: it is one only where the change is that exact.
    """
    if change.before == 0 or change.after / change.before <= 0:
        return 0.0
    ratio = change.after / change.before
    error = abs(log(ratio)) / change.errors if change.errors else 0.0
    near = max(ROUNDED, 3 * error)
    exact = near <= APART and not any(_is_near(ratio, plain, near) for plain in ORDINARY)
    for factor in (*UNITS, *(1 / unit for unit in UNITS)):
        wide = max(factor, 1 / factor) > 2
        if _is_near(ratio, factor, WIDE if wide else near) and (wide or exact):
            return factor
    return 0.0


def _is_near(ratio: float, factor: float, near: float) -> bool:
    return abs(log(ratio / factor)) <= near


def share(before: float, after: float) -> float:
    """A change as a share of what was before, signed."""
    if before == after:
        return 0.0
    return (after - before) / abs(before) if before else (inf if after > before else -inf)


def confidence(chance: float) -> str:
    """In words, the share of series without a change that do not look like this."""
    return "above 99.9 %" if chance < 0.001 else f"{1 - chance:.1%}".replace("%", " %")


def most_chance(series: int) -> float:
    """The largest chance with which a change is reported that is the only one in so many series."""
    places = np.arange(1, max(1, series) + 1)
    return float(FALSE / places[-1] / np.sum(1 / places))


def reported(chances: Sequence[float], series: int) -> NDArray[np.bool_]:
    """Which changes of those in so many series are reported, so that 5 % of them are false at most.

    chances: of each change, for its series. Of a page without any change, 1 in 20 reports one.
    Benjamini and Yekutieli, Ann. Stat. 29 (2001), for tests that depend on each other in any way.
    """
    if not chances:
        return np.zeros(0, dtype=bool)
    found = np.asarray(chances)
    ordered, alone = np.sort(found), most_chance(max(series, found.size))
    kept = ordered[ordered <= alone * np.arange(1, found.size + 1)]
    return np.asarray(found <= kept.max(initial=-inf))


POWER = 0.9  # wanted probability of being found


def smallest_change(
    scatter: float, before: int, after: int, factor: float = 1.0, chance: float = CHANCE
) -> float:
    """The smallest change, as a share of the level, that is found with probability POWER.

    scatter: coefficient of variation of one run. before, after: runs at each level. factor: as of
    `spread.variance_factor`, for neighbouring runs that resemble each other. chance: with which a
    change in a series is reported at most, see `steps.most_chance`. inf: too few runs.
    """
    if min(before, after) < DIP:
        return inf
    error = scatter * sqrt(factor * (1 / before + 1 / after))
    least = max(_errors(before, after, min(chance, CHANCE)) * error, MIN_RELATIVE)
    return least + NormalDist().inv_cdf(POWER) * error


def _errors(before: int, after: int, chance: float) -> float:
    """Standard errors that a change must have: those of Welch's test and of Chernoff's bound."""
    from scipy.special import stdtrit

    places = before + after
    parts = [(1 / side, min(BORROWED + side - 1, places - 2)) for side in (before, after)]
    free = sum(part for part, _ in parts) ** 2 / sum(part**2 / own for part, own in parts)
    errors = max(ERRORS, -float(stdtrit(free, chance / places / 2)))
    if min(before, after) <= LONGEST_DIP:
        errors = max(errors, sqrt(2 * log(places / chance)))
    return errors


MAX_ALL_PAIRS = 200  # values whose pairs are all compared; of more, a part …
MAX_PLACES = (
    1000  # … and of more than these, only medians of neighbours: memory grows with the pairs
)
FEWEST = 8  # values; of fewer no slope is computed
LONG_ENOUGH = 30  # values from which on a drift is an alert
LOOK = 2.0  # standard errors of a correlation, below which no slope is sought
INTERVAL = 3.29  # of the interval: 99.9 %
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
    half = INTERVAL * error / float(np.sum(n * (n - 1)))  # as a share of the slopes, by rank
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
