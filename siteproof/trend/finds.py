"""What each line shows: steps, episodes, drift, a change of scatter, a rhythm; fast.

A line is cut where somebody has acknowledged a change: there a new control region begins. All lines
are screened in one batch, and only what is flagged is looked at closely. What is reported is
decided for all lines together, as so many show something by chance: `analysis.steps.reported`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from siteproof.analysis import shape, steps
from siteproof.analysis.quiet import quiet
from siteproof.analysis.screen import screen
from siteproof.analysis.segments import Change
from siteproof.analysis.shape import YEARS, Shape, screen_seasons
from siteproof.analysis.slow_nodes import MIN_FLEET
from siteproof.analysis.spread import MEAN_TO_SIGMA, UNKNOWN, YEAR, Typical, middle, typical
from siteproof.analysis.steps import Drift
from siteproof.record.pair_units import grouped
from siteproof.trend.alerts import CONFIRMS, Kind
from siteproof.trend.lines import Floats, Ints, RoleSeries

DAY = np.timedelta64(1, "D")
ANNUAL = np.timedelta64(int(YEARS * YEAR), "s")  # in shorter histories no year is a pattern
FLEET = -1  # the node of a fleet's line
BATCH, CELLS = 4096, 4096 * 1000  # lines, and values, that are screened at a time
SOME = 200  # lines of a group that show what is typical
SHORTEST = 2 * CONFIRMS  # runs of a line in which a step can be seen
PROVISIONAL = 0.01  # chance in a series of what rests on fewer than CONFIRMS runs; no page decides
QUESTIONS = 3  # of each line: whether its level changed, whether it drifts, how it scatters
MOVED = 0.5  # of a drift: so much of it the values show at their ends
BACK = 0.25  # of a step: a level that lacks less than that is again as it was

Progress = Callable[[int, int], None]  # how many lines are done, of how many


@dataclass(frozen=True)
class Region:
    """A part of a line that one control region may hold. node: its place in the group, or FLEET.

    column: the runs. values: without what the fleet did. raw: as measured. newest: whether the
    line ends with it; its last runs may be out of control, those before a cut are known.
    """

    group: RoleSeries
    node: int
    column: Ints
    values: Floats
    raw: Floats
    newest: bool = True


@dataclass(frozen=True)
class Find:
    """One thing that a stretch shows. at: the first value after it. before, after: as measured.

    relative: of before, signed, without what the fleet did. chance: of so large a change anywhere
    in a series without one; confidence: that there is one, in words. severity: in units of the
    scatter of one run. unit_factor: that of two units, if it explains the change, else 0.
    within: by how many values `at` may be too early or too late. made_good: the value from which on
    all is again as it was before. ends: the value at which a gain began that the others never had,
    and that this loss ended.
    """

    stretch: Region
    kind: Kind
    at: int
    before: float
    after: float
    relative: float
    n_before: int
    n_after: int
    chance: float
    confidence: str
    severity: float = 0.0
    unit_factor: float = 0.0
    within: int = 0
    made_good: int | None = None
    ends: int | None = None

    @property
    def lasts(self) -> bool:
        """Whether the line is now other than it was before, or than the others are."""
        return self.made_good is None and self.ends is None

    @property
    def column(self) -> int:
        """The first run after it."""
        return int(self.stretch.column[self.at])

    @property
    def column_before(self) -> int:
        """The last run before it."""
        return int(self.stretch.column[self.at - 1])

    @property
    def provisional(self) -> bool:
        """Whether its few runs are clear enough to be shown until more of them decide."""
        return self.kind == "out of control" and self.chance <= PROVISIONAL

    @property
    def dated(self) -> tuple[int, int]:
        """The last run that surely was before it, and the first that surely was after it."""
        before = max(self.at - 1 - self.within, self.at - self.n_before, 0)
        after = min(self.at + self.within, self.at + self.n_after - 1)
        return int(self.stretch.column[before]), int(self.stretch.column[after])


@dataclass(frozen=True)
class Found:
    """Finds, and the shapes of lines that swing or flip. searched: lines of each metric."""

    finds: list[Find] = field(default_factory=list)
    rhythms: list[tuple[Region, Shape]] = field(default_factory=list)
    searched: Counter[str] = field(default_factory=Counter)

    def reported(self, metric: str = "") -> list[Find]:
        """The finds that are reported of all lines, or of those of a metric by themselves."""
        some = [f for f in self.finds if metric in ("", f.stretch.group.key.metric)]
        searched = self.searched[metric] if metric else self.searched.total()
        kept = steps.reported([QUESTIONS * find.chance for find in some], QUESTIONS * searched)
        return [find for find, keep in zip(some, kept, strict=True) if keep or find.provisional]


def look(lines: Sequence[Region], progress: Progress | None = None) -> Found:
    """Everything that the lines show."""
    found = Found()
    kinds = _typical(lines)
    fleets = {id(line.group) for line in lines if line.node == FLEET}
    longest = max((line.values.size for line in lines), default=1)
    size = max(1, min(BATCH, CELLS // max(1, longest)))
    for begin in range(0, len(lines), size):
        batch = lines[begin : begin + size]
        for line, may_swing in _suspects(batch, fleets, kinds):
            kind = UNKNOWN if line.node == FLEET else kinds[id(line.group)]
            _closely(line, kind, may_swing, found)
        if progress:
            progress(min(begin + size, len(lines)), len(lines))
    long_enough = (line for line in lines if line.values.size >= SHORTEST)
    found.searched.update(line.group.key.metric for line in long_enough)
    return found


def _suspects(
    batch: Sequence[Region], fleets: Container[int], kinds: Mapping[int, Typical]
) -> Iterator[tuple[Region, bool]]:
    """The lines of fleets, and those that the screens flag; whether each may swing.

    fleets: the groups that have one. kinds: what the lines of each group do.
    """
    flagged = screen(_table([line.values for line in batch]))
    alone = [at for at, line in enumerate(batch) if id(line.group) not in fleets]
    flagged[alone] |= _swinging([batch[at] for at in alone])
    suspects = [line for at, line in enumerate(batch) if line.node == FLEET or flagged[at]]
    swinging = _swinging(suspects)
    swinging |= np.array([line.node == FLEET for line in suspects], dtype=bool)
    silent = _quiet(suspects, kinds) & ~swinging
    for at in np.flatnonzero(~silent).tolist():
        yield suspects[at], bool(swinging[at])


def _quiet(suspects: Sequence[Region], kinds: Mapping[int, Typical]) -> NDArray[np.bool_]:
    """Lines that surely show nothing but a swing."""
    found = np.zeros(len(suspects), dtype=bool)
    alike = grouped(
        ((id(line.group), line.values.size), at)
        for at, line in enumerate(suspects)
        if line.node != FLEET and _is_plain(line.group.times[line.column])
    )
    for (group, _), rows in alike.items():
        found[rows] = quiet(np.array([suspects[at].values for at in rows]), kinds[group])
    return found


def _is_plain(times: NDArray[np.datetime64]) -> bool:
    """Whether a series shows no year; of runs at one time, `steps.slope` compares no pair."""
    return bool((times[1:] > times[:-1]).all() and (times[-1:] - times[:1] < ANNUAL).all())


def _swinging(batch: Sequence[Region]) -> NDArray[np.bool_]:
    """Lines that may swing with weekday or hour; for those that no fleet was taken out of."""
    if not batch:
        return np.zeros(0, dtype=bool)
    table = _table([line.values for line in batch])
    times = np.full(table.shape, np.datetime64("NaT"), dtype="datetime64[us]")
    for at, line in enumerate(batch):
        times[at, table.shape[1] - line.column.size :] = line.group.times[line.column]
    return screen_seasons(times, table)


def typical_of(lines: Sequence[Floats], least: int = MIN_FLEET) -> Typical:
    """What the lines of one group do; of too few of them nothing is known."""
    if len(lines) < least:
        return UNKNOWN
    return typical(_table(lines[:: -(-len(lines) // SOME)]))


def _table(batch: Sequence[Floats]) -> Floats:
    """The values of each line, and gaps before those that have fewer."""
    width = max(line.size for line in batch)
    table = np.full((len(batch), width), np.nan)
    for at, line in enumerate(batch):
        table[at, width - line.size :] = line
    return table


def _typical(lines: Sequence[Region]) -> dict[int, Typical]:
    """What the lines of each group usually do."""
    groups = grouped((id(line.group), line.values) for line in lines if line.node != FLEET)
    return {name: typical_of(of_group) for name, of_group in groups.items()}


def _closely(line: Region, kind: Typical, may_swing: bool, found: Found) -> None:
    """A line that is flagged, or a fleet's. kind: what the lines of its group do."""
    if line.values.size <= CONFIRMS:
        return
    times = line.group.times[line.column]
    seen = shape.explain(times, line.values, kind, may_swing=may_swing)
    if seen.seasons or seen.modes:
        found.rhythms.append((line, seen))
    for at, change in enumerate(seen.changes):
        if _worth(line, change):
            found.finds.append(_change(line, seen.changes, at))
    if seen.drift and steps.worth_an_alert(seen.drift) and _is_seen(line, seen.drift, seen):
        found.finds.append(_drift(line, seen.drift))
    found.finds.extend(_scatter(line, one) for one in seen.scatter if _noisy(line, one))


def _is_seen(line: Region, slope: Drift, seen: Shape) -> bool:
    """Whether the values moved with a drift between two steps, over half of the line or more.

    A node that loses a little until it is booted has steps back, again and again, and no drift.
    """
    values = line.values
    places = [0, *(one.at for one in seen.changes if one.end is None), values.size]
    begin, end = max(pairwise(places), key=lambda part: part[1] - part[0])
    some = (end - begin) // 5
    if values.size < steps.LONG_ENOUGH or 2 * (end - begin) < values.size or not some:
        return False
    moved = float(np.median(values[end - some : end]) - np.median(values[begin : begin + some]))
    expected = slope.total * (end - begin) / values.size
    return bool(moved * expected > 0 and abs(moved) >= MOVED * abs(expected))


def _worth(line: Region, change: Change) -> bool:
    """Whether a change of level is large enough, and has enough runs before it."""
    if abs(steps.share(change.before, change.after)) < steps.MIN_RELATIVE:
        return False
    if change.end is None and change.n_after < CONFIRMS:
        beyond = line.values[change.at :] - (change.before + change.after) / 2
        if not line.newest or np.any(beyond * (change.after - change.before) < 0):
            return False  # of a past that ended there, or a single run
    return change.n_before >= CONFIRMS


def _change(line: Region, changes: Sequence[Change], at: int) -> Find:
    """A step or an episode. Levels as measured: medians of so many runs next to it."""
    change = changes[at]
    first, end = max(0, change.at - change.n_before), change.at + change.n_after
    levels = (middle(line.raw[a:b]) for a, b in ((first, change.at), (change.at, end)))
    if change.end is not None:
        return replace(
            _found(line, "episode", change, *levels), severity=change.severity, made_good=change.end
        )
    kind: Kind = "step" if change.n_after >= CONFIRMS else "out of control"
    return replace(
        _found(line, kind, change, *levels),
        severity=change.severity,
        unit_factor=steps.unit_factor(change),
        made_good=_made_good(change, changes[at + 1 :]),
        ends=_ended(line, changes, at),
    )


def _found(line: Region, kind: Kind, change: Change, before: float, after: float) -> Find:
    return Find(
        line,
        kind,
        change.at,
        before,
        after,
        steps.share(change.before, change.after),
        change.n_before,
        change.n_after,
        change.chance,
        steps.confidence(change.chance),
        within=change.within,
    )


def _made_good(change: Change, later: Sequence[Change]) -> int | None:
    """Where the level begins from which on all is again as before a step, if one does."""
    way = np.sign(change.before - change.after)
    near = max(steps.MIN_RELATIVE * abs(change.before), BACK * abs(change.before - change.after))
    lasting = [one for one in later if one.end is None]
    lacks = [(change.before - one.after) * way > near for one in lasting]
    back = next((at for at in range(len(lacks)) if not any(lacks[at:])), None)
    return None if back is None else lasting[back].at


def _ended(line: Region, changes: Sequence[Change], at: int) -> int | None:
    """Where the gain began that a loss ended, if the line is now as those of the other nodes."""
    loss, places = changes[at], range(at)
    undone = (n for n in places if _made_good(changes[n], changes[n + 1 :]) == loss.at)
    begin = next(undone, None)
    sign = 1 if line.group.better == "higher" else -1
    if begin is None or line.node == FLEET or (loss.after - loss.before) * sign > 0:
        return None
    group = line.group
    others = (group.owner != line.node) & (group.column >= line.column[loss.at])
    if np.unique(group.owner[others]).size < MIN_FLEET - 1:
        return None
    lacks = sign * (np.median(group.values[others]) - np.median(line.raw[loss.at :]))
    return changes[begin].at if lacks <= BACK * abs(loss.after - loss.before) else None


def _noisy(line: Region, change: Change) -> bool:
    """Whether the runs of one side scatter so much that it matters."""
    level = abs(middle(line.values))
    return max(change.before, change.after) >= steps.MIN_RELATIVE * level > 0


def _scatter(line: Region, change: Change) -> Find:
    """A change of the scatter, from the mean distances of runs from their level."""
    before, after = MEAN_TO_SIGMA * change.before, MEAN_TO_SIGMA * change.after
    return _found(line, "scatter", change, before, after)


def _drift(line: Region, slope: Drift) -> Find:
    """A slope as an alert: from the level at the line's beginning to that at its end."""
    values = line.values
    middle = float(np.median(values))
    before, after = middle - slope.total / 2, middle + slope.total / 2
    part = slope.total / slope.per_year / abs(before) if before else 0.0  # of a year, as a share
    relative, low, high = (part * one for one in (slope.per_year, slope.low, slope.high))
    days = (line.group.times[line.column[-1]] - line.group.times[line.column[0]]) / DAY
    return Find(
        line,
        "drift",
        values.size - 1,
        before,
        after,
        relative,
        values.size,
        values.size,
        slope.chance,
        f"over {days:.0f} days, most likely {share(low)} to {share(high)}",
    )


def share(change: float) -> str:
    """A change in per cent, signed."""
    return f"{change:+.1%}".replace("%", " %")
