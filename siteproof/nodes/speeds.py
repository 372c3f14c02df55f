"""The nodes in one series: each compared with the fleet of its run, and with its own past.

Of a series of GPUs each is one GPU, and the fleet is that of all GPUs of the role.

What is judged is seen together with the runs before it: three runs decide, and history shows since
when. Nodes of another kind in the role are ranked apart.

The past of nodes, series by series: their values run by run, of few files or of the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isnan
from operator import itemgetter
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from siteproof import nodesets
from siteproof.analysis import ranks
from siteproof.analysis import slow_nodes as rules
from siteproof.analysis.ranks import Falls, Ranks
from siteproof.analysis.screen import medians, row_medians
from siteproof.analysis.slow_nodes import ByChance, Level, Slow, State
from siteproof.record import finding, series, value_table
from siteproof.record.campaign import Wanted
from siteproof.record.finding import Detail, Finding, Kind, note
from siteproof.record.pair_units import GPU, LINK, PEER, grouped, link_of, node_of, unit_of
from siteproof.record.samples import Header, Order, Sample
from siteproof.record.series import JobValue, Series
from siteproof.record.sessions import Sessions
from siteproof.record.value_table import NO_VALUES, NOBODY, Floats, Ints, ValueTable
from siteproof.sites import Site

RECENT_RUNS = 10  # that show where a node lies, and whether it is unstable
LEAST_RUNS = 100  # of all nodes, that show how often healthy ones look slow
LONG_PAST = 5  # runs: so long a gross difference of some nodes is one of kind


class MetricReport(NamedTuple):
    """A node in one metric. z and deficit are of its newest run, against the fleet of that run.

    value: of the newest run. median: the fleet's. z: None where too few nodes allow none.
    change: against the node's own history, negative where it got worse; None if fewer than three
    earlier values. runs, slow_runs: of what is judged, and of at least the newest three there are.
    """

    value: float
    unit: str
    median: float
    z: float | None
    deficit: float
    change: float | None
    runs: int
    slow_runs: int


class InOneSeries(NamedTuple):
    """A node in one series. state OK: reasons prove nothing yet, until it is run again.

    suspect: slow against the fleet, or fallen against its own past, however often.
    """

    metric: MetricReport
    state: State
    reasons: tuple[Finding, ...]
    suspect: bool


@dataclass(frozen=True)
class InSeries:
    """One series of what is judged."""

    key: Series
    better: str
    runs: Runs
    course: Past

    def places(self) -> Iterator[tuple[str, InOneSeries]]:
        """Every node that has a value; all at once, and closely those that may be slow."""
        z, deficit, slow = self._ranked
        known = ~np.isnan(self.course.values)
        last = known.shape[1] - 1 - known[:, ::-1].argmax(axis=1)
        rows = np.arange(len(known))
        medians = np.array([[level.median for level in one.fleet] for one in self._ranks])
        count = np.minimum(rules.RETESTS, known.sum(axis=1))
        count = np.maximum(count, [len(runs) for runs in self.runs.values()])
        ago = np.cumsum(known[:, ::-1], axis=1)[:, ::-1]  # in runs of the node; 1: the newest
        slow_runs = (slow & known & (ago <= count[:, None])).sum(axis=1)
        columns = (
            _or_none(z[rows, last]),
            deficit[rows, last].tolist(),
            _or_none(self._changes),
            count.tolist(),
            slow_runs.tolist(),
        )
        reports = zip(medians[self.kinds, last].tolist(), *columns, strict=True)
        closely = ((self.falls.runs > 0) | (slow_runs > 0)).tolist()
        for row, ((node, runs), rest) in enumerate(zip(self.runs.items(), reports, strict=True)):
            report = MetricReport(runs[-1].value, runs[-1].unit, *rest)
            plain = InOneSeries(report, State.OK, (), suspect=False)
            yield node, self._closely(node, row, report) if closely[row] else plain

    def unstable(self) -> Iterator[Finding]:
        """Nodes whose runs differ far more than those of most nodes."""
        recent = ranks.newest_last(self.course.values)[:, -RECENT_RUNS:]
        count = (~np.isnan(recent)).sum(axis=1)
        centres = row_medians(recent)
        with np.errstate(divide="ignore", invalid="ignore"):
            spreads = row_medians(np.abs(recent - centres[:, None])) / centres
        known = (count >= rules.UNSTABLE_RUNS) & (centres > 0)
        typical = float(np.median(spreads[known])) if known.any() else 0.0
        limit = max(rules.UNSTABLE_SPREAD, rules.UNSTABLE_TIMES * typical)
        names = list(self.course.nodes)
        for row in np.flatnonzero(known & (spreads > limit)).tolist():
            yield self._note(
                "varies by {spread:share} over {runs} runs, most nodes by {typical:share}",
                subject=names[row],
                spread=float(spreads[row]),
                runs=int(count[row]),
                typical=typical,
            )

    @cached_property
    def falls(self) -> Falls:
        """Who fell against the own past, and since which run."""
        return ranks.falls(self.course.values, self.better)

    @cached_property
    def kinds(self) -> Ints:
        """The kind of each node: 0 where all are of one kind."""
        levels = self._levels
        levels[self.falls.runs > 0] = np.nan  # they changed; another kind has always been so
        found = ranks.kinds(levels)
        if not found.any() or self.course.values.shape[1] >= LONG_PAST:
            return found
        middles = [np.nanmedian(levels[found == kind]) for kind in range(found.max() + 1)]
        is_gross = 1 - np.exp(min(middles) - max(middles)) >= rules.CLEAR_DEFICIT
        # so large a loss counts until it is known to be lasting
        return np.zeros_like(found) if is_gross else found

    @property
    def _levels(self) -> Floats:
        """The logarithm of where each node lies in its newest runs, without what all did."""
        with np.errstate(divide="ignore", invalid="ignore"):
            values = self.course.values / (1 + self.falls.moved)
            level = np.log(np.where(values > 0, values, np.nan))
        return row_medians(ranks.newest_last(level)[:, -RECENT_RUNS:])

    @cached_property
    def _ranks(self) -> list[Ranks]:
        """The nodes of each kind in all runs."""
        return [
            ranks.ranks(self.course.values[self.kinds == kind], self.better, self.falls.noise)
            for kind in range(int(self.kinds.max(initial=0)) + 1)
        ]

    @cached_property
    def _ranked(self) -> tuple[Floats, Floats, ranks.Bools]:
        """z, deficit and slow of each node in each run, compared with its kind."""
        shape = self.course.values.shape
        z, deficit, slow = np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=bool)
        for kind, one in enumerate(self._ranks):
            of_kind = self.kinds == kind
            z[of_kind], deficit[of_kind], slow[of_kind] = one.z, one.deficit, one.slow
        return z, deficit, slow

    @cached_property
    def by_chance(self) -> ByChance:
        """How often nodes looked slow in runs before the last ones.

        Without those that fell, and those that mostly looked so: they are slow. Of the others the
        tenth that did most often is left out, as some of them were slow for a while.
        """
        before = slice(-rules.RETESTS)
        _, deficit, slow = self._ranked
        known, slow = ~np.isnan(self.course.values[:, before]), slow[:, before]
        clear = slow & (deficit[:, before] >= rules.CLEAR_FALL)
        counts = np.column_stack([part.sum(axis=1) for part in (known, slow, clear)])
        healthy = counts[self.falls.runs == 0]
        healthy = healthy[2 * healthy[:, 1] <= healthy[:, 0]]
        order = np.argsort(healthy[:, 1], kind="stable")[: len(healthy) * 9 // 10]
        total, slow_runs, clear_runs = healthy[order].sum(axis=0).tolist()
        if total < LEAST_RUNS:
            return ByChance()
        return ByChance(slow_runs / total, clear_runs / total)

    def _fleet(self, kind: int = 0) -> Level:
        """The nodes of a kind in the newest session; 0: of the most frequent one."""
        return self._ranks[kind].fleet[-1]

    @cached_property
    def _changes(self) -> Floats:
        """Each node compared with its own past, NaN with too little of it; negative: worse."""
        past, now = np.split(self.course.values, [self.course.judged], axis=1)
        before = row_medians(past)
        with np.errstate(divide="ignore", invalid="ignore"):
            each = self._sign * (row_medians(now) / before - 1)
        known = ((~np.isnan(past)).sum(axis=1) >= rules.MIN_HISTORY) & (before > 0)
        return np.where(known, each, np.nan)

    @property
    def _sign(self) -> int:
        return 1 if self.better == "higher" else -1

    def warnings(self) -> Iterator[Finding]:
        """What the fleet as a whole did, which no ranking shows.

        Of fewer than three nodes it is not known: each is compared with its own past alone.
        """
        role, known = self.key.role, self._changes[~np.isnan(self._changes)].tolist()
        if len(known) >= ranks.OTHERS and 2 * len(known) > len(self.runs):
            shift, error = median(known), rules.level(known).sd / len(known) ** 0.5
            if abs(shift) >= max(rules.MIN_DEFICIT, rules.MOVED_SD * error):
                fell = "fell" if shift < 0 else "gained"
                text = (
                    f"{{role}} as a whole {fell} {{change:size}} against its history; this counts "
                    "against no single node"
                )
                yield self._note(text, role=role, change=shift)
        yield from self._two_kinds()
        share = self._share_far_above()
        if share > rules.MANY:
            text = (
                "{share:whole} of {role} is far better than the median, so the median itself may "
                "be bad"
            )
            yield self._note(text, role=role, share=share)

    def hidden_loss(self) -> Iterator[Finding]:
        """Where nodes scatter so much that ten runs cannot show a loss that matters."""
        if self.falls.shown > rules.CLEAR_FALL:
            yield self._note(
                "{runs} runs cannot show a loss of {loss:whole}: nodes of {role} scatter by "
                "{spread:share} from run to run",
                role=self.key.role,
                loss=rules.CLEAR_FALL,
                runs=ranks.PAIRED,
                spread=self.falls.scatter,
            )

    def _two_kinds(self) -> Iterator[Finding]:
        """Each kind of nodes but the most frequent one."""
        names = np.array(list(self.course.nodes))
        for kind in range(1, len(self._ranks)):
            nodes = nodesets.of(names[self.kinds == kind].tolist())
            change = self._sign * (self._fleet(kind).median / self._fleet().median - 1)
            yield self._note(
                "two kinds of nodes in {role}: {subject}, {count} of {of}, are {change:size} "
                + ("better" if change > 0 else "lower")
                + " than the others, and have been so; they are ranked apart. If that is right, "
                "make them a role of their own",
                subject=str(nodes),
                role=self.key.role,
                count=len(nodes),
                of=len(names),
                change=change,
            )

    def _share_far_above(self) -> float:
        """The share of nodes whose newest run is far better than the median of their kind."""
        far = total = 0
        for one in self._ranks:
            if one.fleet[-1].size >= rules.MIN_FLEET:
                z, deficit = _newest(one.z), _newest(one.deficit)
                far += int(((z > -rules.Z_LIMIT) & (deficit <= -rules.MIN_DEFICIT)).sum())
            total += len(one.z)
        return far / total if total else 0.0

    def slow_group(self, nodes: list[str]) -> float | None:
        """How far a rack as a whole is below the fleet, if it is; each node by its own kind."""
        inside = []
        for unit in (unit for node in nodes for unit in self._units.get(node, ())):
            kind = self._fleet(int(self.kinds[self.course.nodes[unit]])).median
            value = self.runs[unit][-1].value
            inside.append(value * self._fleet().median / kind if kind > 0 else value)
        if 2 * len(inside) > len(self.runs):
            return None
        return rules.group_is_slow(inside, self._fleet(), self.better)

    @cached_property
    def _units(self) -> dict[str, list[str]]:
        """The GPUs of each node that have a value, or the node itself."""
        return grouped((node_of(unit), unit) for unit in self.runs)

    def is_slow(self, node: str) -> bool:
        """Whether its newest run is slow compared with its sisters."""
        return self._own(self.course.nodes[node])[1][-1]

    def not_ranked(self) -> list[str]:
        """The nodes that neither their sisters nor their own past can show to be slow."""
        if len(self.runs) >= ranks.MIN_GROSS:
            return []
        return [n for n in self.runs if len(self.course.of(n)[0]) <= rules.MIN_HISTORY]

    def _own(self, row: int) -> tuple[list[int], list[bool]]:
        """The runs in which a node has a value, and which of them are slow."""
        there = np.flatnonzero(~np.isnan(self.course.values[row]))
        return there.tolist(), self._ranked[2][row, there].tolist()

    def _closely(self, node: str, row: int, report: MetricReport) -> InOneSeries:
        """A node that fell, or was slow in what is judged."""
        there, slow = self._own(row)
        fallen, deficit = self._fallen(row), report.deficit
        if not (fallen or report.slow_runs):
            return InOneSeries(report, State.OK, (), suspect=False)
        # A node that is good again is held against what is judged only: it may be repaired.
        is_low = deficit >= rules.MIN_DEFICIT and (report.z or 0.0) < rules.Z_LIMIT / 2
        is_back = not (slow[-1] or is_low)
        counted = slow[np.searchsorted(there, self.course.judged) :] if is_back else slow
        rule = rules.retest_rule(counted, deficit, self.by_chance)
        is_slow = rule in (Slow.ONCE, Slow.CONFIRMED) or fallen > 0
        if is_back and not is_slow and sum(slow[-rules.RETESTS :]) >= rules.SLOW_RUNS:
            rule = Slow.UNCONFIRMED
        suspect = slow[-1] or fallen > 0
        if not (is_slow or rule is Slow.UNCONFIRMED):
            return InOneSeries(report, State.OK, (), suspect)
        reasons = []
        if report.slow_runs:
            lasting = self._lasting(slow, there)
            reasons.append(self._against_fleet(node, report, rule, slow, is_slow, lasting))
        if fallen:
            reasons.append(self._fell(node, row, there, fallen, alone=not reasons))
        return InOneSeries(report, State.SLOW if is_slow else State.OK, tuple(reasons), suspect)

    def _fallen(self, row: int) -> int:
        """Since how many runs a node is lower than it was; 0 where that is nothing special."""
        fallen = int(self.falls.runs[row])
        if not 0 < fallen <= 2 * rules.RETESTS:
            return fallen
        slow = self._own(row)[1][-fallen:]
        return 0 if self.by_chance.explains(fallen, sum(slow)) else fallen

    def _lasting(self, slow: list[bool], there: list[int]) -> tuple[str, int]:
        """Since when a node is slow, and for how many runs; single good runs do not end it."""
        first = max(at for at, one in enumerate(slow) if one)
        for at in range(first, -1, -1):
            if slow[at]:
                first = at
            elif at and not slow[at - 1]:
                break
        return self.course.times[there[first]], len(slow) - first

    def _fell(self, node: str, row: int, there: list[int], fallen: int, *, alone: bool) -> Finding:
        """A node against its own history. alone: there is no other finding on the node."""
        details = {
            "change": -float(self.falls.loss[row]),
            "rule": str(Slow.ONCE if fallen == 1 and alone else Slow.CONFIRMED),
            "lasting": fallen,
        }
        found = self._finding(Kind.FELL, details, node)
        return replace(found, since=self.course.times[there[-fallen]])

    def _against_fleet(
        self,
        node: str,
        report: MetricReport,
        rule: Slow,
        slow: list[bool],
        is_slow: bool,
        lasting: tuple[str, int],
    ) -> Finding:
        last, (since, runs) = slow[-rules.RETESTS :], lasting
        if rule is not Slow.ONCE:
            rule = Slow.CONFIRMED if is_slow else Slow.UNCONFIRMED
        seen: dict[str, Any] = {
            "slow": sum(last),
            "runs": len(last),
            "rule": str(rule),
            "lasting": runs,
        }
        if not slow[-1]:
            return replace(self._finding(Kind.SLOW_BEFORE, seen, node), since=since)
        details = {
            "deficit": report.deficit,
            "better": self.better,
            "median": report.median,
            "z": report.z,
        }
        found = self._finding(Kind.SLOW, details | seen, node)
        return replace(found, value=f"{report.value:.6g}", unit=report.unit, since=since)

    def _note(self, text: str, **values: Detail) -> Finding:
        return note(text, check=self.key.metric.partition(".")[0], metric=self.key.name, **values)

    def _finding(self, kind: Kind, details: Mapping[str, Any], subject: str = "") -> Finding:
        check = self.key.metric.partition(".")[0]
        return finding.of(kind, details, subject=subject, check=check, metric=self.key.name)


def _or_none(values: Floats) -> list[float | None]:
    return [None if isnan(value) else value for value in values.tolist()]


def _newest(values: Floats) -> Floats:
    """The newest of each node."""
    return ranks.newest_last(values)[:, -1]


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
