"""Which nodes go back into service and which stay out, and why.

The gate's log: one JSON object a line, `perflogs/<system>/gate.jsonl`, appended to only.

It is also the proof of whose a reservation is: name and start of each that the gate has made.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ClusterShell.NodeSet import NodeSet

from siteproof import files, locks, nodesets
from siteproof.analysis.slow_nodes import State
from siteproof.errors import UserError
from siteproof.record.finding import NEVER_WAIVED, Finding, Kind
from siteproof.slurm.records import Reservation

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


NAME = "gate.jsonl"
LARGEST = 256 * files.MIB  # some hundred thousand decisions
LOCK = ".gate"  # in the same folder
LOOK_EVERY = 0.2  # seconds
LONGEST = 600  # seconds to wait for another gate: ten commands that Slurm does not answer
HANDED_OVER = "handed over"  # the phase of a command that somebody with the right has to run
TESTED = "reframe"  # what a record of a test inside a quarantine is about
# Seconds that a create may take after the gate has stopped to wait for it, and by which slurmctld's
# clock may be late: right before a create there was no reservation of this name.
GRACE = 60


@contextmanager
def held(path: Path, *, wait: bool = False) -> Iterator[Callable[[Mapping[str, object]], None]]:
    """Hold the log until the end, so that two gates never act at the same time.

    What it gives appends a record. Raises UserError if another gate holds the log; with wait only
    if it does so for LONGEST.
    """
    if path.parent.is_symlink():  # a link of another user must not redirect what we write
        raise UserError(path.parent, "cannot be written: it is a link", "a folder")
    deadline = time.monotonic() + (LONGEST if wait else 0)
    while True:
        try:
            lock = locks.take(path.with_name(LOCK))
            break
        except locks.Taken as error:
            if time.monotonic() >= deadline:
                what = f"another 'siteproof gate' is running: {error.where} is {error.what}"
                raise UserError(path, what, hint=error.hint) from None
        time.sleep(LOOK_EVERY)
    with lock:
        yield partial(_add, path)


def _add(path: Path, record: Mapping[str, object]) -> None:
    """Append a record in one write. Raises UserError where it is not written whole."""
    line = json.dumps(record, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
    try:
        files.append(path, line, below=path.parents[1], limit=LARGEST)
    except OSError as error:
        raise UserError(path, f"cannot be written: {error.strerror}") from None


def read(path: Path) -> list[dict[str, Any]]:
    """All records; a line that is none is passed over, which can only make the gate more careful.

    Raises UserError if the file cannot be read.
    """
    try:
        text = files.read_text(path, below=path.parents[1], limit=LARGEST)
    except FileNotFoundError:
        return []
    records = []
    for line in filter(None, text.split("\n")):
        try:
            record = files.loads(path, line)
        except UserError:
            continue
        if isinstance(record, dict):
            records.append(record)
    return records


def made_by_us(records: list[dict[str, Any]], found: Reservation) -> bool:
    """Whether the log has it that the gate made this reservation.

    Of a create that Slurm did not answer, or whose end is not in the log, it is the gate's if it
    holds the same nodes, and began from then on. A create that was handed over may begin at any
    time from then on.
    """
    open_ended: list[tuple[int, float, object]] = []  # begin, end, nodes
    handed_over: list[tuple[int, float, object]] = []
    for record in records:
        moment = record.get("unix")
        if not _creates(record, found.name) or type(moment) is not int:
            continue
        if has_start(record, found):
            return True
        if record.get("phase") == HANDED_OVER:
            handed_over.append((moment, inf, record.get("nodes")))
        elif record.get("phase") == "before":
            open_ended.append((moment, moment, record.get("nodes")))
        elif record.get("perhaps") and open_ended:
            begin, _, nodes = open_ended.pop()
            open_ended.append((begin, moment, nodes))
        elif open_ended:
            open_ended.pop()  # refused, or known by its start
    return any(
        begin - GRACE <= found.start <= end + GRACE and nodes == str(found.nodes)
        for begin, end, nodes in [*open_ended, *handed_over]
    )


def has_start(record: Mapping[str, Any], found: Reservation) -> bool:
    """Whether this record proves it, whatever its nodes are now."""
    return _creates(record, found.name) and record.get("start") == found.start


def _creates(record: Mapping[str, Any], name: str) -> bool:
    return record.get("what") == "create" and record.get("reservation") == name


def put_in(records: list[dict[str, Any]], name: str) -> dict[str, float]:
    """The nodes that the gate has put, or tried to put, into the reservation of this name.

    With the time of the last, in seconds since 1970; infinity where the log has none. Of a command
    that was handed over it is the first test inside since then, as only then they were there.
    """
    nodes: dict[str, float] = {}
    for record in records:
        if record.get("reservation") != name:
            continue
        moment = record.get("unix")
        since = float(moment) if type(moment) is int else inf
        if record.get("what") == TESTED:
            inside = _set(record.get("nodes"))
            nodes |= {node: since for node in inside if nodes.get(node) == inf}
        elif added := _set(record.get("added")):
            at = inf if record.get("phase") == HANDED_OVER else since
            nodes |= dict.fromkeys(added, at)
    return nodes


def done(records: list[dict[str, Any]], samples_of: str) -> tuple[NodeSet, NodeSet]:
    """The nodes that were quarantined, and that were released, on these samples."""
    quarantined, released = nodesets.of(), nodesets.of()
    for record in records:
        if record.get("samples_of") != samples_of or record.get("phase") != "after":
            continue
        if not record.get("error"):
            quarantined.update(_set(record.get("added")))
            released.update(_set(record.get("released")))
    return quarantined, released


def _set(text: object) -> NodeSet:
    """A node set of the log; empty if it is none."""
    with suppress(ValueError):
        return nodesets.parse(text if isinstance(text, str) else "")
    return nodesets.of()
