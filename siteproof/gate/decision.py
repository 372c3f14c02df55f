"""Which nodes go back into service and which stay out, and why."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from ClusterShell.NodeSet import NodeSet

from siteproof import nodesets
from siteproof.analysis.slow_nodes import State
from siteproof.record.finding import NEVER_WAIVED, Finding, Kind

if TYPE_CHECKING:
    from siteproof.nodes.states import NodeReport

OK, UNTESTED = str(State.OK), str(State.UNTESTED)
STATES = tuple(map(str, State))  # the most severe first
# An UNSTABLE node goes back with a remark.
KEEP_OUT = ("FAILED", "FLAPPING", "ODD", "SLOW", UNTESTED)


@dataclass(frozen=True)
class Excuse:
    """A waiver, as the gate needs it. everything: it waives whatever is wrong with its nodes.

    criteria, metrics, checks: what else it covers. wrong_answers: the statuses of wrong answers
    that it excuses as well. waiver: the finding with its owner. is_of: whether it covers a unit.
    """

    waiver: Finding
    everything: bool = False
    criteria: frozenset[str] = frozenset()
    metrics: frozenset[str] = frozenset()
    checks: frozenset[str] = frozenset()
    wrong_answers: frozenset[str] = frozenset()
    is_of: Callable[[str], bool] = lambda _: True

    def without(self, kept: Mapping[str, str]) -> Excuse:
        """The same where other criteria are not met: what is said of a metric is said of them, too.

        kept: criteria that no waiver covers, each with its metric.
        """
        metrics = {metric for key, metric in kept.items() if key not in self.criteria}
        checks = {metric.partition(".")[0] for metric in metrics}
        return replace(self, metrics=self.metrics - metrics, checks=self.checks - checks)

    def excuses(self, why: Finding) -> bool:
        """Whether it covers a reason. A wrong answer needs a waiver that names its status."""
        return self.is_about(why) and not self.refuses(why)

    def refuses(self, why: Finding) -> bool:
        """Whether a reason is a wrong answer whose status it does not name, or may be one."""
        unnamed = why.is_wrong_answer and why.status not in self.wrong_answers
        return unnamed or why.kind in NEVER_WAIVED

    def is_about(self, why: Finding) -> bool:
        """Whether it waives the criterion, metric or check of a reason."""
        if not self.is_of(why.subject):
            return False
        if self.everything:
            return True
        if why.criterion:
            return why.criterion in self.criteria
        if why.metric:
            return why.metric.partition(" ")[0] in self.metrics
        return why.check in self.checks


@dataclass(frozen=True)
class Ruling:
    """The decision on one node. waived: the waivers for which it goes back nevertheless."""

    node: str
    state: str
    back: bool
    findings: tuple[Finding, ...] = ()
    waived: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Decision:
    """The rulings on all nodes of the inventory, by node. warnings: what limits the trust in it."""

    rulings: Mapping[str, Ruling]
    warnings: Sequence[Finding] = ()

    @property
    def back(self) -> NodeSet:
        """The nodes that go back."""
        return nodesets.of(r.node for r in self.rulings.values() if r.back)

    @property
    def out(self) -> NodeSet:
        """The nodes that stay out."""
        return nodesets.of(r.node for r in self.rulings.values() if not r.back)

    def without(self, dead: Mapping[str, Finding]) -> Decision:
        """The same with nodes that stay out as they are dead now, whatever was measured before."""
        rulings = dict(self.rulings)
        for node, why in dead.items():
            findings = (why, *rulings[node].findings)
            rulings[node] = Ruling(node, str(State.FAILED), False, findings)
        return replace(self, rulings=rulings)

    @property
    def certain(self) -> Decision:
        """The same without the nodes that stay out for a reason that is not certain."""
        known = {node: ruling for node, ruling in self.rulings.items() if is_certain(ruling)}
        return replace(self, rulings=known)


def decide(
    reports: Mapping[str, NodeReport],
    waived: Mapping[str, Sequence[Excuse]] | None = None,
    keep_out: Collection[str] = KEEP_OUT,
) -> Decision:
    """A ruling on each node.

    waived: of a node, what excuses it. It goes back only if every reason is excused.
    """
    rulings = {}
    for node, report in sorted(reports.items()):
        state, findings = str(report.state), tuple(report.findings)
        excuse = _excuse(findings, (waived or {}).get(node, ())) if state != OK else ()
        back = state not in keep_out or bool(excuse)
        rulings[node] = Ruling(node, state, back, findings, excuse)
    return Decision(rulings)


def _excuse(findings: Sequence[Finding], excuses: Sequence[Excuse]) -> tuple[Finding, ...]:
    """The waivers that excuse every reason, or events of the role; none if one is not excused."""
    used: dict[Finding, None] = {}
    for why in findings:
        covering = [excuse.waiver for excuse in excuses if excuse.excuses(why)]
        if not covering and why.get("event"):  # of the whole role: no fault of this node
            covering = [replace(why, kind=Kind.FLEET_EVENT)]
        if not covering:
            return ()
        used |= dict.fromkeys(covering)
    return tuple(used)


@dataclass(frozen=True)
class Share:
    """How many nodes of a partition, and of how many."""

    count: int
    of: int

    def exceeds(self, limit: Fraction) -> bool:
        """Whether it is more than a share. One node is always allowed."""
        return self.count > 1 and self.count > limit * self.of


def condemned(decision: Decision, nodes: NodeSet, out_now: NodeSet) -> Share:
    """The nodes of a partition that a measurement newly keeps out, of those that were measured.

    out_now: the nodes that are out of service already. Too many of them accuse the check.
    """
    measured = nodesets.of(
        node
        for node in nodes
        if node in decision.rulings and decision.rulings[node].state != UNTESTED
    )
    return Share(len((decision.out & measured) - out_now), len(measured))


def out_of_service(decision: Decision, nodes: NodeSet, out_now: NodeSet) -> Share:
    """The nodes of a partition that would be out of service, by whomever, of all.

    None where the decision adds none: what others have drained is no reason to refuse.
    """
    adds_some = bool((decision.out & nodes) - out_now)
    return Share(len((decision.out | out_now) & nodes) if adds_some else 0, len(nodes))


def is_certain(ruling: Ruling) -> bool:
    """Whether it stays out for a reason that no check can be at fault for: dead, a wrong answer."""
    return not ruling.back and any(
        why.kind is Kind.NOT_RESPONDING or why.is_wrong_answer for why in ruling.findings
    )
