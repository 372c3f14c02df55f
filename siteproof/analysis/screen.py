"""Which of very many series deserve a closer look: all at once, in little memory.

CUSUM (Page, Biometrika 41, 1954) and MOSUM (Chu, Hornik, Kuan, Biometrika 82, 1995) of robustly
scaled, clipped values. A drift raises them, too; a pattern of weekdays does not.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from siteproof.analysis.scale import CLIP, MAD_TO_SIGMA, MEAN_TO_SIGMA, SAME, Floats, finite

THRESHOLD = 6.0  # independent normal values reach 5 in one series of thousands
WIDTHS = (10, 20, 45)  # of the moving sums, in runs
BLOCK, BLOCKS = 10, 4  # neighbours in a block, and how many blocks at least
OF_BLOCK = 1.136  # what a MAD of so few values lacks
BATCH = 2048  # series at a time: what fits the processor's cache and little memory


def screen(values: ArrayLike, *, threshold: float = THRESHOLD) -> NDArray[np.bool_]:
    """Which series deserve a closer look. values: (series, points), NaN is a gap."""
    table = np.asarray(values)
    if table.ndim != 2:
        raise ValueError("screen wants a table of series and points")
    found = np.zeros(len(table), dtype=bool)
    for begin in range(0, len(table), BATCH):
        found[begin:begin + BATCH] = _flagged(finite(table[begin:begin + BATCH]), threshold)
    return found


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
    if table.shape[1] == 0:
        return table, there
    away = table - _medians(table)[:, None]
    size = np.abs(np.where(there, table, 0)).max(axis=1)
    sd = _noise(table, away, SAME * size)
    scaled = away / np.where(sd > 0, sd, np.inf)[:, None]
    np.copyto(scaled, 0.0, where=~there)
    return np.clip(scaled, -CLIP, CLIP, out=scaled), there


def _noise(table: Floats, away: Floats, least: Floats) -> Floats:
    """Robust sd of each row: of its values, or within blocks of neighbours, the smaller.

    In a short series steps make most of the scatter; few blocks hold one. Where the MAD is 0, the
    mean absolute deviation; 0 where that is not above `least`, which is arithmetic.
    """
    sd = MAD_TO_SIGMA * _medians(np.abs(away))
    if (blocks := table.shape[1] // BLOCK) >= BLOCKS:
        parts = table[:, -blocks * BLOCK:].reshape(-1, BLOCK)
        inside = _medians(np.abs(parts - _medians(parts)[:, None])).reshape(-1, blocks)
        within = MAD_TO_SIGMA * OF_BLOCK * _medians(inside)
        sd = np.where(within > least, np.minimum(sd, within), sd)
    there = np.maximum((~np.isnan(away)).sum(axis=1), 1)
    sd = np.where(sd > least, sd, MEAN_TO_SIGMA * np.nansum(np.abs(away), axis=1) / there)
    return np.where(sd > least, sd, 0.0)


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
