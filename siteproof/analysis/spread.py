"""Where values lie and how far they scatter, so that no outlier decides it.

Where more than half of the values are equal the median absolute deviation is 0 and useless;
then the mean absolute deviation stands in (Iglewicz and Hoaglin, How to Detect and Handle Outliers,
1993).
"""

from __future__ import annotations

import warnings
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from siteproof.analysis.slow_nodes import MAD_TO_SIGMA

Floats = NDArray[np.float64]

MEAN_TO_SIGMA = 1.2533  # of the mean absolute deviation, for normally distributed values
YEAR = 365.2425 * 86400.0  # seconds
SAME = 1e-9  # of the largest value: closer than that, values differ by arithmetic only
LARGEST = 1e60  # of figures; their squares and differences are numbers, too
CLIP = 6.0  # robust sd: beyond that, a larger distance counts no more
WILD = 5.0  # sd from both neighbours: a value that is far off alone
TIGHT = 3.5  # robust sd at which values are clipped for a mean
BESIDE = 7  # values on each side in a running median
FEW_LAGS = 4  # values twice of which show no autocorrelation, nor a scatter of their own
MAX_MEMORY = 0.8  # autocorrelation above which a series wanders, and no factor mends that


def finite(values: ArrayLike) -> Floats:
    """The values as floats, with NaN where one is none that can have been measured."""
    array = np.array(values, dtype=float)
    size = np.abs(array)
    array[~(size <= LARGEST)] = np.nan
    array[size < 1 / LARGEST] = 0.0
    return array


def timed(times: ArrayLike, values: ArrayLike) -> tuple[Floats, Floats, NDArray[np.intp]]:
    """Seconds, values and where they were, by time and without gaps.

    times: seconds, datetime64 or datetimes; a value that is not finite is a gap.
    """
    seconds, known = as_seconds(times), finite(values).ravel()
    if seconds.size != known.size:
        raise ValueError("as many times as values")
    there = np.flatnonzero(~np.isnan(seconds) & ~np.isnan(known))
    order = there[np.argsort(seconds[there], kind="stable")]
    return seconds[order], known[order], order


def as_seconds(times: ArrayLike) -> Floats:
    """Seconds since 1970 of seconds, datetime64 or datetimes; NaN for an invalid time."""
    moments = np.asarray(times).ravel()
    if moments.dtype.kind == "O":
        moments = np.array([m.timestamp() if hasattr(m, "timestamp") else m for m in moments])
    if moments.dtype.kind == "M":
        gaps = np.isnat(moments)
        moments = moments.astype("datetime64[us]").astype(float) / 1e6
        moments[gaps] = np.nan
    return finite(moments)


def middles(values: Floats) -> Floats:
    """The median of each row without gaps, as that of numpy, which is slow for few values."""
    ordered, size = np.sort(values), values.shape[-1]
    found: Floats = (ordered[..., (size - 1) // 2] + ordered[..., size // 2]) / 2
    return found


def middle(values: Floats) -> float:
    """The median of one or more values without gaps."""
    return float(middles(values))


def robust_sd(deviations: Floats, size: float) -> float:
    """Robust standard deviation of values around their levels; 0 if they are all equal.

    deviations: value minus level, no NaN. size: the largest value, for what is arithmetic only.
    """
    if deviations.size == 0:
        return 0.0
    away = np.abs(deviations)
    sd = MAD_TO_SIGMA * middle(away)
    if sd <= SAME * size:
        sd = MEAN_TO_SIGMA * float(np.mean(away))
    return sd if sd > SAME * size else 0.0


@dataclass(frozen=True)
class Typical:
    """What series of one kind usually do, as one of them may be too short to show it.

    noise: robust sd from run to run, as a share of the level. factor: see `variance_factor`.
    far: how far values lie that are far off alone, as shares of the level, rising; negative below
    it. count: of all values; 0 where nothing is known.
    """

    noise: float = 0.0
    factor: float = 1.0
    far: tuple[float, ...] = ()
    count: int = 0

    def wild(self, depth: float) -> float:
        """The share of values that are far off alone by half of that share, and to that side."""
        least = depth / 2
        below = bisect_right(self.far, least) if least < 0 else 0
        above = len(self.far) - bisect_left(self.far, least) if least > 0 else 0
        return (below + above + 0.5) / (self.count + 1)


UNKNOWN = Typical()


def typical(table: Floats) -> Typical:
    """What the rows of a table usually do. table: (series, points), NaN is a gap.

    Differences of neighbours, so that no step disturbs it: see `jumps`.
    """
    one, two = table[:, 1:] - table[:, :-1], table[:, 2:] - table[:, :-2]
    count = int((~np.isnan(table)).sum())
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # rows without values
        sds = [MAD_TO_SIGMA * np.nanmedian(np.abs(part), axis=1) for part in (one, two)]
        level = np.abs(np.nanmedian(table, axis=1))
    rows = np.flatnonzero((sds[0] > SAME * level) & (sds[1] > 0) & (level > 0))
    if not rows.size:
        return Typical(count=count)
    squares = [
        float(
            np.nanmean(np.square(np.clip(part[rows] / sd[rows, None], -TIGHT, TIGHT)), axis=1)
            @ np.square(sd[rows] / sds[0][rows])
        )
        for part, sd in zip((one, two), sds, strict=True)
    ]
    r = min(max(squares[1] / squares[0] - 1, 0.0), MAX_MEMORY)
    sd = sds[0] / sqrt(2 * (1 - r))
    left, right = one[:, :-1], -one[:, 1:]
    alone = np.minimum(np.abs(left), np.abs(right)) > WILD * sd[:, None]
    alone &= (left * right > 0) & (level[:, None] > 0)
    smaller = np.where(np.abs(left) < np.abs(right), left, right)
    sizes = smaller[alone] / level[np.nonzero(alone)[0]]
    return Typical(
        float(np.median(sd[rows] / level[rows])),
        (1 + r) / (1 - r),
        tuple(np.sort(sizes).tolist()),
        count,
    )


def variance_factor(deviations: Floats, sd: float) -> float:
    """How many times the variance of a mean exceeds that of independent values, 1 or more.

    From the autocorrelation of neighbours, as of a process AR(1): (1 + r) / (1 - r).
    """
    if sd <= 0 or deviations.size < 3:
        return 1.0
    z = np.clip(deviations / sd, -CLIP, CLIP)
    r = float(np.dot(z[1:], z[:-1]) / np.dot(z, z))
    return _of_neighbours(r)


def _of_neighbours(r: float) -> float:
    r = min(max(r, 0.0), MAX_MEMORY)
    return (1 + r) / (1 - r)


def long_run(deviations: Floats, sd: float, levels: int = 1) -> float:
    """As `variance_factor`, also where values resemble each other over more than neighbours.

    The larger of that of AR(1), and of Bartlett's weights up to the cube root of the number of
    values: Newey and West, Econometrica 55 (1987). levels: that were taken out; each has taken some
    of the autocorrelation with it: Marriott and Pope, Biometrika 41 (1954).
    """
    n = deviations.size
    if sd <= 0 or n < 2 * FEW_LAGS:
        return 1.0
    z = np.clip(deviations / sd, -CLIP, CLIP)
    square = float(z @ z)
    if square == 0:
        return 1.0
    lags = np.arange(1, 1 + max(1, int(n ** (1 / 3))))
    r = np.array([float(z[lag:] @ z[:-lag]) / square for lag in lags])
    r += levels * (1 + 3 * max(float(r[0]), 0.0)) / n
    bartlett = 1 + 2 * float((1 - lags / (lags.size + 1)) @ r)
    return max(_of_neighbours(float(r[0])), min(bartlett, _of_neighbours(1.0)))


def jumps(values: Floats) -> tuple[float, float]:
    """Scatter of a value, and the factor of `variance_factor`, whatever steps there are; 0 where
    most neighbours are equal, and no value stands alone.

    From the differences of neighbours and of neighbours but one: Chakar, Lebarbier, Levy-Leduc and
    Robin, Bernoulli 23 (2017), with clipped squares in place of medians.
    """
    size = float(np.abs(values).max(initial=0.0))
    one, two = (_square(values[lag:] - values[:-lag], size) for lag in (1, 2))
    if 2 * np.count_nonzero(np.abs(np.diff(values)) > SAME * size) < values.size:
        return robust_sd(values - running_median(values, FEW_LAGS // 2), size), 1.0
    r = min(max(two / one - 1 - 1 / sqrt(values.size), 0.0), MAX_MEMORY)
    return sqrt(one / (2 * (1 - r))), (1 + r) / (1 - r)


def _square(differences: Floats, size: float) -> float:
    """The mean square of differences, of which the few large ones are clipped."""
    sd = robust_sd(differences, size)
    return float(np.mean(np.square(np.clip(differences, -TIGHT * sd, TIGHT * sd))))


def clipped(values: Floats, typical: float) -> tuple[float, float]:
    """Mean and variance of values, clipped at TIGHT sd around their median.

    Huber, Ann. Math. Stat. 35 (1964), one step. typical: sd where so few values show none.
    """
    centre = middle(values)
    sd = robust_sd(values - centre, abs(centre)) if values.size >= 2 * FEW_LAGS else typical
    inside = np.clip(values, centre - TIGHT * sd, centre + TIGHT * sd)
    return float(inside.mean()), float(inside.var(ddof=1)) if values.size > 1 else 0.0


def running_median(values: Floats, reach: int = BESIDE) -> Floats:
    """Of each value and so many on each side; at the ends of a row of its first and last window."""
    size = values.shape[-1]
    width = min(2 * reach + 1, size)
    windows = middles(np.lib.stride_tricks.sliding_window_view(values, width, axis=-1))
    at = np.clip(np.arange(size) - width // 2, 0, windows.shape[-1] - 1)
    found: Floats = windows[..., at]
    return found
