"""The state of every node: slow, failed, odd, unstable or untested, and why.

Speeds are judged in siteproof.nodes.speeds, everything else in siteproof.nodes.described.

Since when a node is in its state, and whether its whole role moved: from earlier runs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache

import numpy as np
from ClusterShell.NodeSet import NodeSet

from siteproof import nodesets
from siteproof.analysis import ranks
from siteproof.analysis.ranks import COVERS
from siteproof.analysis.slow_nodes import MANY, MIN_DEFICIT, MIN_HISTORY, RETESTS, Slow, State
from siteproof.nodes import described, pair_ends, speeds
from siteproof.nodes.described import Recent
from siteproof.nodes.speeds import InOneSeries, InSeries, MetricReport
from siteproof.record import finding, series
from siteproof.record.finding import Finding, Kind, note
from siteproof.record.pair_units import grouped, node_of
from siteproof.record.samples import PUBLISHED, Header, Order, Sample, expected_nodes
from siteproof.record.series import Series
from siteproof.record.value_table import NO_VALUES, NOBODY, ValueTable
from siteproof.sites import Site
from siteproof.verdict.judgement import Judgement
from siteproof.verdict.others import PARAMETERS

__all__ = ["FleetReport", "MetricReport", "NodeReport", "State", "report"]


@dataclass(frozen=True)
class NodeReport:
    """A node. findings: why it is in its state, the most severe first; none of a node that is OK.

    metrics: by metric, with its dimensions if it has any; of its GPUs the worst. notes: what proves
    nothing yet, such as one slow run that another has to confirm. suspect: slow by any measure,
    proven or not. untested: a headline metric has no value, whatever else is wrong with the node.
    repair: the last one that a person has recorded. units: the node, or its GPU that is the worst,
    by the name of each of metrics.
    """

    node: str
    role: str
    state: State
    findings: list[Finding]
    metrics: dict[str, MetricReport]
    notes: list[Finding] = field(default_factory=list)
    suspect: bool = False
    untested: bool = False
    repair: Finding | None = None
    units: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class FleetReport:
    """All nodes of the inventory.

    suspect_share: the largest share of a role that is slow against the fleet, its own history or
    the contract. warnings: what limits the trust in all of this, and what racks have in common.
    """

    nodes: dict[str, NodeReport]
    suspect_share: float
    warnings: list[Finding]

    def of(self, state: State) -> NodeSet:
        """The nodes in a state."""
        return nodesets.of(n.node for n in self.nodes.values() if n.state is state)

    @property
    def retest(self) -> NodeSet:
        """Nodes that one more run would decide."""
        return nodesets.of(
            n.node
            for n in self.nodes.values()
            if any(why.kind is not Kind.NOT_RANKED for why in n.notes)
            or any(why.get("rule") == Slow.ONCE for why in n.findings)
        )


def report(judged: Judgement, past: ValueTable = NO_VALUES) -> FleetReport:
    """The state of every node of the inventory.

    past: of `lately`, or all values of the system; what is judged, and what is newer, is left
    out of a node's past. Raises UserError where the nodes' descriptions are missing or broken.
    """
    judged = replace(judged, samples=_measured(judged.samples))
    site = judged.site
    found = _Found(
        {
            node: NodeReport(node, site.role_of(node) or role, State.OK, [], {})
            for role in site.system.nodes
            for node in site.expected(role)
        }
    )
    nodes_only = replace(judged, samples=pair_ends.alone(judged.samples))
    of_pairs = pair_ends.judge(judged)
    recent = described.Recent.of(nodes_only)
    of_nodes_only = list(described.facts(nodes_only, recent))
    for state, why in (*of_nodes_only, *of_pairs.facts):
        found.add(state, why)
    found.add_first(described.never_measured(judged))
    for why in of_pairs.notes:
        found.note(why)
    warnings = [*described.warnings(nodes_only, of_nodes_only), *of_pairs.warnings]
    both_ends = replace(judged, samples=pair_ends.ends(judged.samples))
    for one in _all_series(both_ends, speeds.both_ends(past)):
        for node, place in one.places():  # the matrix decides who is slow: these are only shown
            found.place(node, one.key.name, InOneSeries(place.metric, State.OK, (), suspect=False))
    alone = past.where(past.peer == NOBODY)
    of_nodes = _all_series(nodes_only, speeds.of_gpus(alone))
    for one in of_nodes:
        warnings += [*_add_series(found, one), *_slow_groups(judged, one)]
    warnings += _hidden_losses(site, of_nodes)
    warnings += _not_ranked(found, not_ranked(of_nodes, judged))
    before = _before(nodes_only, alone)
    by_metric = grouped((one.key.metric, one) for one in of_nodes)
    nodes = found.finished(History(nodes_only, before, by_metric, recent))
    headers = [*(k.header for k in before.kinds), *(s.header for s in nodes_only.samples)]
    explained = explained_slowness(site, by_metric, headers)
    for failed in [n for n in nodes.values() if n.state is State.FAILED]:
        nodes[failed.node] = replace(failed, findings=[explained(why) for why in failed.findings])
    share, many = _suspects(nodes)
    return FleetReport(nodes, share, [*many, *warnings, *_bad_groups(judged, nodes)])


def _add_series(found: _Found, one: InSeries) -> Iterator[Finding]:
    """What a series shows of its nodes is added; what it shows of the fleet is given."""
    for node, place in one.places():
        found.place(node, one.key.name, place)
    for why in one.unstable():
        found.add(State.UNSTABLE, why)
    yield from one.warnings()


def _hidden_losses(site: Site, of_nodes: Sequence[InSeries]) -> Iterator[Finding]:
    """Headline series in which no fall of a node could be shown."""
    for one in of_nodes:
        if site.catalogue[one.key.metric].headline:
            yield from one.hidden_loss()


def _not_ranked(found: _Found, notes: Iterable[Finding]) -> list[Finding]:
    """A note on each node, and a warning for each role and number of nodes."""
    shown: dict[tuple[str, object], Finding] = {}
    for why in notes:
        found.note(why)
        if (node := node_of(why.subject)) in found.nodes:
            role = found.nodes[node].role
            shown.setdefault((role, why["count"]), replace(why, subject=role))
    return list(shown.values())


def _measured(found: Sequence[Sample]) -> list[Sample]:
    """Without what others have published: it makes no node good, and keeps none out."""
    return [sample for sample in found if sample.header.mode != PUBLISHED]


def lately(judged: Judgement) -> ValueTable:
    """What was measured before what is judged: the newest sessions of its checks that rank nodes.

    A node that was in none of them has no past here.
    """
    measured = _measured(judged.samples)
    if judged.sessions is None or not measured:
        return NO_VALUES
    ranked = {m.check for m in judged.site.catalogue.values() if series.is_speed(m)}
    ranked.add(PARAMETERS.partition(".")[0])
    own = {s.header.session for s in measured}
    wanted = ranked & {s.header.check for s in measured}
    start = _begins(measured)
    before: dict[tuple[str, ...], dict[str, None]] = {}  # sessions, the oldest first
    for header in judged.sessions.headers:
        if header.check in wanted and _is_older(header, start, own):
            before.setdefault(_kind(header), {})[header.session] = None
    recent = {kind: set(list(names)[-speeds.RECENT :]) for kind, names in before.items()}
    metrics = series.speeds(judged.site)
    if PARAMETERS in judged.site.catalogue:
        metrics[PARAMETERS] = judged.site.catalogue[PARAMETERS].unit

    def wanted_of(header: Header) -> bool:
        return header.session in recent.get(_kind(header), ())

    return speeds.values(judged.site, judged.sessions, wanted_of, metrics)


def _begins(found: Sequence[Sample]) -> dict[str, Order]:
    """The first job of each check: what is older is the past."""
    first: dict[str, Order] = {}
    for head in {id(s.header): s.header for s in found}.values():
        first[head.check] = min(head.order, first.get(head.check, head.order))
    return first


def _is_older(header: Header, start: Mapping[str, Order], sessions: Collection[str]) -> bool:
    """Whether a job measured before what is judged, which are these sessions."""
    is_known = header.mode != PUBLISHED and header.check in start
    return is_known and header.order < start[header.check] and header.session not in sessions


def _kind(header: Header) -> tuple[str, ...]:
    return header.check, header.partition, header.environment, header.mode


class _Found:
    """What is found of each node, in the order of finding; nodes of no role are left out."""

    def __init__(self, nodes: dict[str, NodeReport]) -> None:
        self.nodes = nodes
        self._reasons: dict[str, dict[tuple[State, Finding], Finding]] = {n: {} for n in nodes}

    def add(self, state: State, why: Finding) -> None:
        """A reason; one that differs from another in its time only is the same."""
        node = node_of(why.subject)
        if node in self.nodes:
            self._reasons[node].setdefault((state, replace(why, since="")), why)

    def add_first(self, reasons: Iterable[described.Fact]) -> None:
        """Reasons for those nodes that have no other."""
        for state, why in reasons:
            if not self._reasons.get(node_of(why.subject)):
                self.add(state, why)

    def note(self, why: Finding) -> None:
        node = node_of(why.subject)
        if node in self.nodes:
            self.nodes[node].notes.append(why)

    def place(self, unit: str, name: str, place: InOneSeries) -> None:
        """One series; of several of a metric, the one in which the node is worse is shown.

        And so it is of its GPUs: the worst is shown.
        """
        node = node_of(unit)
        if node not in self.nodes:
            return
        known = self.nodes[node]
        for why in place.reasons:
            if place.state is State.OK:
                known.notes.append(why)
            else:
                self.add(place.state, why)
        if name not in known.metrics or place.metric.deficit > known.metrics[name].deficit:
            known.metrics[name] = place.metric
            known.units[name] = unit
        if place.suspect and not known.suspect:
            self.nodes[node] = replace(known, suspect=True)

    def finished(self, history: History) -> dict[str, NodeReport]:
        order = list(State)
        done = dict(self.nodes)
        for node, known in self.nodes.items():
            if not self._reasons[node]:  # as of nearly all
                continue
            reasons = sorted(
                ((state, why) for (state, _), why in self._reasons[node].items()),
                key=lambda reason: order.index(reason[0]),
            )
            states = [state for state, _ in reasons]
            done[node] = replace(
                known,
                state=states[0],
                findings=history.dated(why for _, why in reasons),
                suspect=known.suspect or State.SLOW in states,
                untested=State.UNTESTED in states,
            )
        return done


def _all_series(judged: Judgement, past: ValueTable) -> list[InSeries]:
    """The series of what is judged; headline metrics first, as their reasons are shown first."""
    values, catalogue = series.collect(judged.site, judged.samples), judged.site.catalogue
    courses = speeds.of_series(judged.site, _before(judged, past), values)
    ordered = sorted(
        values, key=lambda key: (not catalogue[key.metric].headline, key.name, str(key))
    )
    return [
        InSeries(key, catalogue[key.metric].better, values[key], courses[key]) for key in ordered
    ]


def _before(judged: Judgement, past: ValueTable) -> ValueTable:
    """The part that is older than what is judged."""
    sessions = {s.header.session for s in judged.samples}
    start = _begins(judged.samples)
    is_before = [_is_older(kind.header, start, sessions) for kind in past.kinds]
    return past.where(np.array(is_before, dtype=bool)[past.kind])


def _suspects(nodes: dict[str, NodeReport]) -> tuple[float, list[Finding]]:
    """The largest share of suspects among a role's measured nodes; the roles with many."""
    roles = grouped((node.role, node.suspect) for node in nodes.values() if node.metrics)
    shares = {role: sum(found) / len(found) for role, found in roles.items()}
    text = (
        "slow in some metric, FAILED ones included: {count} of {of} measured nodes of {role} "
        "({share:whole}); the median may be wrong, too, so rely on the contract and each node's "
        "own history"
    )
    return max(shares.values(), default=0.0), [
        note(text, role=role, share=share, count=sum(roles[role]), of=len(roles[role]))
        for role, share in shares.items()
        if share > MANY
    ]


def _slow_groups(judged: Judgement, one: InSeries) -> Iterator[Finding]:
    """Racks that are slow as a whole, though each of their nodes may be within the spread."""
    system, check = judged.site.system, one.key.metric.partition(".")[0]
    for name in system.groups:
        deficit = one.slow_group(list(system.group(name)))
        if deficit is not None:
            text = "{group} as a whole is {deficit:share} worse than the fleet"
            yield note(text, check=check, metric=one.key.name, group=name, deficit=deficit)


def _bad_groups(judged: Judgement, nodes: dict[str, NodeReport]) -> Iterator[Finding]:
    """Racks of which at least half is bad, and the fleet is not."""
    bad = {n.node for n in nodes.values() if n.state not in (State.OK, State.UNTESTED)}
    for name in judged.site.system.groups:
        members = set(judged.site.system.group(name))
        inside, outside = bad & members, nodes.keys() - members
        most_inside = len(inside) >= MIN_HISTORY and 2 * len(inside) >= len(members)
        few_outside = 2 * len(bad - members) < len(outside)
        if most_inside and few_outside:
            text = "{group}: {count} of {of} nodes are bad; check what they share"
            yield note(text, group=name, count=len(inside), of=len(members))


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


def explained_slowness(
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
    if len(one.runs) < ranks.OTHERS or whole.size < 2 * RETESTS:
        return None
    level = 1 + one.falls.moved[whole]
    length = int(ranks.falls(level[None, :], "higher").runs[0])
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


def _levels(level: ranks.Floats, length: int) -> tuple[float, float]:
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
