"""The past of nodes, series by series: their values run by run, of few files or of the store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from siteproof.analysis.screen import medians
from siteproof.record import series, value_table
from siteproof.record.campaign import Wanted
from siteproof.record.pair_units import GPU, LINK, PEER, link_of, unit_of
from siteproof.record.samples import Header, Order, Sample
from siteproof.record.series import JobValue, Series
from siteproof.record.sessions import Sessions
from siteproof.record.value_table import NO_VALUES, NOBODY, Floats, ValueTable
from siteproof.sites import Site

RECENT = 30  # earlier sessions: what nodes were lately, not years ago
SIDE, SENDS, RECEIVES = "side", "sends", "receives"

Runs = Mapping[str, list[JobValue]]
Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Past:
    """A series. values: (nodes, sessions), the oldest first; NaN where a node was not measured.

    times: of each session. judged: the first session of what is judged; those before are the past.
    """

    nodes: Mapping[str, int]
    sessions: Sequence[str]
    times: Sequence[str]
    values: Floats
    judged: int

    def of(self, node: str) -> tuple[Floats, Rows]:
        """The values of a node, the oldest first, and of which sessions they are."""
        row = self.values[self.nodes[node]]
        there = np.flatnonzero(~np.isnan(row))
        return row[there], there


def of_series(site: Site, past: ValueTable, values: Mapping[Series, Runs]) -> dict[Series, Past]:
    """The course of each series of what is judged. past: what is older."""
    sessions = _sessions(kind.header.order for kind in past.kinds)
    at = {name: number for number, name in enumerate(sessions)}
    place = np.array([at[kind.header.session] for kind in past.kinds], dtype=np.intp)
    counting = _counted(site, past, list(values))
    found = {}
    for key, runs in values.items():
        rows = counting.get(key, np.zeros(0, np.intp))
        cells = past.node[rows] * len(sessions) + place[past.kind[rows]] if rows.size else rows
        table = _table(cells, past.value[rows], (len(past.names), len(sessions)))
        found[key] = _course(runs, past.names, table, sessions)
    return found


def _sessions(orders: Iterable[Order]) -> dict[str, str]:
    """The sessions with their times, the oldest first."""
    first: dict[str, Order] = {}
    for order in orders:
        first[order[2]] = min(order, first.get(order[2], order))
    return {name: order[1] for name, order in sorted(first.items(), key=itemgetter(1))}


def _counted(site: Site, table: ValueTable, like: Sequence[Series]) -> dict[Series, Rows]:
    """The rows that count in each of these series."""
    if not table.kinds:
        return {}
    roles = list(site.system.nodes)
    index = {role: number for number, role in enumerate(roles)}
    role = np.array([index.get(site.role_of(name) or "", NOBODY) for name in table.names], int)
    own = [series.of_sample(kind, role) for kind in table.kinds for role in roles]
    names = series.counted_as(own, like)
    numbers = {key: number for number, key in enumerate(dict.fromkeys(own))}
    place = np.array([numbers[key] for key in own], np.int32).reshape(-1, len(roles))
    number = place[table.kind, role[table.node]]
    number[role[table.node] == NOBODY] = NOBODY
    found = {}
    for key in like:  # one after the other: there are millions of rows, and a copy of each is large
        counts_here = np.array([names[other] == key for other in numbers] + [False])
        found[key] = np.flatnonzero(counts_here[number])
    return found


def _table(cells: Rows, values: Floats, shape: tuple[int, int]) -> Floats:
    """A value in each cell: the median where there are several, NaN where there is none."""
    found = np.full(shape[0] * shape[1], np.nan)
    found[cells] = values
    again = np.bincount(cells, minlength=found.size)[cells] > 1
    several, at = np.unique(cells[again], return_inverse=True)
    found[several] = medians(at, values[again], several.size)
    return found.reshape(shape)


def _course(runs: Runs, names: Sequence[str], table: Floats, sessions: Mapping[str, str]) -> Past:
    """table: the past of all nodes of these names."""
    nodes = {node: number for number, node in enumerate(runs)}
    place = {name: number for number, name in enumerate(names)}
    nobody = np.full((1, table.shape[1]), np.nan)
    before = np.vstack((table, nobody))[[place.get(node, len(names)) for node in nodes]]
    which = np.flatnonzero(~np.isnan(before).all(axis=0))[-RECENT:]
    each = [run for of_node in runs.values() for run in of_node]
    judged = _sessions((run.place, run.time, run.session) for run in each)
    at = {session: number for number, session in enumerate(judged)}
    rows = np.repeat(np.arange(len(nodes)), [len(of_node) for of_node in runs.values()])
    cells = rows * len(judged) + np.array([at[run.session] for run in each], dtype=np.intp)
    now = _table(cells, np.array([run.value for run in each]), (len(nodes), len(judged)))
    earlier = [list(sessions)[number] for number in which.tolist()]
    return Past(
        nodes,
        [*earlier, *judged],
        [*(sessions[name] for name in earlier), *judged.values()],
        np.concatenate((before[:, which], now), axis=1),
        len(earlier),
    )


def both_ends(table: ValueTable) -> ValueTable:
    """Each value of a pair twice: as its sender's and as its receiver's.

    Of what has no direction it is simply a value of both.
    """
    pairs = table.where(table.peer != NOBODY)
    metrics, metric = np.unique([kind.metric for kind in table.kinds], return_inverse=True)
    count, of_row = len(table.names), metric[pairs.kind] if table.kinds else pairs.kind
    forth = (of_row * count + pairs.node) * count + pairs.peer
    back = (of_row * count + pairs.peer) * count + pairs.node
    directed = set(metrics[np.unique(of_row[np.isin(forth, back)])].tolist())
    kinds = [
        at_end(kind, side if kind.metric in directed else "")
        for kind in table.kinds
        for side in (SENDS, RECEIVES)
    ]
    return ValueTable(
        kinds,
        table.names,
        np.concatenate((2 * pairs.kind, 2 * pairs.kind + 1)),
        np.concatenate((pairs.node, pairs.peer)),
        np.full(2 * pairs.kind.size, NOBODY),
        np.tile(pairs.value, 2),
    )


def of_gpus(table: ValueTable) -> ValueTable:
    """The same with the values of GPUs under the names of these, as in a series."""
    names = dict(zip(table.names, range(len(table.names)), strict=True))
    node = table.node.copy()
    for number, kind in enumerate(table.kinds):
        if GPU in kind.dims:
            rows = np.flatnonzero(table.kind == number)
            for row in rows.tolist():
                own = unit_of(replace(kind, node=table.names[table.node[row]]))
                node[row] = names.setdefault(own, len(names))
    return replace(table, names=list(names), node=node)


def at_end(of_pair: Sample, side: str) -> Sample:
    """A pair's value without its peer. side: of the end; empty where it has no direction."""
    dims = {k: v for k, v in of_pair.dims.items() if k != PEER} | {LINK: link_of(of_pair)}
    return replace(of_pair, dims=dims | ({SIDE: side} if side else {}))


MANY_BYTES = 8_000_000  # of files: reading them takes longer than to start DuckDB


def values(
    site: Site, sessions: Sessions, wanted: Wanted, metrics: Mapping[str, str]
) -> ValueTable:
    """The values of some jobs. metrics: those that count, each with its unit."""
    jobs, table, there = _many(sessions, wanted), NO_VALUES, set[str]()
    if jobs:
        # DuckDB takes longer to import than few files to read.
        from siteproof.history import values as store

        table, there = store.read(sessions.perflogs, site, jobs, metrics)
    return table.plus(value_table.of_samples(_others(sessions, wanted, jobs, there), metrics))


def failures(site: Site, sessions: Sessions, wanted: Wanted) -> list[Sample]:
    """The samples without a value of some jobs."""
    jobs, found, there = _many(sessions, wanted), list[Sample](), set[str]()
    if jobs:
        from siteproof.history import values as store

        found, there = store.failures(sessions.perflogs, site, jobs)
    others = _others(sessions, wanted, jobs, there)
    return found + [sample for sample in others if sample.status != "ok"]


def _many(sessions: Sessions, wanted: Wanted) -> Mapping[str, Header]:
    """Some jobs, by their files below perflogs, if these are many."""
    paths = sessions.paths(wanted)
    if sum(map(_size, paths)) <= MANY_BYTES:
        return {}
    return {path.relative_to(sessions.perflogs).as_posix(): h for path, h in paths.items()}


def _others(
    sessions: Sessions, wanted: Wanted, jobs: Mapping[str, Header], there: set[str]
) -> list[Sample]:
    """The samples of the jobs that the store does not have as they count."""
    stored = {id(header) for file, header in jobs.items() if file in there}
    return sessions.of(lambda h: wanted(h) and id(h) not in stored, needed=False)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0  # its reader names the reason
