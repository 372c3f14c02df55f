"""Which nodes go back into service and which stay out, and why."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

OK, UNTESTED = "OK", "UNTESTED"
STATES = (OK, "SLOW", "FAILED", "ODD", "UNSTABLE", UNTESTED)
KEEP_OUT = ("FAILED", "ODD", "SLOW", UNTESTED)  # an UNSTABLE node goes back with a remark


class NodeReport(Protocol):
    """What siteproof.fleet says of a node."""

    @property
    def state(self) -> str:
        """One of STATES."""

    @property
    def reasons(self) -> Sequence[str]:
        """Why, the gravest first."""


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
        return node_set(r.node for r in self.rulings.values() if r.back)

    @property
    def out(self) -> NodeSet:
        """The nodes that stay out."""
        return node_set(r.node for r in self.rulings.values() if not r.back)

    @property
    def passed(self) -> NodeSet:
        """The nodes that may leave a quarantine."""
        return node_set(r.node for r in self.rulings.values() if r.passed)

    def __str__(self) -> str:
        """The answer in a line."""
        out = self.out
        told = f"{len(self.back)} of {len(self.rulings)} nodes go back"
        return f"{told}, {len(out)} stay out ({out})" if out else told


def node_set(names: Iterable[str] = ()) -> NodeSet:
    """A node set that looks up no groups."""
    return NodeSet.fromlist(list(names), resolver=RESOLVER_NOGROUP)


def decide(
    reports: Mapping[str, NodeReport],
    waived: Mapping[str, Mapping[str, str]] | None = None,
    keep_out: Collection[str] = KEEP_OUT,
) -> Decision:
    """A ruling on each node.

    waived: of a node, what is waived ('all', or a criterion, a metric and the like) and the waiver
    in words. A node is excused only if every reason speaks of something that is waived.
    """
    rulings = {}
    for node, report in sorted(reports.items()):
        state, reasons = str(report.state), tuple(report.reasons)
        excuse = _excuse(reasons, (waived or {}).get(node, {})) if state != OK else ""
        back = state not in keep_out or bool(excuse)
        rulings[node] = Ruling(node, state, back, reasons, excuse)
    return Decision(rulings)


def _excuse(reasons: Sequence[str], waived: Mapping[str, str]) -> str:
    if "all" in waived:
        return waived["all"]
    for reason in reasons:
        if not any(_names(reason, thing) for thing in waived):
            return ""
    return "; ".join(dict.fromkeys(waived.values())) if reasons else ""


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
