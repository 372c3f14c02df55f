"""The lines of a history: each node's runs in each series, oldest first, in the catalogue's unit.

Values are compared by the rule of `siteproof compare`: two series are one if they differ only in
conditions that follow from the machine. Published values are left out: they were not measured here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from siteproof import units
from siteproof.answers import implausible
from siteproof.record import samples, series
from siteproof.record.finding import Finding, note
from siteproof.record.pair_units import LINK, gpu_name, gpus_among
from siteproof.record.series import Series, comparable
from siteproof.sites import Site
from siteproof.trend.alerts import Moment

if TYPE_CHECKING:
    from siteproof.history import History

Ints = NDArray[np.signedinteger[Any]]
Floats = NDArray[np.float64]
FOREIGN = "imported"  # the role of nodes that only imported logs know
AHEAD = np.timedelta64(1, "D")  # of now, that a time may be
_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
# Better, without a catalogue.
HIGHER = (
    "rate",
    "flops",
    "iops",
    "frequency",
    units.SIMULATION_RATE,
    units.ENERGY_RATE,
    *units.COUNTED,
)
LOWER = ("time", units.SIMULATION_COST)
# A file of ours holds one job, a log of plain ReFrame many. `number`: their order.
_JOBS = """
    CREATE OR REPLACE TEMP TABLE numbered_jobs AS
    SELECT run, time, session, source,
           (dense_rank() OVER (ORDER BY place, time, session, job, file) - 1)::INTEGER AS number
    FROM live_runs WHERE system = $system"""
_NAMES = """
    CREATE OR REPLACE TEMP TABLE numbered_nodes AS
    SELECT node, (row_number() OVER (ORDER BY node) - 1)::INTEGER AS place
    FROM (SELECT DISTINCT node FROM stored {only})"""
# Values that cannot be right (answers/implausible.py) are in no line. The store keeps them as they
# were printed, and names the jobs that may have one; these are judged by the rule of the verdict.
WRONG = "wrong_values"
_WRONG_KEYS = "run, node, metric, trial, dims"
_WRONG_KINDS = dict.fromkeys(("file", "node", "metric", "dims"), "VARCHAR") | {"trial": "INTEGER"}
# One series or a few, as the values of all would fill the memory. Only rows with a number of the
# right kind; `wanted` numbers the series in question.
_POINTS = f"""
    SELECT w.number::INTEGER AS series, n.place AS node, j.number AS run, value * factor AS value
    FROM stored JOIN (VALUES {{wanted}}) AS w(series, kind, number) USING (series, kind)
                JOIN numbered_jobs j USING (run) JOIN numbered_nodes n USING (node)
                ANTI JOIN {WRONG} USING ({_WRONG_KEYS})
    WHERE series IN ({{series}}) AND status = 'ok' AND isfinite(value * factor)
          AND source <> 'published'"""
# Rows are counted by run before anything is known of the runs: there are far fewer of these.
_SERIES = """
    WITH counted AS (
        SELECT series, kind, metric, dims, unit, context, run, count(*) AS rows FROM stored
        WHERE status = 'ok' AND kind <> 'text' {only} GROUP BY ALL)
    SELECT series, kind, min(metric), min(environment), min(dims), min(c.conditions), min(unit),
           min(source), bool_or(contains(provenance, '"{plain}":')), sum(rows)::BIGINT, min(file)
    FROM counted JOIN live_runs USING (run) LEFT JOIN contexts c USING (context)
    WHERE system = $system AND source <> 'published'
    GROUP BY series, kind ORDER BY min(time), series"""


@dataclass(frozen=True)
class RoleSeries:
    """One series of one role: values of nodes (CSR), each node's in the order of its runs.

    begin: where each node's values begin, and the end. values: in `unit`. column: of each value,
    an index into times and sessions; the columns of a session count the jobs of a node in it.
    """

    key: Series
    unit: str
    better: str
    nodes: list[str]
    begin: Ints
    column: Ints
    values: Floats
    times: NDArray[np.datetime64]
    sessions: list[str]
    earlier: tuple[Series, ...] = ()  # under other settings, of which some values are

    def of(self, node: int) -> slice:
        """Where a node's values are."""
        return slice(int(self.begin[node]), int(self.begin[node + 1]))

    def moment(self, column: int) -> Moment:
        """The time of a column, to the second, and its session."""
        time = self.times[column].astype("datetime64[s]").item()
        return Moment(time, self.sessions[column])

    @cached_property
    def owner(self) -> Ints:
        """The node of each value."""
        return np.repeat(np.arange(len(self.nodes), dtype=np.int32), np.diff(self.begin))

    @property
    def name(self) -> str:
        """The metric with its dimensions, and the role."""
        return f"{self.key.name} of {self.key.role}"


@dataclass(frozen=True)
class Lines:
    """Every group of a system, and how many values were left out.

    no_role: by node. not_in_catalogue, no_direction: by metric; an uptime is neither better nor
    worse. other_units: values in a unit that is unknown, or of another kind than the metric's.
    """

    no_role: dict[str, int] = field(default_factory=dict)
    not_in_catalogue: dict[str, int] = field(default_factory=dict)
    no_direction: dict[str, int] = field(default_factory=dict)
    other_units: list[Finding] = field(default_factory=list)
    groups: list[RoleSeries] = field(default_factory=list)


@dataclass(frozen=True)
class _Stored:
    """A series as the store numbers it. quantity: of its units. factor: from the base to `unit`.

    gpus: of a GPU, or of two, their indices: in the store each is a series of its own.
    """

    number: int
    quantity: str
    key: Series
    unit: str
    better: str
    link: str
    foreign: bool
    gpus: tuple[str, ...] = ()

    @property
    def factor(self) -> float:
        return 1 / float(units.UNITS[self.unit][1])


@dataclass(frozen=True)
class _Jobs:
    """Every job of a system in the order of sessions. numbers: of the sessions, in this order."""

    times: NDArray[np.datetime64]
    sessions: list[str]
    numbers: Ints


def read(
    site: Site,
    h: History,
    metric: str = "",
    *,
    node: str = "",
    until: datetime | None = None,
    joined: bool = False,
) -> Lines:
    """All lines of a system, or those of a metric, or of a metric on a node of the inventory.

    until: what is newer does not count. joined: a line goes on where its settings changed.
    """
    found = Lines()
    stored = list(_stored(site, h, metric, found))
    if not stored:
        return found
    _find_wrong(site, h)
    h.sql(_JOBS, {"system": site.system.system})
    h.sql(_NAMES.format(only="WHERE node = $node" if node else ""), {"node": node} if node else {})
    names = [n for (n,) in h.sql("SELECT node FROM numbered_nodes ORDER BY place")]
    jobs = _jobs(h)
    blocks: dict[Series, list[_Stored]] = {}
    for one in stored:
        is_joined = joined and not one.foreign
        key = series.without_settings(one.key) if is_joined else one.key
        blocks.setdefault(key, []).append(one)
    for block in blocks.values():
        for part, points in _apart(block, _points(h, block, until), jobs):
            found.groups.extend(_groups(site, part, points, names, jobs, found))
    found.groups.sort(key=lambda group: str(group.key))
    return found


def _find_wrong(site: Site, h: History) -> None:
    """Make the table of all values that cannot be right, if it is not there yet."""
    from siteproof.history import tables  # DuckDB takes long to import
    from siteproof.history import values as store

    if h.sql("SELECT 1 FROM duckdb_tables() WHERE table_name = $name", {"name": WRONG}):
        return
    found = [
        (file, sample)
        for file in sorted(store.wrong(site, h))
        for sample in implausible.checked(site, samples.read(h.perflogs / file))
        if sample.status == samples.IMPLAUSIBLE
    ]
    kept: dict[str, list[str] | list[int]] = {
        "file": [file for file, _ in found],
        "node": [sample.node for _, sample in found],
        "metric": [sample.metric for _, sample in found],
        "dims": [tables.canonical(sample.dims) for _, sample in found],
        "trial": [sample.trial for _, sample in found],
    }
    tables.make(h.connection, f"{WRONG}_of_files", _WRONG_KINDS, kept)
    h.sql(
        f"CREATE TEMP TABLE {WRONG} AS "
        f"SELECT {_WRONG_KEYS} FROM {WRONG}_of_files JOIN live_runs USING (file)"
    )


def _points(h: History, block: list[_Stored], until: datetime | None) -> dict[str, np.ndarray]:
    """The values of some series, in no order. series: the place in the block."""
    query = _POINTS.format(
        wanted=", ".join(
            f"({one.number}::UBIGINT, '{one.quantity}', {at})" for at, one in enumerate(block)
        ),
        series=", ".join(str(one.number) for one in block),
    )
    if not until:
        return h.columns(query)
    newest = until.astimezone(UTC).replace(tzinfo=None)
    return h.columns(f"{query} AND time <= $until", {"until": newest})


def _apart(
    block: list[_Stored], points: Mapping[str, np.ndarray], jobs: _Jobs
) -> Iterator[tuple[list[_Stored], Mapping[str, np.ndarray]]]:
    """The whole block; each series by itself where a session has several of a node: points."""
    keys = list(dict.fromkeys(one.key for one in block))
    number = np.array([keys.index(one.key) for one in block])[points["series"]]
    where = points["node"].astype(np.int64) * jobs.times.size + jobs.numbers[points["run"]]
    if len(keys) == 1 or np.unique(where).size == np.unique(where * len(keys) + number).size:
        yield block, points
        return
    for at in range(len(keys)):
        part = [one for one in block if one.key == keys[at]]
        place = np.array([part.index(one) if one in part else -1 for one in block])
        of_part = {name: column[number == at] for name, column in points.items()}
        yield part, {**of_part, "series": place[of_part["series"]]}


def _jobs(h: History) -> _Jobs:
    found = h.columns(
        "SELECT DISTINCT number, time, session FROM numbered_jobs ORDER BY number, time, session"
    )
    names = found["session"].tolist()
    known: dict[str, int] = {}
    numbers = [known.setdefault(name, len(known)) for name in names]
    return _Jobs(in_order(found["time"]), names, np.array(numbers, dtype=np.int64))


def in_order(times: np.ndarray) -> NDArray[np.datetime64]:
    """The times of runs in the order of their sessions, none before an earlier one.

    A time that a clock cannot have shown, as it is later than now and others follow, is that of
    the run before.
    """
    found = np.asarray(times).astype("datetime64[us]")
    possible = found <= np.datetime64(datetime.now(UTC).replace(tzinfo=None), "us") + AHEAD
    if not possible.any():
        return np.maximum.accumulate(found)
    last = int(np.flatnonzero(possible)[-1])
    wrong = ~possible & (np.arange(found.size) < last)
    return np.maximum.accumulate(np.where(wrong, found[possible].min(), found))


def _stored(site: Site, h: History, metric: str, found: Lines) -> Iterator[_Stored]:
    """The series that count, those that differ by a block only under one key."""
    known: dict[tuple[object, ...], list[Series]] = {}
    only, bind = ("AND metric = $metric", {"metric": metric}) if metric else ("", {})
    query = _SERIES.format(only=only, plain=samples.TEST)
    for row in h.sql(query, {"system": site.system.system, **bind}):
        number, quantity, name, environment, dims, conditions, *of_values = row
        unit, source, is_plain, count, file = of_values
        entry, foreign = site.catalogue.get(name), source == "reframe"
        if entry is None and not (foreign or is_plain):
            found.not_in_catalogue[name] = found.not_in_catalogue.get(name, 0) + count
            continue
        own_unit, better = (entry.unit, entry.better) if entry else (unit, _direction_of(quantity))
        expected = units.kind(own_unit) if unit in units.UNITS else None
        if expected and entry and better == "neither" and not metric:
            found.no_direction[name] = found.no_direction.get(name, 0) + count
        elif expected != quantity:
            found.other_units.extend(_other_unit(name, unit, expected, count, file))
        else:
            plain_dims = json.loads(dims)
            key = _known_key(key_of(name, environment, plain_dims, json.loads(conditions)), known)
            link = plain_dims.get(LINK, "")
            gpus = gpus_among(plain_dims)
            yield _Stored(number, quantity, key, own_unit, better, link, foreign, gpus)


def _known_key(key: Series, known: dict[tuple[object, ...], list[Series]]) -> Series:
    """The key of an earlier series that differs by a block only, or this one."""
    of_place = known.setdefault((key.metric, key.dims, key.environment), [])
    key = next((earlier for earlier in of_place if series.alike(key, earlier)), key)
    of_place.append(key)
    return key


def _other_unit(
    metric: str, unit: str, expected: str | None, count: int, file: str
) -> Iterator[Finding]:
    """Values in a unit that is unknown (nothing is expected) or of another quantity."""
    if expected == "text":
        return
    text = (
        "{metric}: {count:n value} in "
        + ("{unit}, not a unit of {expected}" if expected else "the unknown unit '{unit}'")
        + ", for example in {file}"
    )
    yield note(text, metric=metric, unit=unit, count=count, expected=expected, file=file)


def key_of(
    metric: str, environment: str, dims: Mapping[str, str], conditions: Mapping[str, str]
) -> Series:
    """The series of a sample, without the role, which follows from the node."""
    return comparable(series.of(metric, environment, dims, conditions))


def _direction_of(quantity: str) -> str:
    """For metrics without an entry in the catalogue: more of a rate is better, less of a time."""
    if quantity in HIGHER:
        return "higher"
    return "lower" if quantity in LOWER else "neither"


def _groups(
    site: Site,
    block: list[_Stored],
    points: Mapping[str, np.ndarray],
    names: list[str],
    jobs: _Jobs,
    found: Lines,
) -> Iterator[RoleSeries]:
    """The points of one key sorted into lines, by numbers only: there may be millions."""
    place = points["series"].astype(np.int64) * len(names) + points["node"]
    counts = np.bincount(place, minlength=len(block) * len(names))
    lines: dict[tuple[str, str], list[int]] = {}
    for at in np.flatnonzero(counts).tolist():
        role, name = _role(site, block[at // len(names)], names[at % len(names)])
        if role is None:
            found.no_role[name] = found.no_role.get(name, 0) + int(counts[at])
        else:
            lines.setdefault((role, name), []).append(at)
    ordered = sorted(lines)
    line_of_place = np.full(counts.size, -1, dtype=np.int64)
    for index, line in enumerate(ordered):
        line_of_place[lines[line]] = index
    line_of_point = line_of_place[place]
    factors = np.array([one.factor for one in block])
    values = np.asarray(points["value"], dtype=float) * factors[points["series"]]
    kept = slice(None) if (line_of_point >= 0).all() else line_of_point >= 0
    table = _in_order(line_of_point[kept], points["run"][kept], values[kept], jobs)
    yield from _cut(block, ordered, table, jobs)


def _role(site: Site, one: _Stored, node: str) -> tuple[str | None, str]:
    """The role and the name under which a value is kept; no role if the node is unknown."""
    if not node:
        return (LINK, one.link) if one.link else (series.SYSTEM, site.system.system)
    foreign = FOREIGN if one.foreign and _NODE.fullmatch(node) else None
    return site.role_of(node) or foreign, gpu_name(node, one.gpus)


@dataclass(frozen=True)
class _Table:
    """Points in the order of line and column. run: the job that a point is of."""

    line: Ints
    column: Ints
    run: Ints
    values: Floats


def _in_order(line: Ints, run: Ints, values: Floats, jobs: _Jobs) -> _Table:
    """One point a line and job, the median of all it measured; columns count a session's jobs."""
    count = jobs.times.size
    session = jobs.numbers[run]
    order = np.argsort((line * count + session) * count + run)
    line, run, session, values = line[order], run[order], session[order], values[order]
    first = np.ones(line.size, dtype=bool)
    first[1:] = (line[1:] != line[:-1]) | (run[1:] != run[:-1])
    begin = np.flatnonzero(first)
    values = _medians(values, begin)
    line, run, session = line[begin], run[begin], session[begin]
    starts = np.ones(line.size, dtype=bool)
    starts[1:] = (line[1:] != line[:-1]) | (session[1:] != session[:-1])
    places = np.arange(line.size)
    ordinal = places - np.maximum.accumulate(np.where(starts, places, 0))
    return _Table(line, session * (ordinal.max(initial=0) + 1) + ordinal, run, values)


def _medians(values: Floats, begin: Ints) -> Floats:
    """The median of each stretch; most hold one value."""
    found = values[begin]
    ends = np.append(begin[1:], values.size)
    for at in np.flatnonzero(ends - begin > 1):
        found[at] = np.median(values[begin[at] : ends[at]])
    return found


def _cut(
    block: list[_Stored], lines: list[tuple[str, str]], table: _Table, jobs: _Jobs
) -> Iterator[RoleSeries]:
    """The table cut into groups of one role each."""
    begin = np.searchsorted(table.line, np.arange(len(lines) + 1))
    first = 0
    for role, of_role in groupby(lines, key=itemgetter(0)):
        nodes = [name for _, name in of_role]
        last = first + len(nodes)
        part = slice(int(begin[first]), int(begin[last]))
        columns, column = _numbered(table.column[part])
        newest = np.zeros(columns, dtype=np.int64)
        np.maximum.at(newest, column, table.run[part])
        yield RoleSeries(
            replace(block[-1].key, role=role),
            block[-1].unit,
            block[-1].better,
            nodes,
            begin[first : last + 1] - begin[first],
            column,
            table.values[part],
            jobs.times[newest],
            [jobs.sessions[job] for job in newest],
            tuple(replace(one.key, role=role) for one in block[:-1]),
        )
        first = last


def _numbered(columns: Ints) -> tuple[int, Ints]:
    """How many different columns there are, and the number of each in their order."""
    there = np.zeros(int(columns.max(initial=-1)) + 1, dtype=bool)
    there[columns] = True
    numbers = np.cumsum(there, dtype=np.int32) - 1
    return int(there.sum()), numbers[columns]
