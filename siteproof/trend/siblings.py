"""A fleet in one series: its own line, and each node compared with it.

A change of the whole fleet is no change of its nodes: it is taken out of their values, and is one
alert. Each node counts by its share of its own typical value, so that a run from which good nodes
are missing moves nothing. Where the fleet's median moves because a part of the nodes moved, that
part is left out, and the rest is the fleet.
"""

from __future__ import annotations

from math import pi

import numpy as np
from numpy.typing import NDArray

from siteproof.analysis import shape
from siteproof.analysis.ranks import COVERS
from siteproof.analysis.screen import medians
from siteproof.analysis.slow_nodes import MIN_FLEET
from siteproof.analysis.spread import robust_sd
from siteproof.trend.lines import Floats, Ints, RoleSeries

ROUNDS = 2  # of typical values and fleet's level in turns, so that neither hides in the other
PARTS = 3  # that are left out of a fleet one after the other, before it is taken as it is
HALF = 0.5  # of a step: a node that moved by less did not take part
NEARLY_ALL = 0.8  # of the nodes take part in a step of the whole fleet …
MAJORITY = 0.5  # … or so many, where runs are so few that noise hides which nodes did


Line = tuple[Ints, Floats]  # of a fleet: the runs that enough nodes were in, and its values there


def without_fleet(group: RoleSeries) -> tuple[Floats, Line | None]:
    """Values without what the fleet did, and the fleet's; of too few nodes there is none."""
    if len(group.nodes) < MIN_FLEET or not group.values.size:
        return group.values, None
    frame = _Frame(group)
    line = _whole(frame)
    if line is None:
        return group.values, None
    columns, levels = line
    level = _everywhere(columns, levels, group.times.size)
    typical = float(np.median(frame.typical(level)))
    own = levels * typical if frame.ratio else levels + typical
    return frame.without(level), (columns, own)


def _whole(frame: _Frame) -> Line | None:
    """The line of the fleet, relative to the typical, without those parts of it that moved."""
    kept = np.ones(len(frame.group.nodes), dtype=bool)
    line = frame.line(kept)
    for _ in range(PARTS - 1):
        moved = frame.part(line, kept) if line else None
        if moved is None or (kept & ~moved).sum() < MIN_FLEET:
            break
        kept &= ~moved
        line = frame.line(kept)
    return line


class _Frame:
    """Medians by node and by run of one group. ratio: shares of the typical, else differences."""

    def __init__(self, group: RoleSeries) -> None:
        self.group = group
        self.ratio = bool((group.values > 0).all())
        begin, end = group.begin[:-1], group.begin[1:]
        some = end > begin
        first, last = group.column[begin[some]], group.column[end[some] - 1]
        runs = group.times.size
        change = np.bincount(first, minlength=runs + 1) - np.bincount(last + 1, minlength=runs + 1)
        self.alive = np.cumsum(change)[:runs]

    def typical(self, level: Floats) -> Floats:
        """The median of each node, without what the fleet did."""
        group = self.group
        found = medians(group.owner, self.without(level), len(group.nodes), group.column)
        return np.where(np.isnan(found), 1.0 if self.ratio else 0.0, found)

    def line(self, kept: NDArray[np.bool_]) -> Line | None:
        """The fleet of some nodes, in the runs of which enough of them are."""
        group, runs = self.group, self.group.times.size
        here = kept[group.owner]
        column = group.column[here]
        count = np.bincount(column, minlength=runs)
        alive = self.alive * kept.mean()
        columns = np.flatnonzero((count >= MIN_FLEET) & (count >= COVERS * alive))
        if not columns.size:
            return None
        level = np.ones(runs) if self.ratio else np.zeros(runs)
        for _ in range(ROUNDS):
            typical = self.typical(level)[group.owner]
            share = group.values / typical if self.ratio else group.values - typical
            middle = medians(column, share[here], runs, group.owner[here])
            level = _everywhere(columns, middle[columns], runs)
        return columns, level[columns]

    def part(self, line: Line, kept: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
        """The nodes that made a step of the fleet's line alone; None: all its steps are its own."""
        columns, levels = line
        found = shape.explain(None, levels).steps
        bounds = [0, *found, levels.size]
        for at, step in enumerate(found):
            runs = [int(columns[bounds[at]]), int(columns[step]), int(columns[bounds[at + 2] - 1])]
            moved = self._moved(
                runs, kept, *(np.median(levels[bounds[i] : bounds[i + 1]]) for i in (at, at + 1))
            )
            if moved is not None:
                return moved
        return None

    def _moved(
        self, runs: list[int], kept: NDArray[np.bool_], before: float, after: float
    ) -> NDArray[np.bool_] | None:
        """Who moved from the runs before a step to those after it, unless nearly all did.

        runs: the first one, that of the step, and the last one.
        """
        group, nodes = self.group, len(self.group.nodes)
        sides, noise = [], 0.0
        begin, middle_run, last = runs
        for first, end in ((begin, middle_run), (middle_run, last + 1)):
            here = (group.column >= first) & (group.column < end)
            middle = medians(
                group.owner[here], group.values[here], nodes, group.column[here] - first
            )
            away = group.values[here] - middle[group.owner[here]]
            scale = np.abs(middle[group.owner[here]]) if self.ratio else 1.0
            each = here.sum() / max(1, np.unique(group.owner[here]).size)
            noise += robust_sd(away / scale, 1.0) ** 2 * pi / 2 / each
            sides.append(middle)
        known = kept & ~np.isnan(sides[0]) & ~np.isnan(sides[1])
        change = sides[1] / sides[0] - 1 if self.ratio else sides[1] - sides[0]
        step = after / before - 1 if self.ratio else after - before
        way = np.where(known, change * np.sign(step), 0)
        took = known & (way >= HALF * abs(step))
        if not took.any():
            return None
        clear = noise < (abs(step) / 3) ** 2 or _is_mixed(way[known], abs(step), noise)
        if clear:  # where half of them moved, the fleet's median moved by half as much as they did
            took &= way >= HALF * float(np.median(way[took]))
        all_did = took.sum() >= (NEARLY_ALL if clear else MAJORITY) * known.sum()
        return None if all_did else took

    def without(self, level: Floats) -> Floats:
        """The values without what the fleet did in their runs."""
        here = level[self.group.column]
        return self.group.values / here if self.ratio else self.group.values - here


def _is_mixed(change: Floats, step: float, noise: float) -> bool:
    """Whether nodes changed so unlike each other that some of them moved, and others did not.

    noise: the variance of a node's change. One node that is far off is no such part.
    """
    inside = np.clip(change, -step, 3 * step)
    return change.size >= MIN_FLEET and float(inside.var()) > noise + (HALF * step) ** 2


def _everywhere(columns: Ints, levels: Floats, runs: int) -> Floats:
    """The level of each run: where there is none, that of the last run before, or of the first."""
    at = np.searchsorted(columns, np.arange(runs), side="right") - 1
    return levels[np.maximum(at, 0)]
