"""Which of many series show nothing: all at once, where `shape.explain` would find the same.

It says so only where it is sure. The search is that of `segments.change_points`, without leaving
out places: Jackson et al., IEEE Signal Processing Letters 12 (2005).
"""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from siteproof.analysis.segments import LEAST, PENALTY, SHORT
from siteproof.analysis.shape import SCATTERED, TIMES
from siteproof.analysis.slow_nodes import MAD_TO_SIGMA
from siteproof.analysis.spread import (
    CLIP,
    MAX_MEMORY,
    SAME,
    TIGHT,
    Floats,
    Typical,
    middles,
    running_median,
)
from siteproof.analysis.steps import INTERVAL

Bools = NDArray[np.bool_]
FEW_FAR = 3  # values far off their level: wherever they are, `shape.often` takes them for chance
LONGEST = 100  # values: the time of this search grows with their square
SURE = 1e-6  # of variances: what is closer is decided by the order of a sum


def quiet(table: Floats, typical: Typical) -> Bools:
    """Which series surely have no step, episode, drift or change of scatter, and no two levels.

    table: (series, values), without gaps, by time, no two of one time. typical: what series of the
    same kind do. Seasons, which many years and weekdays show, are not looked for.
    """
    if not 2 * LEAST <= table.shape[1] <= LONGEST:
        return np.zeros(len(table), dtype=bool)
    found: Bools = (table.min(axis=1) > 0) & (table.max(axis=1) < TIMES * table.min(axis=1))
    found &= ~_may_drift(table, typical.factor)
    found[found] = _flat(table[found], typical)
    if table.shape[1] >= 2 * SCATTERED:
        away = np.abs(table[found] - middles(table[found])[:, None])
        sd = MAD_TO_SIGMA * middles(away)
        few = (sd > SAME * table[found].max(axis=1)) & (
            (away > CLIP * sd[:, None]).sum(axis=1) <= FEW_FAR
        )
        distances = np.minimum(away, CLIP**2 * sd[:, None])
        found[found] = few & _flat(distances, replace(typical, noise=0.0))
    return found


def _may_drift(table: Floats, factor: float) -> Bools:
    """Rows of which `steps.slope` may be significant: by how many pairs rise, and how many fall."""
    n = table.shape[1]
    half = INTERVAL * sqrt(factor * n * (n - 1) * (2 * n + 5) / 18) / (n * (n - 1))
    least = int(n * (n - 1) / 2 * min(0.5 + half, 1))
    rising, falling = np.zeros((2, len(table)), dtype=np.intp)
    for lag in range(1, n):
        later, earlier = table[:, lag:], table[:, :-lag]
        rising += (later > earlier).sum(axis=1)
        falling += (later < earlier).sum(axis=1)
    return (rising >= least) | (falling >= least)


def _flat(table: Floats, typical: Typical) -> Bools:
    """Rows in which `segments.change_points` surely finds none."""
    size = np.abs(table).max(axis=1)
    one, two = (_squares(np.abs(table[:, lag:] - table[:, :-lag]), SAME * size) for lag in (1, 2))
    with np.errstate(invalid="ignore"):  # of rows most of whose neighbours are equal
        r = np.clip(two / one - 1 - 1 / np.sqrt(table.shape[1]), 0, MAX_MEMORY)
    sd = np.sqrt(one / (2 * (1 - r)))[:, None]
    factor = np.full(len(table), typical.factor) if table.shape[1] < SHORT else (1 + r) / (1 - r)
    level = running_median(table)
    pulled = (level + np.clip(table - level, -CLIP * sd, CLIP * sd) - middles(table)[:, None]) / sd
    return _one_level(pulled, PENALTY * factor)


def _squares(differences: Floats, least: Floats) -> Floats:
    """The mean square in each row, the few large ones clipped; NaN where most are `least`."""
    sd = MAD_TO_SIGMA * middles(differences)
    clipped = np.minimum(differences, TIGHT * sd[:, None])
    return np.where(sd > least, np.mean(np.square(clipped), axis=1), np.nan)


def _one_level(table: Floats, penalty: Floats) -> Bools:
    """Rows of which the best cut, at a penalty each, is none; not those with NaN.

    And so it is without the newest value, as the search may then have ruled out that there is none.
    """
    size, penalty = table.shape[1], penalty[:, None]
    sums = np.cumsum(np.pad(table, ((0, 0), (1, 0))), axis=1)
    best = np.zeros_like(sums)  # of each beginning; less its sum of squares, as all cuts have that
    found = np.ones(len(table), dtype=bool)
    for end in range(1, size + 1):
        best[:, end] = -(sums[:, end] ** 2) / end
        cuts = np.arange(LEAST, end - LEAST + 1)
        if cuts.size:
            levels = (sums[:, end : end + 1] - sums[:, cuts]) ** 2 / (end - cuts)
            others = (best[:, cuts] - levels + penalty).min(axis=1)
            if end >= size - 1:
                found &= others - best[:, end] > SURE
            best[:, end] = np.minimum(best[:, end], others)
    return found
