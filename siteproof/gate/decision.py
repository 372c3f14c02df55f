"""Which nodes go back into service and which stay out, and why."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from ClusterShell.NodeSet import NodeSet

from siteproof import nodesets
from siteproof.analysis.slow_nodes import State, WrongAnswer

OK, UNTESTED = str(State.OK), str(State.UNTESTED)
STATES = tuple(map(str, State))  # the gravest first
KEEP_OUT = ("FAILED", "ODD", "SLOW", UNTESTED)  # an UNSTABLE node goes back with a remark


class NodeReport(Protocol):
    """What siteproof.nodes.states says of a node."""

    @property
    def state(self) -> str:
        """One of STATES."""

    @property
    def reasons(self) -> Sequence[str]:
        """Why, the gravest first."""

    @property
    def wrong(self) -> Sequence[WrongAnswer]:
        """Those of the reasons that are wrong answers."""


@dataclass(frozen=True)
class Excuse:
    """A waiver of a node. things: `all`, or a criterion, a metric, a check and the like.

    wrong_answers: the statuses of wrong answers that it excuses as well. waiver: it in words.
    """

    things: frozenset[str]
    wrong_answers: frozenset[str]
    waiver: str

    def excuses(self, reason: str, wrong: WrongAnswer | None) -> bool:
        """Whether a reason speaks of something that is waived; of a wrong answer, its status."""
        if wrong and wrong.status not in self.wrong_answers:
            return False
        if "all" in self.things:
            return True
        if wrong:
            return wrong.check in self.things
        return any(_names(reason, thing) for thing in self.things)


@dataclass(frozen=True)
class Ruling:
    """What becomes of one node. waived: the waiver for which it goes back nevertheless."""

    node: str
    state: str
    back: bool
    reasons: tuple[str, ...] = ()
    waived: str = ""

    @property
    def passed(self) -> bool:
        """Whether it may leave a quarantine: it goes back, and was measured or is waived."""
        return self.back and (self.state != UNTESTED or bool(self.waived))


@dataclass(frozen=True)
class Decision:
    """The rulings on all nodes of the inventory, by node."""

    rulings: Mapping[str, Ruling]

    @property
    def back(self) -> NodeSet:
        """The nodes that go back."""
        return nodesets.of(r.node for r in self.rulings.values() if r.back)

    @property
    def out(self) -> NodeSet:
        """The nodes that stay out."""
        return nodesets.of(r.node for r in self.rulings.values() if not r.back)

    @property
    def passed(self) -> NodeSet:
        """The nodes that may leave a quarantine."""
        return nodesets.of(r.node for r in self.rulings.values() if r.passed)

    def __str__(self) -> str:
        """The answer in a line."""
        out = self.out
        told = f"{len(self.back)} of {len(self.rulings)} nodes go back"
        return f"{told}, {len(out)} stay out ({out})" if out else told


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
        state, reasons = str(report.state), tuple(report.reasons)
        excuse = _excuse(report, (waived or {}).get(node, ())) if state != OK else ""
        back = state not in keep_out or bool(excuse)
        rulings[node] = Ruling(node, state, back, reasons, excuse)
    return Decision(rulings)


def _excuse(report: NodeReport, excuses: Sequence[Excuse]) -> str:
    """The waivers that excuse every reason, in words; empty if one is not excused."""
    wrong = {answer.reason: answer for answer in report.wrong}
    used: dict[str, None] = {}
    for reason in report.reasons:
        mine = [e.waiver for e in excuses if e.excuses(reason, wrong.get(reason))]
        if not mine:
            return ""
        used |= dict.fromkeys(mine)
    return "; ".join(used)


def _names(reason: str, thing: str) -> bool:
    """Whether a reason speaks of a thing: TB-HPL is not TB-HPL-ANY, Stream no Stream.copy."""
    return re.search(rf"(?<![\w.-]){re.escape(thing)}(?![\w-]|\.\w)", reason) is not None


def too_many(
    out: NodeSet, inventories: Mapping[str, NodeSet], limit: Fraction
) -> dict[str, tuple[int, int]]:
    """The partitions of which more than a share would stay out: how many, of how many.

    One node is always allowed, however small the partition.
    """
    counts = {name: (len(out & nodes), len(nodes)) for name, nodes in inventories.items()}
    return {name: (n, of) for name, (n, of) in counts.items() if n > 1 and n > limit * of}
