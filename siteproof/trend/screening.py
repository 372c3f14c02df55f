"""Which of very many lines deserve a closer look, and what those of one kind usually do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from siteproof.analysis.screen import of_modes, screen
from siteproof.analysis.season import screen_seasons
from siteproof.analysis.shape import LONGEST
from siteproof.analysis.slow_nodes import MIN_FLEET
from siteproof.analysis.spread import UNKNOWN, Typical, typical
from siteproof.trend.lines import Floats

if TYPE_CHECKING:
    from siteproof.trend.finds import Stretch

SOME = 200  # lines of a group that show what is typical


def flagged(batch: Sequence[Floats]) -> NDArray[np.bool_]:
    """Lines that may hold a step, an episode or a drift, or flip between two levels."""
    table = _table(batch)
    return screen(table) | of_modes(table)


def swinging(batch: Sequence[Stretch]) -> NDArray[np.bool_]:
    """Lines that may swing with weekday or hour; for those that no fleet was taken out of."""
    if not batch:
        return np.zeros(0, dtype=bool)
    table = _table([line.values for line in batch])
    times = np.full(table.shape, np.datetime64("NaT"), dtype="datetime64[us]")
    for at, line in enumerate(batch):
        newest = line.group.times[line.column][-table.shape[1] :]
        times[at, table.shape[1] - newest.size :] = newest
    return screen_seasons(times, table)


def typical_of(lines: Sequence[Floats], least: int = MIN_FLEET) -> Typical:
    """What the lines of one group do; of too few of them nothing is known."""
    if len(lines) < least:
        return UNKNOWN
    return typical(_table(lines[:: -(-len(lines) // SOME)]))


def _table(batch: Sequence[Floats]) -> Floats:
    """The newest values of each line, and gaps before those that have fewer."""
    width = min(LONGEST, max(line.size for line in batch))
    table = np.full((len(batch), width), np.nan)
    for at, line in enumerate(batch):
        newest = line[-width:]
        table[at, width - newest.size :] = newest
    return table
