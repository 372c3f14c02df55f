"""What each line shows: steps, runs out of control, drift, a rhythm; fast, as lines are many.

A line is cut where somebody has acknowledged a change: there a new control region begins. All lines
are screened in one batch, and only what is flagged is looked at closely.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from siteproof.analysis import drift, shape, steps
from siteproof.analysis.drift import Drift
from siteproof.analysis.shape import Shape
from siteproof.analysis.steps import Step
from siteproof.trend import screening
from siteproof.trend.alerts import CONFIRMS, Kind
from siteproof.trend.lines import Floats, Group, Ints

FLEET = -1  # the node of a fleet's line
BATCH = 4096  # lines that are screened at a time
SHORTEST = 2 * CONFIRMS  # runs of a line in which a step can be seen
SHORT = 40  # runs around a step, of which fewer may scatter little by chance
LONG_ENOUGH = 30  # runs of a line from which on a drift is an alert
CONTROL = 8  # runs of a control region: of fewer the scatter is not known
HALF = 0.5  # of the way to the new level: a run from there on belongs to the new level

Progress = Callable[[int, int], None]  # how many lines are done, of how many


@dataclass(frozen=True)
class Stretch:
    """A part of a line that one control region may hold. node: its place in the group, or FLEET.

    column: the runs. values: without what the fleet did. raw: as measured. newest: whether the
    line ends with it; its last runs may be out of control, those before a cut are known.
    """

    group: Group
    node: int
    column: Ints
    values: Floats
    raw: Floats
    newest: bool = True


@dataclass(frozen=True)
class Find:
    """One thing that a stretch shows. at: the first value after it. before, after: as measured.

    made_good: the value from which on all is again as it was before.
    """

    stretch: Stretch
    kind: Kind
    at: int
    step: Step
    before: float
    after: float
    made_good: int | None = None

    @property
    def column(self) -> int:
        """The first run after it."""
        return int(self.stretch.column[self.at])

    @property
    def column_before(self) -> int:
        """The last run before it."""
        return int(self.stretch.column[self.at - 1])


@dataclass(frozen=True)
class Found:
    """Finds, and the shapes of lines that swing or flip."""

    finds: list[Find] = field(default_factory=list)
    rhythms: list[tuple[Stretch, Shape]] = field(default_factory=list)
    left_out: list[tuple[Stretch, int]] = field(default_factory=list)


def look(lines: Sequence[Stretch], progress: Progress | None = None) -> Found:
    """Everything that the lines show."""
    found = Found()
    typical = _typical_noise(lines)
    for begin in range(0, len(lines), BATCH):
        batch = lines[begin : begin + BATCH]
        values = [line.values for line in batch]
        flagged, loose = screening.flagged(values), screening.loose(values)
        for at, line in enumerate(batch):
            noise = typical.get(id(line.group), 0.0)
            if line.node == FLEET or flagged[at]:
                _closely(line, noise, found)
            elif loose[at]:
                _last_runs(line, line.values, 0, noise, found)
        if progress:
            progress(min(begin + BATCH, len(lines)), len(lines))
    return found


def _typical_noise(lines: Sequence[Stretch]) -> dict[int, float]:
    """The noise of a typical line of each group that has short ones, as a share."""
    groups: dict[int, list[Floats]] = {}
    for line in lines:
        if line.node != FLEET and line.values.size > 1:
            groups.setdefault(id(line.group), []).append(line.values)
    return {name: float(np.median(screening.noise(values))) for name, values in groups.items()}


def _closely(line: Stretch, noise: float, found: Found) -> None:
    """A line that is flagged, or a fleet's. noise: of the other lines of its group."""
    if line.values.size <= CONFIRMS:
        return
    seen = shape.explain(line.group.times[line.column], line.values)
    if seen.left_out:
        found.left_out.append((line, seen.left_out))
    if seen.season or seen.modes:
        found.rhythms.append((line, seen))
    level = line.values - seen.season.offsets if seen.season else line.values
    bounds = [0, *seen.steps, level.size]
    for at, index in enumerate(seen.steps):
        first, last = bounds[at], bounds[at + 2]
        step = steps.describe(level, index, first, last)
        if _worth(line, step, noise, few=last - first < SHORT):
            back = _made_good(level, step, bounds[at + 2 :])
            before, after = _as_measured(line, first, index, last)
            found.finds.append(Find(line, "step", index, step, before, after, back))
    if seen.drift and drift.worth_an_alert(seen.drift) and level.size >= LONG_ENOUGH:
        found.finds.append(_drift(line, seen.drift, seen.left_out))
    if not seen.modes:
        _last_runs(line, level, bounds[-2], noise, found)


def _worth(line: Stretch, step: Step, noise: float, *, few: bool) -> bool:
    """Whether a step is worth an alert.

    few: it rests on so few runs that the line's own scatter may be small by chance; then that of
    the other lines of its group counts, too.
    """
    if not steps.worth_an_alert(step):
        return False
    least = steps.MIN_SD * noise * abs(step.before) if few and line.node != FLEET else 0.0
    return abs(step.after - step.before) >= least


def _as_measured(line: Stretch, first: int, at: int, last: int) -> tuple[float, float]:
    return float(np.median(line.raw[first:at])), float(np.median(line.raw[at:last]))


def _made_good(level: Floats, step: Step, later: list[int]) -> int | None:
    """Where the segment begins from which on all is again as before the step, if one does."""
    way = np.sign(step.before - step.after)
    near = max(steps.MIN_RELATIVE * abs(step.before), step.robust_sd)
    middles = [float(np.median(level[a:b])) for a, b in pairwise(later)]
    lacks = [(step.before - middle) * way > near for middle in middles]
    back = next((at for at in range(len(lacks)) if not any(lacks[at:])), None)
    return None if back is None else later[back]


def _drift(line: Stretch, slope: Drift, first: int) -> Find:
    """A slope as an alert: from the level at the line's beginning to that at its end.

    first: the first value that was searched.
    """
    values = line.values[first:]
    middle = float(np.median(values))
    before, after = middle - slope.total / 2, middle + slope.total / 2
    relative = slope.total / abs(before) if before else 0.0
    low, high = sorted((slope.low / middle, slope.high / middle)) if middle else (0.0, 0.0)
    rate, low_share, high_share = map(_share, (slope.relative_per_year, low, high))
    confidence = f"{rate} a year, most likely {low_share} to {high_share}"
    step = Step(before, after, relative, 0.0, values.size, values.size, confidence)
    return Find(line, "drift", values.size + first - 1, step, before, after)


def _last_runs(line: Stretch, level: Floats, first: int, noise: float, found: Found) -> None:
    """Two of the last three runs outside of what the runs since `first` have been."""
    if not line.newest:
        return
    outside = steps.out_of_control(level, slice(first, level.size - steps.LAST))
    if not outside:
        return
    begin = _since(level, first, outside[0])
    if begin - first < CONTROL:
        return
    step = steps.describe(level, begin, first)
    if _worth(line, step, noise, few=True):
        before, after = _as_measured(line, first, begin, level.size)
        found.finds.append(Find(line, "out of control", begin, step, before, after))


def _since(level: Floats, first: int, begin: int) -> int:
    """Since when it is out of control: the runs right before it may be nearer to it, too."""
    before = float(np.median(level[first:begin])) if begin > first else 0.0
    half = HALF * (float(np.median(level[begin:])) - before)
    while begin > first and (level[begin - 1] - before) * np.sign(half) >= abs(half) > 0:
        begin -= 1
    return begin


def _share(change: float) -> str:
    return f"{change:+.1%}".replace("%", " %")
