"""What could not be judged, and why: a finding each, with a count and an example.

And what could have been found: the smallest change in each series, by its own scatter and runs.

Finds of many nodes as few alerts: what moved in the same runs, by about as much, is one.
"""

from __future__ import annotations

import hashlib
from base64 import b32encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
from ClusterShell.NodeSet import NodeSet

from siteproof import nodesets
from siteproof.analysis import steps
from siteproof.analysis.spread import middle
from siteproof.analysis.steps import most_chance, smallest_change
from siteproof.record import finding
from siteproof.record.finding import Finding, note
from siteproof.record.pair_units import LINK, grouped
from siteproof.record.series import SYSTEM, Series
from siteproof.sites import Site
from siteproof.trend.alerts import CONFIRMS, Alert, Kind, Moment
from siteproof.trend.finds import FLEET, QUESTIONS, SHORTEST, Find, Region, share, typical_of
from siteproof.trend.lines import Lines, RoleSeries

if TYPE_CHECKING:
    from siteproof.history import History

LONG = CONFIRMS  # consecutive runs without a node from which on that is a gap
MAX_NAMES = 6  # of a list of names
_LACKING = """
    SELECT status, count(*), count(DISTINCT node), max((time, check_name, node, why))
    FROM samples WHERE system = $system AND status <> 'ok' AND source <> 'published'
    GROUP BY status ORDER BY count(*) DESC, status"""
_OTHERS = """
    SELECT count(*) FILTER (source = 'published'),
           count(*) FILTER (status = 'ok' AND kind <> 'text' AND NOT isfinite(base)),
           min(file) FILTER (status = 'ok' AND kind <> 'text' AND NOT isfinite(base))
    FROM samples WHERE system = $system"""


def gaps(h: History, system: str, lines: Lines, stretches: Sequence[Region]) -> list[Finding]:
    """Everything that is missing or left out."""
    return [
        *_other_series(lines.groups),
        *_silences(lines.groups),
        *_absent(lines.groups),
        *_runs_missed(lines.groups),
        *_short(stretches),
        *_without_value(h, system),
        *_left_out(lines),
        *lines.other_units,
        *_others(h, system),
        *_not_read(h),
    ]


def _named(names: Iterable[str], key: str = "series") -> dict[str, Any]:
    """The first of many names, and how many more there are."""
    ordered = sorted(set(names))
    return {key: ", ".join(ordered[:MAX_NAMES]), "more": len(ordered[MAX_NAMES:]) or None}


def _other_series(groups: Sequence[RoleSeries]) -> Iterator[Finding]:
    """Series that end where one under other conditions begins: they are never joined."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for of_place in grouped((_place(group), group) for group in groups).values():
        for one, other in pairwise(sorted(of_place, key=lambda g: g.times[0])):
            if one.times[-1] <= other.times[0] and set(one.nodes) & set(other.nodes):
                first = other.moment(0)
                change = (_differences(one.key, other.key), first.iso, first.session)
                found.setdefault(change, []).append(other.name)
    for (differences, since, session), names in found.items():
        text = (
            "another series since {since:minute} (session {session}): {differences}; "
            "{series}{more: and %s more} not compared with older values"
        )
        yield note(text, since=since, differences=differences, session=session, **_named(names))


def _differences(one: Series, other: Series) -> str:
    before, after = dict(one.conditions), dict(other.conditions)
    keys = sorted(k for k in before.keys() | after.keys() if before.get(k) != after.get(k))
    return ", ".join(f"{k} {before.get(k, 'nothing')} -> {after.get(k, 'nothing')}" for k in keys)


def _absent(groups: Iterable[RoleSeries]) -> Iterator[Finding]:
    """Nodes that the newest runs of their series lack, one finding for all metrics."""
    missed: dict[tuple[str, str, str], set[str]] = {}
    for group in _newest(groups):
        newest = group.times.size - 1
        for node, name in enumerate(group.nodes):
            last = int(group.column[group.begin[node + 1] - 1])
            if newest - last >= LONG:
                missed.setdefault((group.key.role, _day(group, last), name), set()).add(group.name)
    alike = grouped(
        ((role, since, frozenset(series)), node) for (role, since, node), series in missed.items()
    )
    for (_, since, names), nodes in sorted(alike.items(), key=lambda item: item[0][1]):
        first, *others = sorted(names)
        yield note(
            "not measured since {since}: {subject}, {series}{more: and %s more}",
            subject=str(nodesets.of(nodes)),
            since=since,
            series=first,
            more=len(others) or None,
        )


def _newest(groups: Iterable[RoleSeries]) -> Iterator[RoleSeries]:
    """Of series that followed each other only the last one: the others have ended."""
    for of_place in grouped((_place(group), group) for group in groups).values():
        yield max(of_place, key=lambda group: group.times[-1])


def _place(group: RoleSeries) -> tuple[object, ...]:
    """What series share that follow each other."""
    key = group.key
    application = dict(key.conditions).get("application")  # those of a site have a job each
    return key.metric, key.dims, key.environment, key.role, application


def _runs_missed(groups: Iterable[RoleSeries]) -> Iterator[Finding]:
    """Consecutive runs without a node that later ones have again: how often, and the first case."""
    found: list[tuple[RoleSeries, int]] = []
    for group in groups:
        same_node = group.owner[1:] == group.owner[:-1]
        missed = same_node & (np.diff(group.column) > LONG)
        found += [(group, int(at)) for at in np.flatnonzero(missed)]
    if not found:
        return
    group, at = found[0]
    last, next_run = (int(run) for run in group.column[at : at + 2])
    yield note(
        "{count:n gap} of {least} runs or more in a line, for example {subject}, {metric}, "
        "between {since} and {until}",
        subject=group.nodes[int(group.owner[at])],
        metric=group.name,
        since=_day(group, last),
        count=len(found),
        least=LONG,
        until=_day(group, next_run),
    )


def _silences(groups: Iterable[RoleSeries]) -> Iterator[Finding]:
    """Times without any run that are far longer than the typical interval of a series."""
    found: dict[tuple[str, str, float], list[str]] = {}
    for group in groups:
        days = np.unique(group.times.astype("datetime64[D]"))
        intervals = np.diff(days).astype(np.int64)
        if intervals.size < LONG:
            continue
        typical = float(np.median(intervals))
        for at in np.flatnonzero(intervals > LONG * typical):
            found.setdefault((str(days[at]), str(days[at + 1]), typical), []).append(group.name)
    for (since, until, days_between), names in sorted(found.items())[-MAX_NAMES:]:
        each = "day" if days_between == 1 else "{days:6g} days"
        text = (
            "no run between {since} and {until}, typically one every "
            + each
            + ": {series}{more: and %s more}"
        )
        yield note(text, since=since, until=until, days=days_between, **_named(names))
    if len(found) > MAX_NAMES:
        text = "{count:n earlier period} without any run"
        yield note(text, count=len(found) - MAX_NAMES)


def _day(group: RoleSeries, run: int) -> str:
    return str(group.times[run].astype("datetime64[D]"))


def _short(stretches: Sequence[Region]) -> Iterator[Finding]:
    """Lines in which no step can be seen yet."""
    of_nodes = [s for s in stretches if s.node >= 0]
    short = [s for s in of_nodes if s.values.size < SHORTEST]
    if not short:
        return
    longest = max(short, key=lambda s: s.values.size)
    yield note(
        "{count} of {of} series have fewer than {needed} runs, too few for a step: for example "
        "{metric}, {subject} with {runs}",
        subject=longest.group.nodes[longest.node],
        metric=longest.group.name,
        count=len(short),
        of=len(of_nodes),
        needed=SHORTEST,
        runs=longest.values.size,
    )


def _without_value(h: History, system: str) -> Iterator[Finding]:
    """Failed measurements by status, each with the newest one."""
    for status, samples, nodes, newest in h.sql(_LACKING, {"system": system}):
        time, check, node, why = newest.values() if isinstance(newest, dict) else newest
        yield note(
            "{samples:n sample} of {nodes:n node} without a value, of status {status}; the newest: "
            "{check} on {subject}, {since}{message:: %s}",
            subject=node or system,
            check=check,
            status=status,
            since=f"{time:%Y-%m-%d}",
            message=why,
            samples=samples,
            nodes=nodes,
        )


def _left_out(lines: Lines) -> Iterator[Finding]:
    for what, counts in (
        ("nodes without a role", lines.no_role),
        ("metrics that are not in the catalogue", lines.not_in_catalogue),
        ("metrics where neither more nor less is better", lines.no_direction),
    ):
        if counts:
            text = what + ": {names}{more: and %s more}; {values:n value} left out"
            yield note(text, **_named(counts, "names"), values=sum(counts.values()))


def _not_read(h: History) -> Iterator[Finding]:
    if h.refused:
        more = len(h.refused) - 1 or None
        yield finding.of(finding.Kind.NOT_READ, {"more": more}, message=h.refused[0])


def _others(h: History, system: str) -> Iterator[Finding]:
    """Published values, and values that are not finite numbers."""
    published, infinite, file = h.sql(_OTHERS, {"system": system})[0]
    if published:
        text = "{count:n published value} left out: not measured by Siteproof"
        yield note(text, count=published)
    if infinite:
        text = "{count:n value} not a finite number, for example in {file}"
        yield note(text, count=infinite, file=file)


LASTS = (3, 10)  # runs, at the end of the history; and half of it
LASTING = "lasting"


@dataclass(frozen=True)
class Sensitivity:
    """One series of a role. scatter: coefficient of variation of a typical node from run to run.

    runs: of a typical node. smallest: by how long a change has lasted, in runs or LASTING (half of
    the runs), the share of the level from which on it is found with probability .9.
    """

    metric: str
    series_name: str
    role: str
    nodes: NodeSet
    runs: int
    scatter: float
    smallest: Mapping[str, float]


def sensitivities(stretches: Sequence[Region]) -> list[Sensitivity]:
    """Of each series that has runs enough, the least sensitive first."""
    long_enough = [line for line in stretches if line.values.size >= SHORTEST]
    of_nodes = (line for line in long_enough if line.node != FLEET and line.newest)
    groups = grouped((id(line.group), line) for line in of_nodes)
    chance = most_chance(QUESTIONS * len(long_enough)) / QUESTIONS
    found = [_of_group(lines, chance) for lines in groups.values()]
    return sorted(found, key=lambda one: (-one.smallest[LASTING], one.series_name, one.role))


def _of_group(lines: Sequence[Region], chance: float) -> Sensitivity:
    group = lines[0].group
    typical = typical_of([line.values for line in lines], least=1)
    runs = int(median(line.values.size for line in lines))
    places = {str(last): last for last in LASTS} | {LASTING: runs // 2}
    return Sensitivity(
        group.key.metric,
        group.key.name,
        group.key.role,
        nodesets.of(group.nodes[line.node] for line in lines),
        runs,
        typical.noise,
        {
            name: smallest_change(typical.noise, runs - last, last, typical.factor, chance)
            for name, last in places.items()
        },
    )


NEAR = 2  # runs between two steps that may still be one, and as many as a date is uncertain
ALIKE = 2.0  # times: steps of sizes further apart are two
MANY = 0.5  # of a rack's nodes that make its name the place
FEW = 2  # nodes of a rack; one alone does not make it a change of the rack
LENGTH = 6  # of an id


def alerts(site: Site, finds: Iterable[Find], taken: Iterable[str] = ()) -> list[Alert]:
    """One alert for what moved together, each with an id of its own.

    taken: the ids of acknowledged changes, which stay theirs.
    """
    found: list[Alert] = []
    for of_group in grouped((id(find.stretch.group), find) for find in finds).values():
        for together in _together(of_group):
            for place, part in _by_place(site, together):
                found.append(_alert(of_group[0].stretch.group, place, part))
    return _numbered(found, set(taken))


def _together(finds: Sequence[Find]) -> list[list[Find]]:
    """Of one group: by kind and direction, in the same runs, and of alike size."""
    clusters: list[list[Find]] = []
    left = sorted(finds, key=lambda f: (f.kind == "drift", f.column, f.stretch.node))
    while left:
        home = _around(_most_common(left), left)
        clusters.append(sorted(home.values(), key=lambda f: (f.column, f.stretch.node)))
        left = [f for f in left if id(f) not in home]
    return clusters


def _around(first: Find, finds: Sequence[Find]) -> dict[int, Find]:
    """By their ids, the finds that are one with the first; drifts that it explains are steps."""
    home = {id(f): f for f in finds if f is first or _joins(first, f)}
    drifts = [f for f in finds if f.kind == "drift" and id(f) not in home]
    of_drifts = {id(f): _as_step(f, first, len(home)) for f in drifts}
    return home | {name: step for name, step in of_drifts.items() if step}


def _most_common(finds: Sequence[Find]) -> Find:
    """The find of middle size in the run in which most finds of one kind and direction are."""
    places = grouped(((f.kind, f.column, f.relative > 0, f.lasts), f) for f in finds)
    most = max(places.values(), key=len)
    return sorted(most, key=lambda f: f.relative)[len(most) // 2]


def _joins(one: Find, other: Find) -> bool:
    if one.kind != other.kind or FLEET in (one.stretch.node, other.stretch.node):
        return False
    near = NEAR + max(one.within, other.within)
    if one.kind != "drift" and abs(other.column - one.column) > near:
        return False
    if one.lasts != other.lasts:
        return False
    return _is_alike(one.relative, other.relative)


def _is_alike(a: float, b: float) -> bool:
    if a == b:  # also of two infinite changes, from 0
        return a != 0
    return a * b > 0 and max(abs(a), abs(b)) <= ALIKE * min(abs(a), abs(b))


def _as_step(find: Find, step: Find, count: int) -> Find | None:
    """A drift of one node as the step that several others have, if it is about as large as one.

    Of many nodes with one step, noise makes that of some look like a slope. count: of the others.
    """
    line = find.stretch
    if step.kind != "step" or not step.lasts or count <= FEW:
        return None
    at = int(np.searchsorted(line.column, step.column))
    begin, end = max(0, at - step.n_before), at + step.n_after
    if FLEET in (line.node, step.stretch.node) or min(at, line.column.size - at) < CONFIRMS:
        return None
    sides = slice(begin, at), slice(at, end)
    relative = steps.share(*(middle(line.values[side]) for side in sides))
    if not _is_alike(relative, step.relative):
        return None
    before, after = (middle(line.raw[side]) for side in sides)
    return replace(step, stretch=line, at=at, before=before, after=after, relative=relative)


def _by_place(site: Site, finds: list[Find]) -> list[tuple[str, list[Find]]]:
    """A rack that moved as a whole apart from nodes elsewhere; else all of them at one place."""
    group = finds[0].stretch.group
    role = group.key.role
    if finds[0].stretch.node == FLEET or role in (LINK, SYSTEM):
        return [(role, finds)]
    moved = {group.nodes[f.stretch.node] for f in finds}
    racks = {name: set(site.system.group(name)) for name in site.system.groups}
    whole = _moved_as_a_whole(racks, set(group.nodes), moved)
    if len(whole) == 1:
        ((rack, inside),) = whole.items()
        there = [f for f in finds if group.nodes[f.stretch.node] in inside]
        elsewhere = [f for f in finds if group.nodes[f.stretch.node] not in inside]
        if elsewhere:
            return [(rack, there), *_by_place(site, elsewhere)]
    return [(_name_of_all(moved, racks, whole) or role, finds)]


def _name_of_all(
    moved: set[str], racks: Mapping[str, set[str]], whole: Mapping[str, set[str]]
) -> str:
    """The smallest rack that has all of the nodes, or the racks that moved as a whole; or ""."""
    around = [name for name, members in racks.items() if moved <= members]
    if around:
        return min(around, key=lambda name: len(racks[name]))
    return ", ".join(whole) if moved <= set().union(*whole.values()) else ""


def _moved_as_a_whole(
    racks: Mapping[str, set[str]], measured: set[str], moved: set[str]
) -> dict[str, set[str]]:
    """The racks of which most nodes moved, with these nodes; not one that has all nodes."""
    found = {}
    for name, members in racks.items():
        part = members & moved
        if measured <= members or len(part) < FEW:
            continue
        if len(part) >= MANY * len(members & measured):
            found[name] = part
    return found


def _alert(group: RoleSeries, place: str, finds: list[Find]) -> Alert:
    kind, of_fleet = finds[0].kind, finds[0].stretch.node == FLEET
    before, after = median(f.before for f in finds), median(f.after for f in finds)
    relative = median(f.relative for f in finds)
    typical = min(finds, key=lambda f: abs(f.relative - relative))
    last_before, first_after, earliest, latest = _moments(group, finds)
    worse = relative < 0 if group.better == "higher" and kind != "scatter" else relative > 0
    goods = [int(f.stretch.column[f.made_good]) for f in finds if f.made_good is not None]
    gains = [int(f.stretch.column[f.ends]) for f in finds if f.ends is not None]
    nodes = group.nodes if of_fleet else [group.nodes[f.stretch.node] for f in finds]
    return Alert(
        id="",
        kind=kind,
        metric=group.key.metric,
        series_name=group.key.name,
        environment=group.key.environment,
        role=group.key.role,
        nodes=nodesets.of(nodes),
        place=place,
        before=before,
        after=after,
        unit=group.unit,
        relative=relative,
        worse=worse and group.better != "neither",
        confidence=typical.confidence + _as_measured(kind, relative, before, after),
        provisional=kind == "out of control",
        n_before=min(f.n_before for f in finds),
        n_after=min(f.n_after for f in finds),
        last_before=last_before,
        first_after=first_after,
        earliest=earliest,
        latest=latest,
        series=group.key,
        better=group.better,
        of_fleet=of_fleet,
        made_good=group.moment(max(goods)) if goods else None,
        ends=group.moment(min(gains)) if gains else None,
        severity=float(median(f.severity for f in finds)),
        unit_factor=typical.unit_factor,
    )


def _as_measured(kind: Kind, relative: float, before: float, after: float) -> str:
    """The change of the measured levels, where what all nodes did, or a rhythm, makes it another.

    A drift is that of its levels, and of a scatter both are.
    """
    shown = share(steps.share(before, after))
    if kind in ("drift", "scatter") or shown == share(relative):
        return ""
    return f"; {shown} as measured"


def _moments(group: RoleSeries, finds: list[Find]) -> list[Moment]:
    """The runs that most nodes changed between, and those between which they surely did.

    Of a drift its first and its last run.
    """
    if finds[0].kind == "drift":
        pairs = [(int(f.stretch.column[0]), f.column) for f in finds]
        sure = pairs
    else:
        pairs = [(f.column_before, f.column) for f in finds]
        sure = [f.dated for f in finds]
    narrow_first = sorted(zip(sure, pairs, strict=True), key=lambda one: one[0][1] - one[0][0])
    narrowest, likely = max(narrow_first, key=lambda one: pairs.count(one[1]))
    return [group.moment(column) for column in (*likely, *narrowest)]


def _numbered(found: list[Alert], known: set[str]) -> list[Alert]:
    """Ids that stay the same from day to day: of series, kind, direction, run and place."""
    numbered = []
    for alert in found:
        words = [
            str(alert.series),
            alert.kind,
            "up" if alert.relative > 0 else "down",
            alert.place,
            "" if alert.kind == "drift" else alert.first_after.session,
        ]
        name = _id(words)
        while name in known:
            words.append(str(min(alert.nodes)))
            name = _id(words)
        known.add(name)
        numbered.append(replace(alert, id=name))
    return numbered


def _id(words: Sequence[str]) -> str:
    digest = hashlib.sha256("\0".join(words).encode("utf-8", "surrogatepass")).digest()
    return b32encode(digest).decode()[:LENGTH].lower()
