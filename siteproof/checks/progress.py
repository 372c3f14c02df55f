"""What a run prints in a line: how far a check is, what failed, and what was not measured.

While a wide job runs: dead nodes, a dead batch host, and what deserves a second job.

A job with --no-kill outlives its batch host and then holds the other nodes until its time limit;
their results are files already. So the job is ended as soon as only dead nodes are missing.
"""

from __future__ import annotations

import math
import textwrap
import time
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from shutil import get_terminal_size
from typing import Any

from ClusterShell.NodeSet import NodeSet
from reframe.core.exceptions import SkipTestError
from reframe.core.logging import getlogger

from siteproof import nodesets
from siteproof.errors import UserError, harmless
from siteproof.record.samples import Sample
from siteproof.slurm import client
from siteproof.slurm.records import unusable
from siteproof.units import count

WIDEST = 110  # columns; a wider line is hard to read
INDENT = "  "


class Lacking(SkipTestError):
    """Skips a test for something that is missing here. remedy: what would bring it, or empty."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what}: {remedy} brings it" if remedy else what)
        self.remedy = remedy


def report_skipped(tasks: Sequence[Any], total: int) -> None:
    """Print what was skipped of a run of `total` test cases; nothing if nothing was."""
    skipped = [(task.check.unique_name.split()[0], task.exc_info[1]) for task in tasks]
    if not skipped:
        return
    width = min(get_terminal_size().columns, WIDEST)
    getlogger().info(f"not measured: {len(skipped)} of {count(total, 'test case')}")
    for line in skipped_lines(skipped, width):
        getlogger().info(line)


def skipped_lines(skipped: Iterable[tuple[str, BaseException | None]], width: int) -> list[str]:
    """One line a remedy or reason, with the checks; those that a command brings come first.

    A longer line is broken between words.
    """
    form = textwrap.TextWrapper(
        width, initial_indent=INDENT, subsequent_indent=INDENT * 3, break_on_hyphens=False
    )
    remedies: dict[str, dict[str, None]] = {}
    reasons: dict[str, dict[str, None]] = {}
    for check, error in skipped:
        if remedy := getattr(error, "remedy", ""):
            remedies.setdefault(f"{remedy} brings", {})[check] = None
        else:
            reasons.setdefault(f"{harmless(str(error))}:", {})[check] = None
    lines = [f"{key} {', '.join(names)}" for key, names in (remedies | reasons).items()]
    return [part for line in lines for part in form.wrap(line)]


MAX_ITEMS = 3  # nodes, pairs or points in a line


def failures(failed: Iterable[Sample]) -> str:
    """What failed, and how: nodes, pairs, or points by their dimensions."""
    items = []
    for sample in failed:
        dims = [f"{name}={value}" for name, value in sample.dims.items()]
        trial = [f"trial={sample.trial}"] if sample.trial else []
        what = sample.node or " ".join([*dims, *trial])
        if sample.node and "peer" in sample.dims:
            what = f"{sample.node}>{sample.dims['peer']}"
        status = "" if sample.status == "generic" else f"{sample.status}: "  # it says nothing
        items.append(f"{what}: {status}{sample.why}")
    return shortened(items)


def shortened(items: Sequence[str]) -> str:
    """The first items, and how many are left out."""
    shown = "; ".join(items[:MAX_ITEMS])
    if len(items) > MAX_ITEMS:
        shown += f"; and {len(items) - MAX_ITEMS} more"
    return harmless(shown)


def points_done(done: int, points: int, seconds: float, failed: int = 0, repeated: int = 0) -> str:
    """How many points were measured, and how long the others will take at that pace.

    done: with those that failed, as they take their time, too. seconds: since the first began.
    repeated: how many of them crashed at first, and were measured at the second attempt.
    """
    text = f"{done - failed} of {points} points"
    if failed:
        text += f", {failed} failed"
    if repeated:
        text += f", {repeated} only at the second attempt, after a crash"
    left = points - done
    if not left:
        return text
    minutes = seconds / done * left / 60
    about = f"{math.ceil(minutes)} min" if minutes > 1 else "a minute"
    return f"{text}, about {about} left"


LOOK_EVERY = 20  # seconds between two queries of Slurm, whatever the number of nodes
REPORT_EVERY = 10  # seconds between two lines of progress
PATIENCE = 60  # seconds a job may take to end after the last result, or go without any
SHORTEST = 45  # seconds below which a second job cannot measure anything


class Watcher:
    """What is known of one running job; queries Slurm at most every LOOK_EVERY seconds.

    outside: the job runs in no reservation, so it cannot begin on a node that is reserved.
    """

    def __init__(self, nodes: NodeSet, limit: float, *, outside: bool = False) -> None:
        self.nodes = nodes
        self.limit = limit
        self.outside = outside
        self._runs = False
        self.submissions = 1
        self.dead: dict[str, str] = {}  # nodes that were down at some look, each with the reason
        self._drains: set[str] = set()  # those of them that were only drained
        self.spared: set[str] = set()  # those of them that were only reserved
        # Of no clock that somebody sets: a step would end a job, or leave it waiting.
        self._looked = self._changed = self._queried = self._reported_at = time.monotonic()
        self.deadline = self._looked + limit
        self._reason, self._waited_at = "", self._looked
        self._unlisted = False  # whether Slurm did not list the job at the last look
        self._seen = self._reported = 0
        self._good: dict[str, bool] = {}  # whether a node that is done has measured

    def runs(self, state: str | None) -> bool:
        """Whether the job has begun to run; from then on its limit counts."""
        if state and "RUNNING" in state and not self._runs:
            self._runs = True
            self.deadline = time.monotonic() + self.limit
        return self._runs

    def remaining(self) -> float:
        """Seconds left of the first job's limit; all of it if that job has never begun."""
        return self.limit if not self._runs else self.deadline - time.monotonic()

    def progress(self, done: AbstractSet[str], measured: Callable[[str], bool]) -> str:
        """How many nodes have measured, if that has changed; at most every REPORT_EVERY seconds.

        measured: whether a node that is done has; called once for each.
        """
        now = time.monotonic()
        if len(done) == self._reported or now - self._reported_at < REPORT_EVERY:
            return ""
        self._reported, self._reported_at = len(done), now
        self._good |= {node: measured(node) for node in done - self._good.keys()}
        good = sum(self._good[node] for node in done)
        failed = f", {len(done) - good} failed" if good < len(done) else ""
        return f"{good} of {len(self.nodes)} nodes measured{failed}"

    def waits(self, why: Callable[[], str]) -> str:
        """Why Slurm does not start the job, if that has changed; first after LOOK_EVERY seconds.

        why: asks Slurm, afterwards every PATIENCE seconds.
        """
        now = time.monotonic()
        if self._runs or now - self._waited_at < (PATIENCE if self._reason else LOOK_EVERY):
            return ""
        before, self._reason, self._waited_at = self._reason, why(), now
        return self._reason if self._reason != before else ""

    def cannot_start(self) -> bool:
        """Whether the job cannot start, as a node went down or was reserved while it waited.

        Slurm then keeps it pending for ever, with one of several reasons.
        """
        if self._runs or self.submissions > 1 or time.monotonic() - self._looked < LOOK_EVERY:
            return False
        self._looked = time.monotonic()
        try:
            return bool(self._look(self.nodes, outside=self.outside))
        except UserError:
            return False  # a controller that restarts

    def lost_by_slurm(self, cancelled: bool, listed: Callable[[], bool]) -> bool:
        """Whether Slurm has forgotten the job, whatever its accounting has of it.

        So it is for ever where slurmctld was killed before it had saved the job. Slurm is queried
        while the job waits, and when it should have ended; two answers PATIENCE apart must agree.
        """
        now = time.monotonic()
        due = cancelled or not self._runs or now > self.deadline + PATIENCE
        if not due or now - self._queried < PATIENCE:
            return False
        self._queried = now
        before, self._unlisted = self._unlisted, not listed()
        return before and self._unlisted

    def only_dead_nodes_left(self, done: AbstractSet[str]) -> bool:
        """Whether every node without a result is down, so that nothing more will come."""
        now = time.monotonic()
        if len(done) != self._seen:
            self._seen, self._changed = len(done), now
        missing = [node for node in self.nodes if node not in done]
        if not missing:
            return now - self._changed > PATIENCE
        if not done or now - self._looked < LOOK_EVERY:
            return False
        self._looked = now
        try:
            return not set(missing) - set(self._look(missing))
        except UserError:
            return False  # a controller that restarts; the job has its time limit

    def worth_another_job(self, done: AbstractSet[str], ended: str) -> NodeSet:
        """Nodes without a result that can take a job now; once.

        None after a time-out, or if the job was cancelled.
        """
        missing = [node for node in self.nodes if node not in done]
        if not missing or self.submissions > 1 or ended.startswith(("TIMEOUT", "CANCELLED")):
            return nodesets.of()
        self.submissions += 1
        if self.remaining() < SHORTEST:
            return nodesets.of()
        try:
            dead = self._look(missing, outside=self.outside)
        except UserError:
            return nodesets.of()
        return nodesets.of([n for n in missing if n not in dead])

    def lost(self, done: AbstractSet[str]) -> dict[str, str]:
        """The nodes without a result that were down at the last look or an earlier one, and why."""
        if missing := [node for node in self.nodes if node not in done]:
            with suppress(UserError):  # a controller that restarts: use what is known
                self._look(missing)
        return {node: why for node, why in self.dead.items() if node in missing}

    def down(self) -> set[str]:
        """The nodes that were down at some look; one that only drains goes on with its job."""
        return set(self.dead) - self._drains

    def _look(self, nodes: Iterable[str], *, outside: bool = False) -> dict[str, str]:
        """Those of the nodes that take no job, and why. Raises UserError.

        outside: the job is still to begin, and in no reservation.
        """
        wanted = nodesets.of(nodes)
        states = client.node_states(wanted)
        dead = unusable(wanted, states, outside=outside)
        self.dead |= dead
        known = {node: states[node].state for node in dead if node in states}
        self._drains -= set(dead)
        self._drains |= {node for node, state in known.items() if state.drains}
        self.spared -= set(dead)
        self.spared |= {node for node, state in known.items() if state.usable}
        return dead
