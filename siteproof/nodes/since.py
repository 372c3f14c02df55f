"""Since when a node is in its state, and whether its whole role moved: from earlier runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

import numpy as np

from siteproof.analysis import falls
from siteproof.analysis.ranks import COVERS
from siteproof.analysis.slow_nodes import MIN_DEFICIT, RETESTS
from siteproof.nodes.facts import Recent
from siteproof.nodes.speeds import InSeries
from siteproof.record import finding
from siteproof.record.finding import Finding, Kind
from siteproof.record.pair_units import node_of
from siteproof.record.samples import Header, Sample, expected_nodes
from siteproof.record.series import Series
from siteproof.record.value_table import ValueTable
from siteproof.sites import Site
from siteproof.verdict.judgement import Judgement
from siteproof.verdict.missed import PARAMETERS

WITHOUT_VALUE = (Kind.NO_VALUE, Kind.WRONG_ANSWER, Kind.NODE_LOST, Kind.NOT_MEASURED)
OF_PARAMETERS = (Kind.PARAMETER_DIFFERS, Kind.PARAMETERS_DIFFER)


class History:
    """The runs of each node until now.

    past: what is older than what is judged. of_nodes: the series by metric. recent: the newest
    jobs of every check, also of those that are not judged.
    """

    def __init__(
        self,
        judged: Judgement,
        past: ValueTable,
        of_nodes: Mapping[str, Sequence[InSeries]],
        recent: Recent,
    ) -> None:
        self._judged, self._past, self._site = judged, past, judged.site
        self._series, self._recent = of_nodes, recent
        self._looked = {sample.header.check for sample in judged.samples}
        self._standing = {(one.node, one.header.check): one for one in reversed(judged.failed)}
        self._failed = {(s.node, s.header.session, s.header.check) for s in recent.failed}
        self._missing: dict[str, _Missing] = {}

    def dated(self, findings: Iterable[Finding]) -> list[Finding]:
        """Findings on one node, those that history knows with the first run in which they held."""
        return [self._dated(why) for why in findings]

    def _dated(self, why: Finding) -> Finding:
        if why.get("lasting") or "" in (why.subject, why.check):
            return why
        if why.kind is Kind.MISSES_BOUND and why.criterion in self._site.criteria:
            times = self._short(why)
        elif why.kind in WITHOUT_VALUE:
            times = self._without(why)
        elif why.kind in OF_PARAMETERS:
            times = self._differing(why.subject)
        else:
            return why
        if not times:
            return why
        lasting = finding.details(lasting=len(times))
        return replace(why, since=times[0], details=why.details + lasting)

    def _short(self, why: Finding) -> list[str]:
        """The newest runs in which the node missed a criterion."""
        criterion = self._site.criteria[why.criterion]
        unit = self._site.catalogue[why.metric].unit
        facts = self._site.hardware_of(self._site.role_of(why.subject) or "")
        found: list[str] = []
        for one in self._series.get(why.metric, ()):
            if why.subject not in one.course.nodes:
                continue
            values, sessions = one.course.of(why.subject)
            missed = (not criterion.met(Fraction(v), unit, facts) for v in values[::-1].tolist())
            times = [one.course.times[at] for at in sessions[::-1]]
            streak = _while(missed, times)
            found = max(found, streak, key=len)
        return found[::-1]

    def _without(self, why: Finding) -> list[str]:
        """The runs of a check since the node's last value, or since it last ended well."""
        node = node_of(why.subject)
        standing = self._standing.get((node, why.check))
        if standing and why.check not in self._looked:
            return self._stretch(standing)
        if why.check not in self._missing:
            of_check = [s for s in self._judged.samples if s.header.check == why.check]
            sessions = self._judged.sessions
            jobs = sessions.headers if sessions else [sample.header for sample in of_check]
            self._missing[why.check] = _Missing(why.check, self._past, of_check, jobs)
        tried = why.kind is not Kind.NOT_MEASURED
        return self._missing[why.check].since_last(node, tried=tried)

    def _stretch(self, attempt: Sample) -> list[str]:
        """When a check failed on a node without a success since then: a time a session."""
        node, head, times = attempt.node, attempt.header, dict[str, str]()
        for job in self._recent.jobs:  # the newest first
            if (job.check, job.environment) != (head.check, head.environment):
                continue
            if (node, job.session, job.check) in self._failed:
                times[job.session] = job.time
            elif not job.expected or node in expected_nodes(job.expected):
                break
        return [*times.values()][::-1]

    def _differing(self, node: str) -> list[str]:
        """The newest runs in which host parameters of the node were not as expected."""
        past = self._past
        of_kinds = np.array([kind.metric == PARAMETERS for kind in past.kinds], dtype=bool)
        rows = np.zeros(0, dtype=np.intp)
        if of_kinds.any() and node in past.names:
            rows = np.flatnonzero(of_kinds[past.kind] & (past.node == past.names.index(node)))
        runs = [
            (past.kinds[past.kind[at]].header.order, float(past.value[at])) for at in rows.tolist()
        ]
        runs += [
            (s.header.order, float(s.number))
            for s in self._judged.samples
            if s.node == node and s.metric == PARAMETERS and s.status == "ok"
        ]
        runs.sort(reverse=True)
        return _while((value > 0 for _, value in runs), [order[1] for order, _ in runs])[::-1]


def _while(holds: Iterator[bool], times: Sequence[str]) -> list[str]:
    """The times of the first ones that hold."""
    found = []
    for one, time in zip(holds, times, strict=False):
        if not one:
            break
        found.append(time)
    return found


class _Missing:
    """A check's sessions, and the last in which each node had a value and nothing but values."""

    def __init__(
        self, check: str, past: ValueTable, judged: Sequence[Sample], jobs: Iterable[Header]
    ) -> None:
        before = _sessions(k.header for k in past.kinds if k.header.check == check)
        newer = _sessions(sample.header for sample in judged)
        self._heads = [*before, *newer]
        self._expected: dict[str, set[str]] = {}  # the node sets of a session's jobs
        for job in jobs:
            if job.check == check:
                self._expected.setdefault(job.session, set()).add(job.expected)
        self._last = _last_values(check, past, [head.session for head in before])
        place = {head.session: at for at, head in enumerate(newer, len(before))}
        statuses: dict[tuple[int, str], set[str]] = {}
        for sample in judged:
            run = place[sample.header.session], sample.node
            statuses.setdefault(run, set()).add(sample.status)
        for (at, node), found in sorted(statuses.items()):
            if found == {"ok"}:
                self._last[node] = at

    def since_last(self, node: str, *, tried: bool) -> list[str]:
        """The times of the sessions after the node's last value. tried: that ran on the node."""
        heads = self._heads[self._last.get(node, -1) + 1 :]
        return [head.time for head in heads if not tried or self._ran(head.session, node)]

    def _ran(self, session: str, node: str) -> bool:
        """Whether a job of the session had to measure the node; unknown counts."""
        expected = self._expected.get(session, {""})
        if "" in expected or node in expected:
            return True
        return any(node in expected_nodes(text) for text in expected)


def _sessions(headers: Iterable[Header]) -> list[Header]:
    """A header of each session, the oldest first."""
    return sorted({head.session: head for head in headers}.values(), key=lambda head: head.order)


def _last_values(check: str, past: ValueTable, sessions: Sequence[str]) -> dict[str, int]:
    """Of each node, which of the past sessions of a check is the last with a value."""
    place = {session: number for number, session in enumerate(sessions)}
    of_kind = np.array(
        [place[k.header.session] if k.header.check == check else -1 for k in past.kinds],
        dtype=np.intp,
    )
    last = np.full(len(past.names), -1)
    if of_kind.size:
        np.maximum.at(last, past.node, of_kind[past.kind])
    return dict(zip(past.names, last.tolist(), strict=True))


def not_ranked(of_nodes: Sequence[InSeries], judged: Judgement) -> Iterator[Finding]:
    """Nodes that no sister, no past and no contract can show to be slow: in which metric first.

    One finding for each node and number of nodes in its role, with the number of further metrics.
    """
    few = [(one, node) for one in of_nodes for node in one.not_ranked()]
    promised = {
        (result.criterion.metric, verdict.node)
        for result in (judged.verdicts if few else ())
        for verdict in result.nodes
        if not result.excused and verdict.value is not None
    }
    metrics: dict[tuple[str, int], list[Series]] = {}
    for one, node in few:
        if (one.key.metric, node) not in promised:
            metrics.setdefault((node, len(one.runs)), []).append(one.key)
    for (node, count), keys in metrics.items():
        details = {"count": count, "more": len(keys) - 1}
        check = keys[0].metric.partition(".")[0]
        yield finding.of(Kind.NOT_RANKED, details, subject=node, check=check, metric=keys[0].name)


ERRORS = 5  # of the slope, for a drift
CAUSES = ("kernel", "software_lock")  # of a header's provenance


@dataclass(frozen=True)
class Event:
    """What all nodes of a series did. change: as a share, below 0. what: step or drift."""

    what: str
    change: float
    since: str
    cause: str


def explained(
    site: Site, of_nodes: Mapping[str, Sequence[InSeries]], headers: Iterable[Header]
) -> Callable[[Finding], Finding]:
    """What gives a finding on a node back; a missed bound that the fleet's loss explains names it.

    of_nodes: the series by metric.
    """
    sessions = {head.session: head for head in headers}

    @cache
    def events(metric: str) -> list[tuple[InSeries, Event | None]]:
        return [(one, _event(one, sessions)) for one in of_nodes.get(metric, ())]

    def named(why: Finding) -> Finding:
        if why.kind is Kind.MISSES_BOUND and why.criterion in site.criteria:
            for one, event in events(why.metric):
                if why.subject in one.course.nodes:
                    why = _by_event(site, why, one, event)
        return why

    return named


def _event(one: InSeries, sessions: Mapping[str, Header]) -> Event | None:
    """The loss of the whole fleet, if it is certain and large enough."""
    measured = ~np.isnan(one.course.values)
    whole = np.flatnonzero(measured.sum(axis=0) >= COVERS * len(one.runs))
    if len(one.runs) < falls.OTHERS or whole.size < 2 * RETESTS:
        return None
    level = 1 + one.falls.moved[whole]
    length = int(falls.falls(level[None, :], "higher").runs[0])
    runs = np.arange(level.size)
    (slope, start), covariance = np.polyfit(runs, level, 1, cov=True)
    is_certain = slope < -ERRORS * np.sqrt(covariance[0, 0])
    stepped = np.where(runs < level.size - length, *_levels(level, length)) if length else level
    misfit = np.abs(level - start - slope * runs).sum()
    is_drift = is_certain and (not length or misfit < np.abs(level - stepped).sum())
    if not (length or is_drift):
        return None
    before, now = (start, start + slope * runs[-1]) if is_drift else _levels(level, length)
    first = 0 if is_drift else level.size - length
    change = float(now / before - 1)
    if change > -MIN_DEFICIT:
        return None
    names = [one.course.sessions[at] for at in whole.tolist()]
    cause = "" if is_drift else _cause(sessions.get(names[first - 1]), sessions.get(names[first]))
    what = "drift" if is_drift else "step"
    return Event(what, change, one.course.times[int(whole[first])], cause)


def _levels(level: falls.Floats, length: int) -> tuple[float, float]:
    return float(np.median(level[:-length])), float(np.median(level[-length:]))


def _cause(before: Header | None, after: Header | None) -> str:
    """What the headers show to have changed."""
    if before is None or after is None:
        return ""
    one, other = before.provenance, after.provenance
    changed = [key for key in CAUSES if one.get(key) and other.get(key) not in (None, one[key])]
    return ", ".join(f"{key} {one[key]} -> {other[key]}" for key in changed)


def _by_event(site: Site, why: Finding, one: InSeries, event: Event | None) -> Finding:
    """A missed bound with its event, where the node would meet the bound without it."""
    row = one.course.nodes[why.subject]
    if event is None or one.falls.runs[row] or one.is_slow(why.subject):
        return why
    criterion, unit = site.criteria[why.criterion], site.catalogue[why.metric].unit
    value, _ = one.course.of(why.subject)
    lost = 1 + event.change
    without = value[-1] / lost if one.better == "higher" else value[-1] * lost
    facts = site.hardware_of(site.role_of(why.subject) or "")
    if not criterion.met(Fraction(float(without)), unit, facts):
        return why
    details = finding.details(
        event=event.what, change=event.change, began=event.since, cause=event.cause or None
    )
    return replace(why, details=why.details + details)
