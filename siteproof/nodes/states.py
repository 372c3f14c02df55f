"""The state of every node: slow, failed, odd, unstable or untested, and why.

Speeds are judged in siteproof.nodes.speeds, everything else in siteproof.nodes.facts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ClusterShell.NodeSet import NodeSet

from siteproof import nodesets
from siteproof.analysis.slow_nodes import MANY, MIN_HISTORY, State, WrongAnswer
from siteproof.nodes import facts, pair_ends
from siteproof.nodes.speeds import Finding, InSeries, MetricReport
from siteproof.record import series
from siteproof.record.samples import PUBLISHED, Header, Sample
from siteproof.record.series import JobValue, Series, Values
from siteproof.verdict.judgement import Judgement

__all__ = ["FleetReport", "MetricReport", "NodeReport", "State", "report"]
RECENT = 30  # earlier values of a node: what it was lately, not years ago


@dataclass(frozen=True)
class NodeReport:
    """A node. reasons: a sentence each, the gravest first; none of a node that is OK.

    metrics: by metric, with its dimensions if it has any. notes: what proves nothing yet, such as
    one slow run that a retest has to confirm. suspect: slow by any measure, proven or not.
    untested: a headline figure is missing, whatever else is wrong with the node. wrong: those of
    the reasons that are wrong answers.
    """

    node: str
    role: str
    state: State
    reasons: list[str]
    metrics: dict[str, MetricReport]
    notes: list[str] = field(default_factory=list)
    suspect: bool = False
    untested: bool = False
    wrong: list[WrongAnswer] = field(default_factory=list)


@dataclass(frozen=True)
class FleetReport:
    """All nodes of the inventory.

    suspect_share: the largest share of a role that is slow against the fleet, its own history or
    the contract. warnings: what limits the trust in all of this, and what racks have in common.
    """

    nodes: dict[str, NodeReport]
    suspect_share: float
    warnings: list[str]

    def of(self, state: State) -> NodeSet:
        """The nodes in a state."""
        return nodesets.of(n.node for n in self.nodes.values() if n.state is state)

    @property
    def retest(self) -> NodeSet:
        """Nodes of which one more run would tell more."""
        return nodesets.of(
            n.node
            for n in self.nodes.values()
            if n.notes or any("seen once" in reason for reason in n.reasons)
        )


def report(judged: Judgement, history: Sequence[Sample]) -> FleetReport:
    """The state of every node of the inventory.

    history: of `lately`, or all samples of the system; what is judged, and what is newer, is left
    out of a node's past. Raises UserError where the nodes' descriptions are gone or broken.
    """
    judged, history = replace(judged, samples=_measured(judged.samples)), _measured(history)
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
    for fact in (*facts.facts(nodes_only), *of_pairs.facts):
        found.add(fact.node, fact.state, fact.reason)
        if fact.wrong and fact.node in found.nodes:
            found.nodes[fact.node].wrong.append(fact.wrong)
    for node, sentence in of_pairs.notes:
        found.note(node, sentence)
    warnings = [*facts.warnings(nodes_only), *of_pairs.warnings]
    both_ends = replace(judged, samples=pair_ends.ends(judged.samples))
    for one in _all_series(both_ends, pair_ends.ends(history)):
        for node, finding in one.findings():  # the matrix says who is slow: these are only shown
            shown = replace(finding, state=State.OK, reason="", suspect=False)
            found.figure(node, one.key.name, shown)
    for one in _all_series(nodes_only, pair_ends.alone(history)):
        for node, finding in one.findings():
            found.figure(node, one.key.name, finding)
        for node, sentence in one.unstable():
            found.add(node, State.UNSTABLE, sentence)
        warnings += [*one.warnings(), *_slow_groups(judged, one)]
    nodes = found.finished()
    shares = _suspect_shares(nodes)
    many = [
        f"{share:.0%} of {role} is slow against the fleet: the median itself may be bad; trust "
        "the contract and the paired change"
        for role, share in shares.items()
        if share > MANY
    ]
    warnings = [*many, *warnings, *_bad_groups(judged, nodes)]
    return FleetReport(nodes, max(shares.values(), default=0.0), warnings)


def _measured(found: Sequence[Sample]) -> list[Sample]:
    """Without what others have published: it makes no node good, and keeps none out."""
    return [sample for sample in found if sample.header.mode != PUBLISHED]


def lately(judged: Judgement) -> list[Sample]:
    """What was measured before what is judged: the newest sessions of its checks that rank nodes.

    A node that was in none of them has no past here.
    """
    measured = _measured(judged.samples)
    if judged.sessions is None or not measured:
        return []
    ranked = {m.check for m in judged.site.catalogue.values() if series.is_speed(m)}
    mine = {s.header.session for s in measured}
    wanted = ranked & {s.header.check for s in measured}
    start = _begins(measured)
    earlier: dict[tuple[str, ...], dict[str, None]] = {}  # sessions, the oldest first
    for header in judged.sessions.headers:
        if (
            header.mode != PUBLISHED
            and header.check in wanted
            and header.order < start[header.check]
            and header.session not in mine
        ):
            earlier.setdefault(_kind(header), {})[header.session] = None
    recent = {kind: set(list(names)[-RECENT:]) for kind, names in earlier.items()}
    return judged.sessions.of(lambda h: h.session in recent.get(_kind(h), ()), needed=False)


def _begins(found: Sequence[Sample]) -> dict[str, tuple[int, str, str]]:
    """The first job of each check: what is older is the past."""
    first: dict[str, tuple[int, str, str]] = {}
    for head in {id(s.header): s.header for s in found}.values():
        first[head.check] = min(head.order, first.get(head.check, head.order))
    return first


def _kind(header: Header) -> tuple[str, ...]:
    return header.check, header.partition, header.environment, header.mode


class _Found:
    """What is found of each node, in the order of finding; nodes of no role are left out."""

    def __init__(self, nodes: dict[str, NodeReport]) -> None:
        self.nodes = nodes
        self._reasons: dict[str, list[tuple[State, str]]] = {node: [] for node in nodes}

    def add(self, node: str, state: State, sentence: str) -> None:
        if node in self.nodes and (state, sentence) not in self._reasons[node]:
            self._reasons[node].append((state, sentence))

    def note(self, node: str, sentence: str) -> None:
        if node in self.nodes:
            self.nodes[node].notes.append(sentence)

    def figure(self, node: str, name: str, finding: Finding) -> None:
        """One series; of several of a metric, the one in which the node is worse is shown."""
        if node not in self.nodes:
            return
        known = self.nodes[node]
        if finding.state is not State.OK:
            self.add(node, finding.state, finding.reason)
        elif finding.reason:
            known.notes.append(finding.reason)
        if name not in known.metrics or finding.metric.deficit > known.metrics[name].deficit:
            known.metrics[name] = finding.metric
        self.nodes[node] = replace(known, suspect=known.suspect or finding.suspect)

    def finished(self) -> dict[str, NodeReport]:
        order = list(State)
        done = {}
        for node, known in self.nodes.items():
            told = sorted(self._reasons[node], key=lambda reason: order.index(reason[0]))
            state = told[0][0] if told else State.OK
            suspect = known.suspect or any(s is State.SLOW for s, _ in told)
            done[node] = replace(
                known,
                state=state,
                reasons=[sentence for _, sentence in told],
                suspect=suspect,
                untested=any(s is State.UNTESTED for s, _ in told),
            )
        return done


def _all_series(judged: Judgement, history: Sequence[Sample]) -> list[InSeries]:
    """The series of what is judged; those of headline metrics first, as is told first."""
    values, catalogue = series.collect(judged.site, judged.samples), judged.site.catalogue
    past = _past(judged, values, history)
    ordered = sorted(values, key=lambda key: (not catalogue[key.metric].headline, *_text(key)))
    return [
        InSeries(key, catalogue[key.metric].better, values[key], past.get(key, {}))
        for key in ordered
    ]


def _text(key: Series) -> tuple[str, str]:
    return key.name, str(key)


def _past(
    judged: Judgement, values: Values, history: Sequence[Sample]
) -> dict[Series, dict[str, list[JobValue]]]:
    """The recent runs of each node before what is judged."""
    if not judged.samples:
        return {}
    sessions = {s.header.session for s in judged.samples}
    start = _begins(judged.samples)
    earlier = [
        s
        for s in history
        if s.header.check in start
        and s.header.order < start[s.header.check]
        and s.header.session not in sessions
    ]
    past = series.align(series.collect(judged.site, earlier), values)
    return {
        key: {node: runs[-RECENT:] for node, runs in past[key].items()}
        for key in values.keys() & past.keys()
    }


def _suspect_shares(nodes: dict[str, NodeReport]) -> dict[str, float]:
    """The share of each role's measured nodes that is suspect."""
    roles: dict[str, list[bool]] = {}
    for node in nodes.values():
        if node.metrics:
            roles.setdefault(node.role, []).append(node.suspect)
    return {role: sum(told) / len(told) for role, told in roles.items()}


def _slow_groups(judged: Judgement, one: InSeries) -> list[str]:
    """Racks that are slow as a whole, though each of their nodes may be within the spread."""
    system = judged.site.system
    found = {name: one.slow_group(list(system.group(name))) for name in system.groups}
    return [
        f"{name}: {one.key.name} is {deficit:.1%} worse than the fleet's, as a whole"
        for name, deficit in found.items()
        if deficit is not None
    ]


def _bad_groups(judged: Judgement, nodes: dict[str, NodeReport]) -> list[str]:
    """Racks of which at least half is bad, and the fleet is not."""
    bad = {n.node for n in nodes.values() if n.state not in (State.OK, State.UNTESTED)}
    told = []
    for name in judged.site.system.groups:
        members = set(judged.site.system.group(name))
        inside, others = bad & members, nodes.keys() - members
        if (
            len(inside) >= MIN_HISTORY
            and 2 * len(inside) >= len(members)
            and 2 * len(bad - members) < len(others)
        ):
            told.append(
                f"{name}: {len(inside)} of {len(members)} nodes are bad; look at what they share"
            )
    return told
