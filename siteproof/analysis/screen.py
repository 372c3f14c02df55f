"""Which of very many series deserve a closer look: all at once, in little memory.

CUSUM (Page, Biometrika 41, 1954) and MOSUM (Chu, Hornik, Kuan, Biometrika 82, 1995) of robustly
scaled, clipped values. A drift raises them, too; a pattern of weekdays does not.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from siteproof.analysis.slow_nodes import MAD_TO_SIGMA
from siteproof.analysis.spread import CLIP, MEAN_TO_SIGMA, SAME, Floats, finite

Small = NDArray[np.float32]  # sums of clipped values need no more, and take half the time

THRESHOLD = 6.0  # 1 of 400 series of independent normal values reaches 5, 1 of 6,000 reaches 5.5
SHORT, SHORT_THRESHOLD = 60, 4.0  # values of a series that is soon searched; so more are looked at
WIDTHS = (10, 20, 45)  # of the moving sums, in runs
BLOCK, BLOCKS = 10, 4  # neighbours in a block, and how many blocks at least
OF_BLOCK = 1.136  # what a MAD of so few values lacks
FEWEST = 100  # values, of which fewer show no modes
SHARE = 0.2  # of the values that the smaller mode has; fewer are outliers
MODES = 1.8  # times two sd within the modes, by which they are apart; for `Segments` to confirm
SEASONS = 3.0  # times the variance that groups alike would have between them
BATCH = 512  # series at a time: what fits the processor's cache and little memory


def screen(values: ArrayLike, *, threshold: float = THRESHOLD) -> NDArray[np.bool_]:
    """Which series deserve a closer look. values: (series, points), NaN is a gap."""
    table = np.asarray(values)
    if table.ndim != 2:
        raise ValueError("screen wants a table of series and points")
    found = np.zeros(len(table), dtype=bool)
    for begin in range(0, len(table), BATCH):
        found[begin : begin + BATCH] = _flagged(finite(table[begin : begin + BATCH]), threshold)
    return found


def _flagged(table: Floats, threshold: float) -> NDArray[np.bool_]:
    """One batch: the greatest of all sums against the threshold."""
    scaled, there = _scaled(table)
    limit = np.where(there.sum(axis=1) < SHORT, min(threshold, SHORT_THRESHOLD), threshold)
    flagged = np.zeros(len(table), dtype=bool)
    for statistic in _statistics(scaled, there):
        flagged |= statistic > limit**2
    return flagged


def _scaled(table: Floats) -> tuple[Small, NDArray[np.bool_]]:
    """Robust z, clipped, 0 in a gap; and where there is a value."""
    there = ~np.isnan(table)
    if table.shape[1] == 0:
        return table.astype(np.float32), there
    away = table - row_medians(table, 0.0)[:, None]
    size = np.abs(np.where(there, table, 0)).max(axis=1)
    sd = _noise(table, away, SAME * size)
    scaled = away / np.where(sd > 0, sd, np.inf)[:, None]
    np.copyto(scaled, 0.0, where=~there)
    return np.clip(scaled, -CLIP, CLIP, out=scaled).astype(np.float32), there


def _noise(table: Floats, away: Floats, least: Floats) -> Floats:
    """Robust sd of each row: of its values, or of neighbours around their own level, the smaller.

    Steps make most of the scatter of a short series. Where the MAD is 0, the mean absolute one;
    0 where that is not above `least`, which is arithmetic.
    """
    sd = MAD_TO_SIGMA * row_medians(np.abs(away), 0.0)
    blocks = table.shape[1] // BLOCK
    parts = table[:, table.shape[1] - blocks * BLOCK :].reshape(len(table) * blocks, BLOCK)
    inside = row_medians(np.abs(parts - row_medians(parts, 0.0)[:, None]), 0.0)
    inside[np.isnan(parts).sum(axis=1) > BLOCK // 2] = np.nan
    inside = inside.reshape(len(table), blocks)
    within = MAD_TO_SIGMA * OF_BLOCK * row_medians(inside, 0.0)
    few = np.flatnonzero((~np.isnan(inside)).sum(axis=1) < BLOCKS)
    within[few] = MAD_TO_SIGMA / np.sqrt(2) * row_medians(np.abs(np.diff(table[few], axis=1)), 0.0)
    quiet = np.flatnonzero((within <= least) & (sd > least))  # most neighbours are equal
    between = np.abs(np.diff(table[quiet], axis=1))
    pairs = np.maximum((~np.isnan(between)).sum(axis=1), 1)
    within[quiet] = MEAN_TO_SIGMA / np.sqrt(2) * np.nansum(between, axis=1) / pairs
    sd = np.where(within > least, np.minimum(sd, within), sd)
    there = np.maximum((~np.isnan(away)).sum(axis=1), 1)
    sd = np.where(sd > least, sd, MEAN_TO_SIGMA * np.nansum(np.abs(away), axis=1) / there)
    return np.where(sd > least, sd, 0.0)


def row_medians(table: Floats, empty: float = np.nan) -> Floats:
    """The median of each row without its NaN, which sort last; `empty` for a row without any."""
    points = table.shape[1]
    if not table.size:
        return np.full(len(table), empty)
    count = points - np.isnan(table).sum(axis=1)
    ranked = np.sort(table, axis=1)  # of so few values faster than a partition
    rows = np.arange(len(table))
    low, high = np.maximum(count - 1, 0) // 2, np.minimum(count // 2, points - 1)
    return np.where(count > 0, (ranked[rows, low] + ranked[rows, high]) / 2, empty)


def _statistics(scaled: Small, there: NDArray[np.bool_]) -> Iterator[Small]:
    """CUSUM and each MOSUM: the greatest standardised difference of two means, squared, per row."""
    sums, counts = _sums(scaled), _sums(there)
    points = scaled.shape[1]
    if points < 2:
        return
    yield _difference(
        sums[:, 1:-1],
        counts[:, 1:-1],
        sums[:, -1:] - sums[:, 1:-1],
        counts[:, -1:] - counts[:, 1:-1],
    )
    for width in WIDTHS:
        if points < 2 * width:
            break
        whole, whole_counts = (part[:, width:] - part[:, :-width] for part in (sums, counts))
        yield _difference(
            whole[:, :-width], whole_counts[:, :-width], whole[:, width:], whole_counts[:, width:]
        )


def _difference(left: Small, n_left: Small, right: Small, n_right: Small) -> Small:
    """The greatest square of (mean - mean) / sqrt(1/n + 1/n) in each row; 0 where a side is empty.

    Written without a division by a count, which may be 0.
    """
    above = left * n_right
    above -= right * n_left
    above *= above
    below = n_left * n_right
    below *= n_left + n_right
    np.maximum(below, 1, out=below)
    above /= below
    greatest: Small = above.max(axis=1)
    return greatest


def _sums(part: NDArray[np.generic]) -> Small:
    """Of the first 0, 1, 2 … columns."""
    total = np.zeros((part.shape[0], part.shape[1] + 1), dtype=np.float32)
    np.cumsum(part, axis=1, dtype=np.float32, out=total[:, 1:])
    return total


def of_pattern(groups: NDArray[np.int64], values: ArrayLike) -> NDArray[np.bool_]:
    """Which series may have a pattern of these groups: weekday or hour of each point.

    values: (series, points), NaN is a gap. The sum of squares between the groups, of what a moving
    mean leaves.
    """
    table = np.asarray(values)
    names, which = np.unique(groups, return_inverse=True)
    found = np.zeros(len(table), dtype=bool)
    if names.size < 2 or table.shape[1] < 2 * BLOCK:
        return found
    member = (which[:, None] == np.arange(names.size)).astype(np.float32)
    for begin in range(0, len(table), BATCH):
        scaled, there = _scaled(finite(table[begin : begin + BATCH]))
        count = there @ member
        left = np.where(there, scaled - _moving_mean(scaled, there), 0.0)
        between = ((left @ member) ** 2 / np.maximum(count, 1)).sum(axis=1)
        within = (left**2).sum(axis=1) / np.maximum(there.sum(axis=1), 1)
        found[begin : begin + BATCH] = between > SEASONS * (names.size - 1) * within
    return found


def of_modes(values: ArrayLike) -> NDArray[np.bool_]:
    """Which series may flip between two levels from run to run.

    values: (series, points), NaN is a gap. As `Segments.clusters`, but without a look at the levels
    of segments: a step deceives it, and is flagged anyway.
    """
    table = np.asarray(values)
    found = np.zeros(len(table), dtype=bool)
    if table.shape[1] >= FEWEST:
        for begin in range(0, len(table), BATCH):
            part = _scaled(finite(table[begin : begin + BATCH]))
            found[begin : begin + BATCH] = _two_levels(*part)
    return found


def _two_levels(scaled: Small, there: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether the cut that leaves the least variance leaves two levels far apart."""
    ranked = np.nan_to_num(np.sort(np.where(there, scaled, np.nan), axis=1))  # gaps last, as 0
    count = np.maximum(there.sum(axis=1, dtype=np.float32), 1)[:, None]
    sums = _sums(ranked)
    low, below, total = np.arange(1, ranked.shape[1], dtype=np.float32), sums[:, 1:-1], sums[:, -1:]
    gap = (total - below) / np.maximum(count - low, 1) - below / low
    inside = (low >= SHARE * count) & (low <= (1 - SHARE) * count)
    between = np.where(inside, gap**2 * low * (count - low) / count, 0)
    cut = between.argmax(axis=1)[:, None]
    gap, between = (np.take_along_axis(part, cut, axis=1) for part in (gap, between))
    squares = (ranked**2).sum(axis=1, keepdims=True) - total**2 / count
    sd = np.sqrt(np.maximum(squares - between, 0) / count)
    two: NDArray[np.bool_] = (count >= FEWEST) & (squares > 0) & (gap >= MODES * 2 * sd)
    return two.ravel()


def _moving_mean(scaled: Small, there: NDArray[np.bool_]) -> Small:
    """Of the values in a window of fifteen, as far as there are any."""
    at = np.arange(scaled.shape[1])
    begin, end = np.maximum(at - 7, 0), np.minimum(at + 8, at.size)
    sums, counts = (total[:, end] - total[:, begin] for total in map(_sums, (scaled, there)))
    mean: Small = sums / np.maximum(counts, 1)
    return mean
