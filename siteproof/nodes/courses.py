"""The course of each series: the values of its nodes run by run, the past and what is judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

from siteproof.nodes.earlier import RECENT, Counted
from siteproof.record.series import JobValue, Series
from siteproof.record.value_table import Floats, ValueTable

Runs = Mapping[str, list[JobValue]]


@dataclass(frozen=True)
class Course:
    """A series. values: (nodes, sessions), the oldest first; NaN where a node was not measured.

    times: of each session. judged: the first session of what is judged; those before are the past.
    """

    nodes: Mapping[str, int]
    sessions: Sequence[str]
    times: Sequence[str]
    values: Floats
    judged: int

    def of(self, node: str) -> tuple[Floats, NDArray[np.intp]]:
        """The values of a node, the oldest first, and of which sessions they are."""
        row = self.values[self.nodes[node]]
        there = np.flatnonzero(~np.isnan(row))
        return row[there], there


def of_series(
    past: ValueTable, counted: Counted, values: Mapping[Series, Runs]
) -> dict[Series, Course]:
    """The course of each series of what is judged. past: what is older, and which rows count."""
    sessions = _sessions(past)
    names, place = list(sessions), np.array([], dtype=np.intp)
    if past.kinds:
        at = {name: number for number, name in enumerate(names)}
        place = np.array([at[kind.header.session] for kind in past.kinds], dtype=np.intp)
    return {
        key: _course(runs, past, counted.rows.get(key), place, sessions)
        for key, runs in values.items()
    }


def _sessions(past: ValueTable) -> dict[str, str]:
    """The sessions of the past with their times, the oldest first."""
    first: dict[str, tuple[int, str, str]] = {}
    for kind in past.kinds:
        head = kind.header
        first[head.session] = min(head.order, first.get(head.session, head.order))
    return {name: first[name][1] for name in sorted(first, key=lambda name: first[name])}


def _course(
    runs: Runs,
    past: ValueTable,
    rows: NDArray[np.intp] | None,
    place: NDArray[np.intp],
    sessions: Mapping[str, str],
) -> Course:
    nodes = {node: number for number, node in enumerate(runs)}
    before, which = _before(nodes, past, rows, place)
    judged = _judged(runs)
    now = np.full((len(nodes), len(judged)), np.nan)
    at = {session: number for number, session in enumerate(judged)}
    for node, of_node in runs.items():
        by_session: dict[str, list[float]] = {}
        for run in of_node:
            by_session.setdefault(run.session, []).append(run.value)
        for session, found in by_session.items():
            now[nodes[node], at[session]] = found[0] if len(found) == 1 else median(found)
    names = list(sessions)
    return Course(
        nodes,
        [names[number] for number in which] + list(judged),
        [sessions[names[number]] for number in which] + list(judged.values()),
        np.concatenate((before, now), axis=1),
        len(which),
    )


def _judged(runs: Runs) -> dict[str, str]:
    """The sessions of what is judged with their times, the oldest first."""
    first: dict[str, tuple[int, str, str]] = {}
    for of_node in runs.values():
        for run in of_node:
            order = (run.place, run.time, run.session)
            first[run.session] = min(order, first.get(run.session, order))
    return {name: first[name][1] for name in sorted(first, key=lambda name: first[name])}


def _before(
    nodes: Mapping[str, int],
    past: ValueTable,
    rows: NDArray[np.intp] | None,
    place: NDArray[np.intp],
) -> tuple[Floats, list[int]]:
    """The values of the nodes in the newest sessions of the past, and which sessions these are."""
    if rows is None or not rows.size:
        return np.empty((len(nodes), 0)), []
    row = np.array([nodes.get(name, -1) for name in past.names], dtype=np.intp)[past.node[rows]]
    session, value = place[past.kind[rows]][row >= 0], past.value[rows][row >= 0]
    row = row[row >= 0]
    which, column = np.unique(session, return_inverse=True)
    skipped = max(0, which.size - RECENT)
    newest = column >= skipped
    cells = row[newest] * (which.size - skipped) + column[newest] - skipped
    table = np.full(len(nodes) * (which.size - skipped), np.nan)
    table[cells] = value[newest]
    if (count := np.bincount(cells, minlength=table.size)).max(initial=0) > 1:
        _take_medians(table, cells, value[newest], count)
    return table.reshape(len(nodes), -1), which[skipped:].tolist()


def _take_medians(
    table: Floats, cells: NDArray[np.intp], value: Floats, count: NDArray[np.intp]
) -> None:
    """Where a session measured a node more than once, its median counts."""
    again = count[cells] > 1
    found: dict[int, list[float]] = {}
    for cell, one in zip(cells[again].tolist(), value[again].tolist(), strict=True):
        found.setdefault(cell, []).append(one)
    for cell, each in found.items():
        table[cell] = median(each)
