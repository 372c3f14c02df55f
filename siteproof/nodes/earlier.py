"""The earlier values of nodes, by series: what each node reached before what is judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np
from numpy.typing import NDArray

from siteproof.analysis import slow_nodes as rules
from siteproof.analysis.slow_nodes import Level
from siteproof.record import series
from siteproof.record.pair_units import LINK, link_of
from siteproof.record.samples import JobOrder, Sample
from siteproof.record.series import Series
from siteproof.record.value_table import NOBODY, Floats, Ints, ValueTable
from siteproof.sites import Site

RECENT = 30  # earlier values of a node: what it was lately, not years ago
SIDE, SENDS, RECEIVES = "side", "sends", "receives"

Earlier = Mapping[Series, Mapping[str, Level]]


@dataclass(frozen=True)
class Counted:
    """The rows of a table that count in each series. number: of each row's own series."""

    number: Ints
    rows: Mapping[Series, NDArray[np.intp]]


NOTHING = Counted(np.zeros(0, np.int32), {})


def of_nodes(table: ValueTable, counted: Counted) -> Earlier:
    """Where the newest values of each node in each series lie; of a job the median counts."""
    jobs = _ranks([kind.header.job_order for kind in table.kinds])
    found = {}
    for key, rows in counted.rows.items():
        order = rows[np.lexsort((jobs[table.kind[rows]], table.node[rows]))]
        job, value = jobs[table.kind[order]], table.value[order]
        levels = _Rows(table.node[order], counted.number[order], job, value).levels()
        if levels:
            found[key] = {table.names[node]: level for node, level in levels.items()}
    return found


def counted(site: Site, table: ValueTable, like: Sequence[Series]) -> Counted:
    """The rows that count in each of these series."""
    if not table.kinds:
        return NOTHING
    roles = list(site.system.nodes)
    role = np.array([_index(roles, site.role_of(name)) for name in table.names], np.int32)
    own, numbers = _numbered([series.of_sample(k, role) for k in table.kinds for role in roles])
    names = series.counted_as(own, like)
    number = numbers.reshape(-1, len(roles))[table.kind, role[table.node]]
    number[role[table.node] == NOBODY] = NOBODY
    found = {}
    for key in like:  # one after the other: there are millions of rows, and a copy of each is large
        counts_here = np.array([names[other] == key for other in own] + [False])
        found[key] = np.flatnonzero(counts_here[number])
    return Counted(number, found)


def _index(texts: Sequence[str], text: str | None) -> int:
    return NOBODY if text is None else texts.index(text)


def _numbered(keys: Sequence[Series]) -> tuple[list[Series], Ints]:
    """The different ones, and of each its number."""
    numbers: dict[Series, int] = {}
    found = [numbers.setdefault(key, len(numbers)) for key in keys]
    return list(numbers), np.array(found, np.int32)


def _ranks(orders: Sequence[JobOrder]) -> Ints:
    rank = {order: number for number, order in enumerate(sorted(set(orders)))}
    return np.array([rank[order] for order in orders], np.int32)


@dataclass(frozen=True)
class _Rows:
    """Values in the order of node and job. number: of their own series."""

    node: Ints
    number: Ints
    job: Ints
    value: Floats

    def levels(self) -> dict[int, Level]:
        """Where the newest values of each node lie."""
        begin = np.flatnonzero(_new(self.node))
        ends = np.append(begin, self.node.size)[1:]
        again = np.flatnonzero(~_new(self.node, self.job))
        is_odd = np.zeros(begin.size, dtype=bool)
        is_odd[np.searchsorted(begin, again, side="right") - 1] = True
        found = {}
        for at in np.flatnonzero(is_odd):  # a job measured a node more than once
            newest = self._one_a_job(int(begin[at]), int(ends[at]))[-RECENT:]
            found[int(self.node[begin[at]])] = rules.level(newest)
        last, counts = ends[~is_odd], np.minimum(ends - begin, RECENT)[~is_odd]
        for count in np.unique(counts).tolist():
            ends_of = last[counts == count]
            matrix = self.value[ends_of[:, None] - np.arange(count, 0, -1)]
            found |= zip(self.node[ends_of - 1].tolist(), _levels(matrix), strict=True)
        return found

    def _one_a_job(self, begin: int, end: int) -> list[float]:
        """The values of a node, oldest first: of each series in a job the median."""
        jobs: dict[tuple[int, int], list[float]] = {}
        for at in range(begin, end):
            key = int(self.job[at]), int(self.number[at])
            jobs.setdefault(key, []).append(float(self.value[at]))
        return [value for _, value in sorted((job, median(v)) for (job, _), v in jobs.items())]


def _levels(values: Floats) -> list[Level]:
    """Where the values of each row lie."""
    centres = _medians(values)
    mads = _medians(np.abs(values - centres[:, None]))
    count = values.shape[1]
    return [Level(*both, count) for both in zip(centres.tolist(), mads.tolist(), strict=True)]


def _medians(values: Floats) -> Floats:
    ordered, half = np.sort(values, axis=1), values.shape[1] // 2
    if values.shape[1] % 2:
        return ordered[:, half]
    middles: Floats = (ordered[:, half - 1] + ordered[:, half]) / 2
    return middles


def _new(*columns: Ints) -> NDArray[np.bool_]:
    """Which rows differ from the one before."""
    new = np.ones(columns[0].size, dtype=bool)
    new[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return new


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
        _at(kind, side if kind.metric in directed else "")
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


def _at(kind: Sample, side: str) -> Sample:
    dims = {**kind.dims, LINK: link_of(kind)}
    return replace(kind, dims=dims | ({SIDE: side} if side else {}))
