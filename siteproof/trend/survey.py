"""The survey: every line of a system looked at, and what changed told in few words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from siteproof import files, nodesets
from siteproof.analysis import steps
from siteproof.analysis.shape import Shape
from siteproof.record import series
from siteproof.sites import Site
from siteproof.trend import acks, causes, clusters, finds, gaps, lines, screening
from siteproof.trend.alerts import CONFIRMS, Alert, Line, Rhythm, Survey
from siteproof.trend.finds import FLEET, SHORTEST, Find, Found, Stretch, Told
from siteproof.trend.lines import Floats, Group, Lines
from siteproof.trend.siblings import beside

if TYPE_CHECKING:
    from siteproof.history import History


def survey(
    site: Site,
    h: History,
    *,
    now: datetime | None = None,
    since: datetime | None = None,
    metric: str = "",
    node: str = "",
    perflogs: Path | None = None,
    told: Told | None = None,
) -> Survey:
    """Everything that changed in a system's history. Raises UserError for a broken record.

    now: what is newer does not count. since: only changes from then on are told; the whole history
    is looked at. metric, node: only these are told. told: how many lines are done, of how many.
    """
    perflogs = perflogs or files.perflogs()
    system = site.system.system
    looked = examine(site, h, perflogs, metric, now, told)
    found, stretches, seen, known = looked.lines, looked.stretches, looked.seen, looked.known
    named = clusters.alerts(site, seen.finds, [a.id for a in known])
    alerts = [a for a in named if _wanted(a, since, node)]
    alerts = sorted(causes.explain(h, system, perflogs, alerts), key=severity)
    nodes = [s for s in stretches if s.node != FLEET]
    return Survey(
        alerts=[a for a in alerts if not a.of_fleet and a.kind != "drift"],
        fleet=[a for a in alerts if a.of_fleet and a.kind != "drift"],
        drifts=[a for a in alerts if a.kind == "drift"],
        seasons=_rhythms(seen.rhythms),
        gaps=gaps.told(h, system, found, stretches) + _searched(seen.left_out),
        clocks=h.clock_findings(system),
        acknowledged=[a for a in known if _wanted(a, None, node) and metric in ("", a.metric)],
        series=sum(len(group.nodes) for group in found.groups),
        points=sum(s.values.size for s in nodes),
        long_enough=sum(s.values.size >= SHORTEST for s in nodes),
    )


@dataclass(frozen=True)
class Examined:
    """Every line, cut where a change is acknowledged, and what they show."""

    lines: Lines
    stretches: list[Stretch]
    seen: Found
    known: list[Alert]


def examine(
    site: Site,
    h: History,
    perflogs: Path,
    metric: str = "",
    now: datetime | None = None,
    told: Told | None = None,
) -> Examined:
    """Look at every line. Raises UserError for a broken record of an acknowledgement."""
    known = acks.standing(acks.read_all(perflogs, site.system.system))
    found = lines.read(site, h, metric, until=now)
    stretches = [s for group in found.groups for s in _stretches(group, known)]
    seen = finds.look(stretches, told)
    seen.finds[:] = [find for find in seen.finds if not _known_drift(find, known)]
    return Examined(found, stretches, seen, known)


def _known_drift(find: Find, known: Sequence[Alert]) -> bool:
    """Whether it is the drift up to the run at which somebody acknowledged it."""
    line, group = find.stretch, find.stretch.group
    return find.kind == "drift" and any(
        a.kind == "drift"
        and same_series(a, group)
        and (a.of_fleet if line.node == FLEET else group.nodes[line.node] in a.nodes)
        and group.runs[int(line.column[-1])].moment.time <= a.first_after.time
        for a in known
    )


def history_of(
    site: Site, h: History, metric: str, node: str = "", *, seen: Survey | None = None
) -> list[Line]:
    """The lines of a metric as they are, with the changes that a survey found in them."""
    alerts = [*seen.all, *seen.acknowledged] if seen else []
    found = []
    alone = node if site.role_of(node) else ""  # links have no node of their name in the store
    for group in lines.read(site, h, metric, node=alone).groups:
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


def same_series(alert: Alert, group: Group) -> bool:
    """Whether an alert speaks of a group."""
    return alert.series == group.key or series.alike(alert.series, group.key)


def severity(alert: Alert) -> tuple[object, ...]:
    """What sorts alerts: open ones first, proven before provisional, large before small."""
    return (
        not alert.open,
        not alert.worse,
        alert.provisional,
        -abs(alert.relative),
        alert.series_name,
        alert.id,
    )


def _stretches(group: Group, known: Sequence[Alert]) -> list[Stretch]:
    values, fleet = beside(group)
    mine = [a for a in known if same_series(a, group)]
    of_nodes: dict[str, list[Alert]] = {}
    for alert in mine:
        for name in () if alert.of_fleet else alert.nodes:
            of_nodes.setdefault(name, []).append(alert)
    found: list[Stretch] = []
    for at, name in enumerate(group.nodes):
        here = group.of(at)
        column, own = group.column[here], values[here]
        found += finds.stretches(
            group,
            at,
            column,
            own,
            group.values[here],
            _cuts(of_nodes.get(name, ()), group.times[column], own),
        )
    if fleet:
        of_fleet = [a for a in mine if a.of_fleet]
        found += finds.stretches(
            group,
            FLEET,
            fleet.columns,
            fleet.values,
            fleet.values,
            _cuts(of_fleet, group.times[fleet.columns], fleet.values),
        )
    return found


def _cuts(
    known: Sequence[Alert], times: NDArray[np.datetime64], values: Floats
) -> Iterator[np.datetime64]:
    """Where a line is cut, for a new control region begins there."""
    for alert in known:
        cut = np.datetime64(alert.first_after.time, "us")
        at = int(np.searchsorted(times, cut))
        if not (alert.provisional and _went_on(alert, values[:at], values[at:])):
            yield cut


def _went_on(alert: Alert, before: Floats, after: Floats) -> bool:
    """Whether a change became a larger one when only its first runs had been acknowledged."""
    told, later = after[: alert.n_after], after[alert.n_after :][:SHORTEST]
    if before.size < 2 or not told.size or later.size < CONFIRMS:
        return False
    level = float(np.median(told))
    least = abs(level) * max(steps.MIN_RELATIVE, steps.MIN_SD * screening.noise(before))
    return bool((np.median(later) - level) * np.sign(alert.relative) > least)


def _wanted(alert: Alert, since: datetime | None, node: str) -> bool:
    if node and node not in alert.nodes:
        return False
    return since is None or alert.first_after.time >= since.astimezone(UTC).replace(tzinfo=None)


def _rhythms(found: Sequence[tuple[Stretch, Shape]]) -> list[Rhythm]:
    """Swings and flips by series and name; the nodes that show one are told as a set."""
    together: dict[tuple[int, str], list[tuple[Stretch, float]]] = {}
    for line, shape in found:
        name, size = _rhythm(shape)
        together.setdefault((id(line.group), name), []).append((line, size))
    told = []
    for (_, name), held in together.items():
        group = held[0][0].group
        nodes = {group.nodes[line.node] for line, _ in held if line.node != FLEET}
        told.append(
            Rhythm(
                group.key.metric,
                group.key.name,
                group.key.role,
                nodesets.of(nodes or group.nodes),
                name,
                float(np.median([size for _, size in held])),
            )
        )
    return sorted(told, key=lambda r: (-r.size, r.series_name))


def _rhythm(shape: Shape) -> tuple[str, float]:
    if shape.season:
        season = shape.season
        return (
            f"{season.name}, lowest {season.lowest}, highest {season.highest}",
            abs(season.relative),
        )
    assert shape.modes is not None
    low, high = shape.modes
    return "flips between two levels", (high - low) / abs(low) if low else 0.0


def _searched(left_out: Sequence[tuple[Stretch, int]]) -> list[str]:
    if not left_out:
        return []
    line, count = max(left_out, key=lambda item: item[1])
    return [
        f"{len(left_out)} lines are longer than what is searched: of {line.group.told} the "
        f"oldest {count} runs were not looked at"
    ]
