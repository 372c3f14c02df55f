"""The state of every node: slow, failed, odd, unstable or untested, and why.

Speeds are judged in siteproof.nodes.speeds, everything else in siteproof.nodes.facts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from ClusterShell.NodeSet import NodeSet

from siteproof import nodesets
from siteproof.analysis.slow_nodes import MANY, MIN_HISTORY, Slow, State
from siteproof.nodes import earlier, facts, pair_ends, since
from siteproof.nodes.speeds import InOneSeries, InSeries, MetricReport
from siteproof.record import series
from siteproof.record.finding import Finding, Kind, note
from siteproof.record.grouped import grouped
from siteproof.record.pair_units import node_of
from siteproof.record.samples import PUBLISHED, Header, Order, Sample
from siteproof.record.value_table import NO_VALUES, NOBODY, ValueTable
from siteproof.sites import Site
from siteproof.verdict.judgement import Judgement
from siteproof.verdict.missed import PARAMETERS

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
    recent = facts.Recent.of(nodes_only)
    of_nodes_only = list(facts.facts(nodes_only, recent))
    for state, why in (*of_nodes_only, *of_pairs.facts):
        found.add(state, why)
    found.add_first(facts.never_measured(judged))
    for why in of_pairs.notes:
        found.note(why)
    warnings = [*facts.warnings(nodes_only, of_nodes_only), *of_pairs.warnings]
    both_ends = replace(judged, samples=pair_ends.ends(judged.samples))
    for one in _all_series(both_ends, earlier.both_ends(past)):
        for node, place in one.places():  # the matrix decides who is slow: these are only shown
            found.place(node, one.key.name, InOneSeries(place.metric, State.OK, (), suspect=False))
    alone = past.where(past.peer == NOBODY)
    of_nodes = _all_series(nodes_only, earlier.of_gpus(alone))
    for one in of_nodes:
        warnings += [*_add_series(found, one), *_slow_groups(judged, one)]
    warnings += _hidden_losses(site, of_nodes)
    warnings += _not_ranked(found, since.not_ranked(of_nodes, judged))
    before = _before(nodes_only, alone)
    by_metric = grouped((one.key.metric, one) for one in of_nodes)
    nodes = found.finished(since.History(nodes_only, before, by_metric, recent))
    headers = [*(k.header for k in before.kinds), *(s.header for s in nodes_only.samples)]
    explained = since.explained(site, by_metric, headers)
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
    recent = {kind: set(list(names)[-earlier.RECENT :]) for kind, names in before.items()}
    metrics = series.speeds(judged.site)
    if PARAMETERS in judged.site.catalogue:
        metrics[PARAMETERS] = judged.site.catalogue[PARAMETERS].unit

    def wanted_of(header: Header) -> bool:
        return header.session in recent.get(_kind(header), ())

    return earlier.values(judged.site, judged.sessions, wanted_of, metrics)


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

    def add_first(self, reasons: Iterable[facts.Fact]) -> None:
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

    def finished(self, history: since.History) -> dict[str, NodeReport]:
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
    courses = earlier.of_series(judged.site, _before(judged, past), values)
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
