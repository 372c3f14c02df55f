"""Finds of many nodes as few alerts: what moved in the same runs, by about as much, is one."""

from __future__ import annotations

import hashlib
from base64 import b32encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import median

import numpy as np

from siteproof import nodesets
from siteproof.analysis import steps
from siteproof.analysis.spread import middle
from siteproof.record.grouped import grouped
from siteproof.record.pair_units import LINK
from siteproof.record.series import SYSTEM
from siteproof.sites import Site
from siteproof.trend.alerts import CONFIRMS, Alert, Kind, Moment
from siteproof.trend.finds import FLEET, Find, share
from siteproof.trend.lines import RoleSeries

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
