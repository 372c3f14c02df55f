"""Which of very many lines deserve a closer look."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from siteproof.analysis import steps
from siteproof.analysis.screen import BATCH, of_modes, row_medians, screen
from siteproof.analysis.shape import LONGEST
from siteproof.analysis.slow_nodes import MAD_TO_SIGMA
from siteproof.trend.alerts import CONFIRMS
from siteproof.trend.lines import Floats

LOOSE = 2.0  # robust sd: what lies inside of that needs no closer look at its last runs


def flagged(batch: Sequence[Floats]) -> NDArray[np.bool_]:
    """Lines that may hold a step or a drift, or flip between two levels."""
    table = _table(batch)
    return screen(table) | of_modes(table)


def noise(lines: Sequence[Floats]) -> Floats:
    """The robust sd of each line from the differences of neighbours, as a share of its median.

    In the order of the lines' lengths; each has two values or more.
    """
    by_length: dict[int, list[Floats]] = {}
    for line in lines:
        by_length.setdefault(line.size, []).append(line)
    found = [
        _noise(np.array(alike[begin : begin + BATCH]))
        for alike in by_length.values()
        for begin in range(0, len(alike), BATCH)
    ]
    return np.concatenate(found)


def _noise(table: Floats) -> Floats:
    middle = np.abs(row_medians(table))
    sd = MAD_TO_SIGMA * row_medians(np.abs(np.diff(table, axis=1))) / sqrt(2)
    return np.divide(sd, middle, out=np.zeros_like(sd), where=middle != 0)


def _table(batch: Sequence[Floats]) -> Floats:
    """The newest values of each line, and gaps before those that have fewer."""
    width = min(LONGEST, max(line.size for line in batch))
    table = np.full((len(batch), width), np.nan)
    for at, line in enumerate(batch):
        newest = line[-width:]
        table[at, width - newest.size :] = newest
    return table


def loose(batch: Sequence[Floats]) -> NDArray[np.bool_]:
    """Lines of whose last runs enough are away from their median to deserve a look."""
    table = _table(batch)
    if table.shape[1] <= CONFIRMS:
        return np.zeros(len(table), dtype=bool)
    away = np.abs(table - row_medians(table)[:, None])
    sd = MAD_TO_SIGMA * row_medians(away)
    outside = away[:, -steps.LAST :] > LOOSE * sd[:, None]
    return np.asarray(outside.sum(axis=1) >= steps.OUTSIDE)
