"""Where values lie and how far they scatter, so that no outlier decides it.

Where more than half of the values are equal the median absolute deviation is 0 and useless;
then the mean absolute deviation stands in (Iglewicz and Hoaglin, How to Detect and Handle Outliers,
1993).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from siteproof.analysis.slow_nodes import MAD_TO_SIGMA

Floats = NDArray[np.float64]

MEAN_TO_SIGMA = 1.2533  # of the mean absolute deviation, for normally distributed values
YEAR = 365.2425 * 86400.0  # seconds
SAME = 1e-9  # of the largest value: closer than that, values differ by arithmetic only
LARGEST = 1e60  # of figures; their squares and differences are numbers, too
CLIP = 6.0  # robust sd: beyond that, a larger distance counts no more
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


def robust_sd(deviations: Floats, size: float) -> float:
    """Robust standard deviation of values around their levels; 0 if they are all equal.

    deviations: value minus level, no NaN. size: the largest value, for what is arithmetic only.
    """
    if deviations.size == 0:
        return 0.0
    away = np.abs(deviations)
    sd = MAD_TO_SIGMA * float(np.median(away))
    if sd <= SAME * size:
        sd = MEAN_TO_SIGMA * float(np.mean(away))
    return sd if sd > SAME * size else 0.0


def variance_factor(deviations: Floats, sd: float) -> float:
    """How many times the variance of a mean exceeds that of independent values, 1 or more.

    From the autocorrelation of neighbours, as of a process AR(1): (1 + r) / (1 - r).
    """
    if sd <= 0 or deviations.size < 3:
        return 1.0
    z = np.clip(deviations / sd, -CLIP, CLIP)
    r = float(np.dot(z[1:], z[:-1]) / np.dot(z, z))
    r = min(max(r, 0.0), MAX_MEMORY)
    return (1 + r) / (1 - r)
