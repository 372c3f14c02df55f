"""Which of very many series deserve a closer look: all at once, in little memory.

CUSUM (Page, Biometrika 41, 1954) of robustly scaled, clipped values, for steps, and of their
distances from the median, for a change of scatter; moving sums (Chu, Hornik, Kuan, Biometrika 82,
1995) for what lasts a few runs. A drift raises them, too; a pattern of weekdays does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from siteproof.analysis.slow_nodes import MAD_TO_SIGMA
from siteproof.analysis.spread import CLIP, MAX_MEMORY, MEAN_TO_SIGMA, SAME, Floats, finite

Ints = NDArray[np.integer[Any]]
Small = NDArray[np.float32]  # sums of clipped values need no more, and take half the time

THRESHOLD = 5.0  # standard errors: 1 of 400 series of independent normal values reaches that
SHORT, SHORT_THRESHOLD = 100, 4.0  # values of a series that is soon searched; so more are looked at
WIDTHS = (3, 6, 12, 24)  # of the moving sums, in runs: those of episodes
PULLED = 5.0  # robust sd to which a value counts in a moving sum: two outliers are no episode
ENDS = 2  # values on each side of a step
BLOCK, BLOCKS = 10, 4  # neighbours in a block, and how many blocks at least
OF_BLOCK = 1.136  # what a MAD of so few values lacks
FEWEST = 100  # values, of which fewer show no two levels, nor how neighbours resemble each other
SHARE = 0.2  # of the values that the smaller level has; fewer are outliers
MODES = 1.8  # times two sd within two levels, by which they are apart
SEASONS = 3.0  # times the variance that groups alike would have between them
SPARSE = 8  # times more places than values: then no table of places and others is made
BATCH = 512  # series at a time: what fits the processor's cache and little memory


def screen(values: ArrayLike) -> NDArray[np.bool_]:
    """Which series deserve a closer look. values: (series, points), NaN is a gap."""
    table = np.asarray(values)
    if table.ndim != 2:
        raise ValueError("screen wants a table of series and points")
    found = np.zeros(len(table), dtype=bool)
    for begin in range(0, len(table), BATCH):
        found[begin : begin + BATCH] = _flagged(finite(table[begin : begin + BATCH]))
    return found


def _flagged(table: Floats) -> NDArray[np.bool_]:
    """One batch: the greatest of all sums against the threshold."""
    scaled, there = _scaled(table)
    limit = np.where(there.sum(axis=1) < SHORT, SHORT_THRESHOLD, THRESHOLD)
    flagged = np.zeros(len(table), dtype=bool)
    limit = limit**2 * _long_run(scaled, there)
    for statistic in _statistics(scaled, there):
        flagged |= statistic > limit
    return flagged | _two_levels(scaled, there) if scaled.shape[1] >= FEWEST else flagged


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


def medians(place: Ints, values: Floats, places: int, other: Ints | None = None) -> Floats:
    """The median of the values at each place; NaN where there are none.

    other: with the place, each value's own, where that is known: where it stands in a table.
    """
    width = 0 if other is None else int(other.max(initial=-1)) + 1
    if other is None or places * width > SPARSE * values.size:
        order = np.argsort(place, kind="stable")
        begin = np.cumsum(count := np.bincount(place, minlength=places)) - count
        other = np.empty_like(place)
        other[order] = np.arange(place.size) - begin[place[order]]
        width = int(count.max(initial=0))
    table = np.full((places, width), np.nan)
    table[place, other] = values
    return row_medians(table)


def _long_run(scaled: Small, there: NDArray[np.bool_]) -> Small:
    """The variance of a sum, a value, of each row, but 1 at least: see `spread.jumps`."""
    found = np.ones(len(scaled), dtype=np.float32)
    long = there.sum(axis=1) >= FEWEST
    if not long.any():
        return found
    scaled, there = scaled[long], there[long]
    squares = []
    for lag in (1, 2):
        both = there[:, lag:] & there[:, :-lag]
        between = np.where(both, scaled[:, lag:] - scaled[:, :-lag], 0.0)
        np.clip(between, -PULLED, PULLED, out=between)
        squares.append((between**2).sum(axis=1) / np.maximum(both.sum(axis=1), 1) / 2)
    near = 1 / np.sqrt(np.maximum(there.sum(axis=1), 1))
    r = np.clip(squares[1] / np.maximum(squares[0], 1e-6) - 1 - near, 0, MAX_MEMORY)
    found[long] = np.maximum(squares[0] * (1 + r) / (1 - r) ** 2, 1)
    return found


def _statistics(scaled: Small, there: NDArray[np.bool_]) -> Iterator[Small]:
    """Each the greatest of its kind in a row, in standard errors, squared."""
    counts = _sums(there)
    total = np.maximum(counts[:, -1:], 1)
    if scaled.shape[1] >= 2 * ENDS:
        yield _cusum(_sums(scaled), counts)
        away = _centred(np.abs(scaled), there, total)
        spread = np.sqrt((away**2).sum(axis=1, keepdims=True) / total)
        yield _cusum(_sums(away / np.where(spread > 0, spread, np.inf)), counts)
    sums = _sums(_centred(np.clip(scaled, -PULLED, PULLED), there, total))
    for width in WIDTHS:
        if scaled.shape[1] >= 2 * width:
            whole, inside = (part[:, width:] - part[:, :-width] for part in (sums, counts))
            yield (whole**2 / np.maximum(inside, 1)).max(axis=1)


def _centred(part: Small, there: NDArray[np.bool_], total: Small) -> Small:
    """Without the mean of each row; 0 in a gap."""
    middle = np.where(there, part, 0.0).sum(axis=1, keepdims=True) / total
    return np.where(there, part - middle, 0.0)


def _cusum(sums: Small, counts: Small) -> Small:
    """The greatest difference of the values before and after a place."""
    left = slice(ENDS, -ENDS)
    return _difference(
        sums[:, left],
        counts[:, left],
        sums[:, -1:] - sums[:, left],
        counts[:, -1:] - counts[:, left],
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

    groups, values: (series, points), NaN is a gap. The sum of squares between the groups, of what a
    moving mean leaves.
    """
    table = np.asarray(values)
    found = np.zeros(len(table), dtype=bool)
    if table.shape[1] < 2 * BLOCK:
        return found
    for begin in range(0, len(table), BATCH):
        part = groups[begin : begin + BATCH]
        scaled, there = _scaled(finite(table[begin : begin + BATCH]))
        left = np.where(there, scaled - _moving_mean(scaled, there), 0.0)
        between, kinds = np.zeros(len(left)), np.zeros(len(left))
        for name in np.unique(part):
            member = there & (part == name)
            count = member.sum(axis=1)
            between += np.where(member, left, 0.0).sum(axis=1) ** 2 / np.maximum(count, 1)
            kinds += count > 0
        within = (left**2).sum(axis=1) / np.maximum(there.sum(axis=1), 1)
        found[begin : begin + BATCH] = (kinds > 1) & (between > SEASONS * (kinds - 1) * within)
    return found


def _two_levels(scaled: Small, there: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether the cut that leaves the least variance leaves two levels far apart.

    Skewed noise hides a step from sums that are measured by its scatter, and not from this: Otsu,
    IEEE Trans. SMC 9 (1979).
    """
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
