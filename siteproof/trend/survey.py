"""The survey: every line of a system is looked at, and what changed is found.

A fleet in one series: its own line, and each node compared with it.

A change of the whole fleet is no change of its nodes: it is taken out of their values, and is one
alert. Each node counts by its share of its own typical value, so that a run from which good nodes
are missing moves nothing. Where the fleet's median moves because a part of the nodes moved, that
part is left out, and the rest is the fleet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from math import pi, sqrt
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from siteproof import nodesets
from siteproof.analysis import shape, steps
from siteproof.analysis.ranks import COVERS
from siteproof.analysis.screen import medians
from siteproof.analysis.shape import Shape
from siteproof.analysis.slow_nodes import MIN_FLEET
from siteproof.analysis.spread import robust_sd
from siteproof.record import series
from siteproof.sites import Site
from siteproof.trend import alerts, finds, gaps, lines
from siteproof.trend.alerts import CONFIRMS, TWO_LEVELS, Alert, Causes, Line, Rhythm, Survey
from siteproof.trend.finds import FLEET, SHORTEST, Find, Found, Progress, Region
from siteproof.trend.gaps import sensitivities
from siteproof.trend.lines import Floats, Ints, Lines, RoleSeries

if TYPE_CHECKING:
    from siteproof.history import History

SD = 3.0  # of a run, by which a change that was acknowledged early must have grown


def survey(
    site: Site,
    h: History,
    *,
    now: datetime | None = None,
    since: datetime | None = None,
    metric: str = "",
    node: str = "",
    progress: Progress | None = None,
) -> Survey:
    """Everything that changed in a system's history. Raises UserError for a broken record.

    now: what is newer does not count. since: only changes from then on are reported; the whole
    history is looked at. metric, node: only these are reported.
    """
    system = site.system.system
    looked = examine(site, h, metric, now, progress, joined=True)
    found, stretches, seen, known = looked.lines, looked.stretches, looked.seen, looked.known
    alerts = [a for a in _named(site, looked) if _wanted(a, since, node)]
    explain = Causes(h, system).explain
    alerts = sorted((_bounded(site, explain(a)) for a in alerts), key=severity)
    nodes = [s for s in stretches if s.node != FLEET]
    return Survey(
        alerts=[a for a in alerts if not a.of_fleet and a.kind != "drift"],
        fleet=[a for a in alerts if a.of_fleet and a.kind != "drift"],
        drifts=[a for a in alerts if a.kind == "drift"],
        seasons=_rhythms(seen.rhythms),
        gaps=gaps.gaps(h, system, found, stretches),
        clocks=h.clock_findings(system),
        acknowledged=[a for a in known if _wanted(a, None, node) and metric in ("", a.metric)],
        series=sum(len(group.nodes) for group in found.groups),
        points=sum(s.values.size for s in nodes),
        long_enough=sum(s.values.size >= SHORTEST for s in nodes),
        sensitivity=[s for s in sensitivities(stretches) if not node or node in s.nodes],
        dates={name: _dates(site, looked, name) for name in seen.searched},
    )


def dates(site: Site, h: History, metric: str, now: datetime | None) -> list[Alert]:
    """When a metric changed, the worst first, drifts and what was acknowledged at the end.

    Of this metric by itself, whatever else was measured; without the causes.
    """
    return _dates(site, examine(site, h, metric, now, joined=True), metric)


def _dates(site: Site, looked: Examined, metric: str) -> list[Alert]:
    found = sorted(_named(site, looked, metric), key=lambda a: (a.kind == "drift", *severity(a)))
    return [*found, *(a for a in looked.known if a.metric == metric)]


def _named(site: Site, looked: Examined, metric: str = "") -> list[Alert]:
    """The changes that are reported, of all lines or of those of a metric by themselves."""
    return gaps.alerts(site, looked.reported(metric), [a.id for a in looked.known])


def _bounded(site: Site, alert: Alert) -> Alert:
    """A drift with the day on which it meets a criterion's bound, if it goes on as it did.

    The day is given up to as long ahead as the drift was seen.
    """
    if alert.kind != "drift" or not alert.worse:
        return alert
    bounded = (
        criterion.limits(alert.unit)[0 if alert.relative < 0 else 1]
        for criterion in site.criteria.values()
        if criterion.metric == alert.metric and criterion.bound and not criterion.bound.fact
    )
    way = alert.after - alert.before
    left = [(float(limit.value) - alert.after) / way for limit in bounded if limit]
    ahead = [share for share in left if 0 <= share <= 1]
    if not ahead:
        return alert
    seen = alert.first_after.time - alert.last_before.time
    return replace(alert, meets=f"{alert.first_after.time + min(ahead) * seen:%Y-%m-%d}")


@dataclass(frozen=True)
class Examined:
    """Every line, cut where a change is acknowledged, and what they show."""

    lines: Lines
    stretches: list[Region]
    seen: Found
    known: list[Alert]

    def reported(self, metric: str = "") -> list[Find]:
        """As of `Found`, without the drifts that somebody has acknowledged."""
        return [f for f in self.seen.reported(metric) if not _known_drift(f, self.known)]


def examine(
    site: Site,
    h: History,
    metric: str = "",
    now: datetime | None = None,
    progress: Progress | None = None,
    *,
    joined: bool = False,
) -> Examined:
    """Look at every line. Raises UserError for a broken record of an acknowledgement.

    joined: lines go on where settings changed; a baseline needs each setting by itself.
    """
    known = alerts.standing(alerts.acknowledgements(h.perflogs, site.system.system))
    found = lines.read(site, h, metric, until=now, joined=joined)
    stretches = [s for group in found.groups for s in _stretches(group, known)]
    seen = finds.look(stretches, progress)
    return Examined(found, stretches, seen, known)


def _known_drift(find: Find, known: Sequence[Alert]) -> bool:
    """Whether it is the drift up to the run at which somebody acknowledged it."""
    line, group = find.stretch, find.stretch.group
    return find.kind == "drift" and any(
        a.kind == "drift"
        and same_series(a, group)
        and (a.of_fleet if line.node == FLEET else group.nodes[line.node] in a.nodes)
        and group.moment(int(line.column[-1])).time <= a.first_after.time
        for a in known
    )


def history_of(
    site: Site, h: History, metric: str, node: str = "", *, seen: Survey | None = None
) -> list[Line]:
    """The lines of a metric as they are, with the changes that a survey found in them."""
    alerts = [*seen.all, *seen.acknowledged] if seen else []
    found = []
    alone = node if site.role_of(node) else ""  # links have no node of their name in the store
    for group in lines.read(site, h, metric, node=alone, joined=True).groups:
        for at, name in enumerate(group.nodes):
            if node in ("", name):
                here = group.of(at)
                found.append(
                    Line(
                        group.key,
                        name,
                        group.unit,
                        group.times[group.column[here]],
                        group.values[here],
                        [a for a in alerts if same_series(a, group) and name in a.nodes],
                    )
                )
    return found


def same_series(alert: Alert, group: RoleSeries) -> bool:
    """Whether an alert is on this series."""
    keys = (group.key, *group.earlier)
    return any(alert.series == key or series.alike(alert.series, key) for key in keys)


def severity(alert: Alert) -> tuple[object, ...]:
    """The key that sorts alerts: open ones first, proven before provisional, large before small."""
    return (
        not alert.open,
        not alert.worse,
        alert.provisional,
        -abs(alert.relative),
        alert.series_name,
        alert.id,
    )


def _stretches(group: RoleSeries, known: Sequence[Alert]) -> list[Region]:
    values, fleet = without_fleet(group)
    of_fleet: list[Alert] = []
    of_nodes: dict[str, list[Alert]] = {}
    for alert in known:
        if not same_series(alert, group):
            continue
        if alert.of_fleet:
            of_fleet.append(alert)
            continue
        for name in alert.nodes:
            of_nodes.setdefault(name, []).append(alert)
    found: list[Region] = []
    for at, name in enumerate(group.nodes):
        here = group.of(at)
        alerts = of_nodes.get(name, ())
        found += _cut(group, at, group.column[here], values[here], group.values[here], alerts)
    if fleet:
        columns, own = fleet
        found += _cut(group, FLEET, columns, own, own, of_fleet)
    return found


def _cut(
    group: RoleSeries, node: int, column: Ints, values: Floats, raw: Floats, known: Sequence[Alert]
) -> Iterator[Region]:
    """A line cut where a change is acknowledged, for a new control region begins there."""
    cuts = set()
    for alert in known:
        after = np.datetime64(alert.first_after.time, "us")
        at = int(np.searchsorted(group.times[column], after))
        if not (alert.provisional and _went_on(alert, values[:at], values[at:])):
            cuts.add(at)
    bounds = [0, *sorted(cut for cut in cuts if 0 < cut < column.size), column.size]
    for begin, end in pairwise(bounds):
        here = slice(begin, end)
        yield Region(group, node, column[here], values[here], raw[here], end == column.size)


def _went_on(alert: Alert, before: Floats, after: Floats) -> bool:
    """Whether a change became a larger one when only its first runs had been acknowledged."""
    first, later = after[: alert.n_after], after[alert.n_after :][:SHORTEST]
    if before.size < 2 or not first.size or later.size < CONFIRMS:
        return False
    level = float(np.median(first))
    noise = robust_sd(np.diff(before), abs(level)) / sqrt(2)
    least = max(abs(level) * steps.MIN_RELATIVE, SD * noise)
    return bool((np.median(later) - level) * np.sign(alert.relative) > least)


def _wanted(alert: Alert, since: datetime | None, node: str) -> bool:
    if node and node not in alert.nodes:
        return False
    return since is None or alert.first_after.time >= since.astimezone(UTC).replace(tzinfo=None)


def _rhythms(found: Sequence[tuple[Region, Shape]]) -> list[Rhythm]:
    """Swings and flips by series and pattern, each with the nodes that show it."""
    together: dict[tuple[int, str, str, str], list[tuple[Region, float]]] = {}
    for line, its_shape in found:
        for pattern, lowest, highest, size in _patterns(its_shape):
            key = (id(line.group), pattern, lowest, highest)
            together.setdefault(key, []).append((line, size))
    rhythms = []
    for (_, pattern, lowest, highest), lines_and_sizes in together.items():
        group = lines_and_sizes[0][0].group
        nodes = {group.nodes[line.node] for line, _ in lines_and_sizes if line.node != FLEET}
        rhythms.append(
            Rhythm(
                group.key.metric,
                group.key.name,
                group.key.role,
                nodesets.of(nodes or group.nodes),
                pattern,
                lowest,
                highest,
                float(np.median([size for _, size in lines_and_sizes])),
            )
        )
    return sorted(rhythms, key=lambda r: (-r.size, r.series_name))


def _patterns(shape: Shape) -> Iterator[tuple[str, str, str, float]]:
    """Pattern, lowest, highest and size of each."""
    for season in shape.seasons:
        yield season.name, season.lowest, season.highest, abs(season.relative)
    if shape.modes:
        low, high = shape.modes
        yield TWO_LEVELS, "", "", (high - low) / abs(low) if low else 0.0


ROUNDS = 2  # of typical values and fleet's level in turns, so that neither hides in the other
PARTS = 3  # that are left out of a fleet one after the other, before it is taken as it is
HALF = 0.5  # of a step: a node that moved by less did not take part
NEARLY_ALL = 0.8  # of the nodes take part in a step of the whole fleet …
MAJORITY = 0.5  # … or so many, where runs are so few that noise hides which nodes did


SiblingLine = tuple[
    Ints, Floats
]  # of a fleet: the runs that enough nodes were in, and its values there


def without_fleet(group: RoleSeries) -> tuple[Floats, SiblingLine | None]:
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


def _whole(frame: _Frame) -> SiblingLine | None:
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

    def line(self, kept: NDArray[np.bool_]) -> SiblingLine | None:
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

    def part(self, line: SiblingLine, kept: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
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
