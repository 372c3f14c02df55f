"""What could not be judged, and why: a sentence each, with a count and an example."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from siteproof import nodesets
from siteproof.errors import harmless
from siteproof.record.series import Series
from siteproof.trend.alerts import CONFIRMS
from siteproof.trend.finds import SHORTEST, Stretch
from siteproof.trend.lines import Group, Lines
from siteproof.units import count

if TYPE_CHECKING:
    from siteproof.history import History

LONG = CONFIRMS  # runs of its sisters that a node misses before that is told
SHOWN = 6  # of a list of names
_LACKING = """
    SELECT status, count(*), count(DISTINCT node), max((time, check_name, node, why))
    FROM samples WHERE system = $system AND status <> 'ok' AND source <> 'published'
    GROUP BY status ORDER BY count(*) DESC, status"""
_OTHERS = """
    SELECT count(*) FILTER (source = 'published'),
           count(*) FILTER (status = 'ok' AND kind <> 'text' AND NOT isfinite(base)),
           min(file) FILTER (status = 'ok' AND kind <> 'text' AND NOT isfinite(base))
    FROM samples WHERE system = $system"""


def told(h: History, system: str, lines: Lines, stretches: Sequence[Stretch]) -> list[str]:
    """Everything that is missing or left out."""
    return [
        *_other_series(lines.groups),
        *_silences(lines.groups),
        *_absent(lines.groups),
        *_holes(lines.groups),
        *_short(stretches),
        *_without_value(h, system),
        *_left_out(lines),
        *_units(lines),
        *_others(h, system),
        *_refused(h),
    ]


def _other_series(groups: Sequence[Group]) -> Iterator[str]:
    """Series that end where one under other conditions begins: they are never joined."""
    places: dict[tuple[object, ...], list[Group]] = {}
    for group in groups:
        key = group.key
        places.setdefault((key.metric, key.dims, key.environment, key.role), []).append(group)
    lines: dict[tuple[str, str], list[Group]] = {}
    for held in places.values():
        for one, other in pairwise(sorted(held, key=lambda g: g.times[0])):
            if one.times[-1] <= other.times[0] and set(one.nodes) & set(other.nodes):
                change = _difference(one.key, other.key)
                since = f"{other.runs[0].moment} (session {other.runs[0].session})"
                lines.setdefault((change, since), []).append(other)
    for (change, since), found in lines.items():
        yield f"another series since {since}: {change}; {_names(found)} not compared across it"


def _difference(one: Series, other: Series) -> str:
    before, after = dict(one.conditions), dict(other.conditions)
    keys = sorted(k for k in before.keys() | after.keys() if before.get(k) != after.get(k))
    return ", ".join(f"{k} {before.get(k, 'nothing')} -> {after.get(k, 'nothing')}" for k in keys)


def _names(groups: Iterable[Group]) -> str:
    names = sorted({group.told for group in groups})
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _absent(groups: Iterable[Group]) -> Iterator[str]:
    """Nodes that their sisters' newest runs lack, told once for all figures."""
    found: dict[tuple[str, str, str], dict[str, Group]] = {}
    for group in _newest(groups):
        runs = len(group.runs)
        for node, name in enumerate(group.nodes):
            last = int(group.column[group.begin[node + 1] - 1])
            if runs - 1 - last >= LONG:
                since = str(group.runs[last].moment)[:10]
                found.setdefault((group.key.role, since, name), {})[group.told] = group
    alike: dict[tuple[str, str, frozenset[str]], list[str]] = {}
    for (role, since, name), held in found.items():
        alike.setdefault((role, since, frozenset(held)), []).append(name)
    for (_, since, told_), names in sorted(alike.items(), key=lambda item: item[0][1]):
        figures = sorted(told_)
        more = f" and {count(len(figures) - 1, 'more figure')}" if len(figures) > 1 else ""
        yield f"not measured since {since}: {nodesets.of(names)}, {figures[0]}{more}"


def _newest(groups: Iterable[Group]) -> Iterator[Group]:
    """Of series that followed each other only the last one: the others have ended."""
    last: dict[tuple[object, ...], Group] = {}
    for group in groups:
        key = (group.key.metric, group.key.dims, group.key.environment, group.key.role)
        if key not in last or last[key].times[-1] < group.times[-1]:
            last[key] = group
    yield from last.values()


def _holes(groups: Iterable[Group]) -> Iterator[str]:
    """Stretches of runs that a node was not in, and was again afterwards."""
    holes, example = 0, ""
    for group in groups:
        step = np.diff(group.column)
        inside = group.owner[1:] == group.owner[:-1]
        for at in np.flatnonzero(inside & (step > LONG)):
            holes += 1
            if not example:
                begin, end = (
                    str(group.runs[int(group.column[i])].moment)[:10] for i in (at, at + 1)
                )
                example = (
                    f"{group.nodes[int(group.owner[at])]}, {group.told}, between {begin} and {end}"
                )
    if holes:
        yield (f"{count(holes, 'hole')} of {LONG} runs or more in a line, for example {example}")


def _silences(groups: Iterable[Group]) -> Iterator[str]:
    """Days on which nothing was measured at all, far beyond the usual interval of a series."""
    found: dict[tuple[str, str, str], list[Group]] = {}
    for group in groups:
        days = np.unique(group.times.astype("datetime64[D]"))
        steps = np.diff(days).astype(np.int64)
        if steps.size >= LONG:
            usual = float(np.median(steps))
            for at in np.flatnonzero(steps > LONG * usual):
                place = str(days[at]), str(days[at + 1]), f"{usual:g}"
                found.setdefault(place, []).append(group)
    for (begin, end, every), held in sorted(found.items())[-SHOWN:]:
        yield (
            f"no run between {begin} and {end}, where one every "
            f"{'day' if every == '1' else f'{every} days'} is usual: {_names(held)}"
        )
    if len(found) > SHOWN:
        yield f"{len(found) - SHOWN} older stretches without any run"


def _short(stretches: Sequence[Stretch]) -> Iterator[str]:
    """Lines in which no step can be seen yet."""
    short = [s for s in stretches if s.values.size < SHORTEST and s.node >= 0]
    if short:
        one = max(short, key=lambda s: s.values.size)
        yield (
            f"{len(short)} of {sum(s.node >= 0 for s in stretches)} lines have fewer than "
            f"{SHORTEST} runs, too few for a step: for example {one.group.told}, "
            f"{one.group.nodes[one.node]} with {one.values.size}"
        )


def _without_value(h: History, system: str) -> Iterator[str]:
    for status, number, nodes, newest in h.sql(_LACKING, {"system": system}):
        time, check, node, why = newest.values() if isinstance(newest, dict) else newest
        told_ = f"{count(number, 'sample')} of {count(nodes, 'node')} without a value: {status}"
        example = f"{check} on {node or system}, {time:%Y-%m-%d}"
        yield f"{told_}; the newest: {example}" + (f": {harmless(why)}" if why else "")


def _left_out(lines: Lines) -> Iterator[str]:
    for what, held in (
        ("nodes of no role", lines.strangers),
        ("metrics of no catalogue", lines.unknown),
        ("metrics of which no direction is good", lines.unwatched),
    ):
        if held:
            names = [harmless(name) for name in sorted(held)]
            more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
            yield (
                f"{what}: {', '.join(names[:SHOWN])}{more}; "
                f"{count(sum(held.values()), 'value')} left out"
            )


def _units(lines: Lines) -> Iterator[str]:
    yield from lines.odd_units
    mixed: dict[tuple[str, ...], list[Group]] = {}
    for group in lines.groups:
        if group.mixed:
            mixed.setdefault((*group.mixed, group.unit), []).append(group)
    for (*printed, unit), groups in mixed.items():
        yield f"printed in {' and '.join(printed)}, compared in {unit}: {_names(groups)}"


def _refused(h: History) -> Iterator[str]:
    if h.refused:
        more = (
            f" and {len(h.refused) - 1} more, which 'siteproof history' names"
            if len(h.refused) > 1
            else ""
        )
        yield f"not read: {harmless(h.refused[0])}{more}"


def _others(h: History, system: str) -> Iterator[str]:
    """Published figures, and values that are no finite number."""
    published, infinite, file = h.sql(_OTHERS, {"system": system})[0]
    if published:
        yield f"{published} published figures are not the suite's own and stay apart"
    if infinite:
        yield f"{infinite} values are no finite number, for example in {file}"
