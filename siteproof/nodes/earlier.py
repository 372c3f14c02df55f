"""The earlier values of nodes, by series: what each node reached before what is judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from siteproof.record import series
from siteproof.record.pair_units import LINK, link_of
from siteproof.record.samples import JobOrder, Sample
from siteproof.record.series import Series
from siteproof.record.value_table import NOBODY, Floats, Ints, ValueTable
from siteproof.sites import Site

RECENT = 30  # earlier values of a node: what it was lately, not years ago
SIDE, SENDS, RECEIVES = "side", "sends", "receives"

Earlier = Mapping[Series, Mapping[str, Sequence[float]]]


def of_nodes(site: Site, table: ValueTable, like: Sequence[Series]) -> Earlier:
    """The newest values of each node in these series, oldest first; one a job, their median."""
    if not table.kinds:
        return {}
    roles = list(site.system.nodes)
    role = np.array([_index(roles, site.role_of(name)) for name in table.names], dtype=np.int64)
    own, numbers = _numbered([series.of_sample(k, role) for k in table.kinds for role in roles])
    names, place = series.counted_as(own, like), {key: at for at, key in enumerate(like)}
    counted = np.array([place.get(names[key], NOBODY) for key in own], dtype=np.int64)
    jobs = _ranks([kind.header.job_order for kind in table.kinds])
    role_of_row = role[table.node]
    number = numbers.reshape(-1, len(roles))[table.kind, role_of_row]
    kept = (role_of_row != NOBODY) & (counted[number] != NOBODY)
    rows = _Rows(number[kept], table.node[kept], jobs[table.kind[kept]], table.value[kept])
    return _by_node(like, table.names, counted, _one_a_job(rows))


def _index(texts: Sequence[str], text: str | None) -> int:
    return NOBODY if text is None else texts.index(text)


def _numbered(keys: Sequence[Series]) -> tuple[list[Series], Ints]:
    """The different ones, and of each its number."""
    numbers: dict[Series, int] = {}
    found = [numbers.setdefault(key, len(numbers)) for key in keys]
    return list(numbers), np.array(found, dtype=np.int64)


def _ranks(orders: Sequence[JobOrder]) -> Ints:
    rank = {order: number for number, order in enumerate(sorted(set(orders)))}
    return np.array([rank[order] for order in orders], dtype=np.int64)


@dataclass(frozen=True)
class _Rows:
    """Values. number: of their series; job: its rank."""

    number: Ints
    node: Ints
    job: Ints
    value: Floats


def _one_a_job(rows: _Rows) -> _Rows:
    """One value for each series, node and job: the median of all."""
    order = np.lexsort((rows.job, rows.node, rows.number))
    number, node, job = rows.number[order], rows.node[order], rows.job[order]
    value, begin = rows.value[order], _starts(number, node, job)
    ends = np.append(begin, value.size)[1:]
    found = value[begin]
    for at in np.flatnonzero(ends - begin > 1):  # nearly always there is only one
        found[at] = median(value[begin[at] : ends[at]].tolist())
    return _Rows(number[begin], node[begin], job[begin], found)


def _by_node(like: Sequence[Series], names: Sequence[str], counted: Ints, rows: _Rows) -> Earlier:
    """The newest values of each node. counted: of each series its place in `like`."""
    order = np.lexsort((rows.value, rows.job, rows.node, counted[rows.number]))
    key, node, value = counted[rows.number][order], rows.node[order], rows.value[order]
    begin = _starts(key, node)
    ends = np.append(begin, value.size)[1:]
    found: dict[Series, dict[str, Sequence[float]]] = {}
    for first, end in zip(begin.tolist(), ends.tolist(), strict=True):
        newest = value[max(first, end - RECENT) : end].tolist()
        found.setdefault(like[key[first]], {})[names[node[first]]] = newest
    return found


def _starts(*columns: Ints) -> Ints:
    """Where the rows of equal columns begin."""
    new = np.ones(columns[0].size, dtype=bool)
    new[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return np.flatnonzero(new)


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
