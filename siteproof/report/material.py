"""The data of a report's chapters: each is read once, and only if a chapter needs it."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from siteproof import files
from siteproof.compare import accepted
from siteproof.compare.accepted import Acceptance
from siteproof.errors import UserError, UserErrors
from siteproof.gate import reports as gate_reports
from siteproof.gate.decision import Decision, decide
from siteproof.nodes.states import FleetReport
from siteproof.record.pair_units import PEER
from siteproof.record.samples import PUBLISHED, Sample
from siteproof.record.sessions import Sessions
from siteproof.sites import Site
from siteproof.verdict import judgement
from siteproof.verdict.judgement import Judgement

if TYPE_CHECKING:
    from siteproof.history import History
    from siteproof.trend import Alert, Survey

T = TypeVar("T")


MANY_JOBS = 300  # from which on the search for steps takes longer than to start a process


def spare_processor() -> bool:
    """Whether a second process would help."""
    return sys.platform == "linux" and len(os.sched_getaffinity(0)) > 1


def _silent(_line: str) -> None:
    """Report no progress."""


def _survey(site: Site, perflogs: Path, now: datetime) -> Survey:
    """Steps, drift and runs out of control, with a history of its own."""
    from siteproof import history, trend

    with history.open_history(perflogs, [site.system.system]) as opened:
        return trend.survey(site, opened, now=now)


@dataclass
class Material:
    """A system and what was measured of it. progress: called with a line before each long step."""

    judged: Judgement
    perflogs: Path
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    progress: Callable[[str], None] = _silent
    _made: dict[Any, Any] = field(default_factory=dict, repr=False)
    _search: Future[Survey] | None = field(default=None, repr=False)
    _open: ExitStack = field(default_factory=ExitStack, repr=False)

    def close(self) -> None:
        """Close the history, if it was opened."""
        self._open.close()

    def once(self, make: Callable[[Material], T]) -> T:
        """The result of a function, which is called only once."""
        if make not in self._made:
            self._made[make] = make(self)
        found: T = self._made[make]
        return found

    @property
    def site(self) -> Site:
        """The system's site."""
        return self.judged.site

    @property
    def system(self) -> str:
        """Its name."""
        return self.site.system.system

    @cached_property
    def sessions(self) -> Sessions:
        """Every session of the system; the samples of one are read when they are needed."""
        return self.judged.sessions or Sessions(self.perflogs, self.system)

    @cached_property
    def history(self) -> History:
        """The store of all samples, up to date."""
        from siteproof import history

        self.progress("bringing the history up to date")
        return self._open.enter_context(history.open_history(self.perflogs, [self.system]))

    @cached_property
    def fleet(self) -> FleetReport:
        """The state of every node."""
        self.progress("judging every node")
        limited = self.judged.campaign or self.judged.late or self.judged.past
        known = None if limited else lambda metric: self.survey.dates.get(metric, [])
        return gate_reports.fleet(self.judged, known)

    @cached_property
    def gate(self) -> Decision:
        """Which nodes go back and which stay out, by the rule of the gate; Slurm is not called."""
        waived = gate_reports.waived(self.judged, self.now.date())
        return decide(self.fleet.nodes, waived)

    @cached_property
    def survey(self) -> Survey:
        """Steps, drift and runs out of control in the whole history."""
        self.progress("looking for steps and drift")
        if self._search:
            # An error in the other process is not lost: the search here fails the same way.
            with suppress(Exception):
                return self._search.result()
        from siteproof import trend

        return trend.survey(self.site, self.history, now=self.now)

    @property
    def open_changes(self) -> list[Alert]:
        """What became worse up to what is judged, is still there, and nobody has acknowledged.

        Nothing is known where the history cannot be read; the first screen has the reason.
        """
        end = (self.judged.as_of or self.now).replace(tzinfo=None)
        try:
            return [one for one in self.survey.all if one.open and one.begin.time <= end]
        except (UserError, UserErrors):
            return []

    def begin(self) -> None:
        """Start the search for steps in another process, where it takes long.

        It is a fork, so it starts before the history is open here: DuckDB cannot be forked.
        """
        if len(self.sessions.headers) >= MANY_JOBS and spare_processor():
            pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork"))
            self._search = pool.submit(_survey, self.site, self.perflogs, self.now)
            self._open.callback(pool.shutdown, wait=False, cancel_futures=True)

    @cached_property
    def accepted(self) -> list[Acceptance]:
        """What was accepted, oldest first. Raises UserError for a broken record."""
        return accepted.read_all(self.perflogs, self.system)

    @cached_property
    def good(self) -> list[Sample]:
        """The judged samples that have a value."""
        return [s for s in self.judged.samples if s.status == "ok"]

    @cached_property
    def own(self) -> list[Sample]:
        """The judged samples that were measured here."""
        return [s for s in self.judged.samples if s.header.mode != PUBLISHED]

    @cached_property
    def published(self) -> list[Sample]:
        """All values and texts that others have published."""
        return self.sessions.of(lambda head: head.mode == PUBLISHED)

    @cached_property
    def measured(self) -> set[str]:
        """The nodes that have a measured value, as either end of a pair; no published one."""
        found = [s for s in self.own if s.status == "ok"]
        ends = {s.node for s in found} | {s.dims.get(PEER, "") for s in found}
        return {node for node in ends if self.site.role_of(node)}

    @cached_property
    def names(self) -> list[str]:
        """The sessions that are judged, oldest first."""
        return sorted({s.header.session for s in self.judged.samples})


def gather(
    system: str = "",
    *,
    since: str = "",
    name: str = "",
    as_of: str = "",
    progress: Callable[[str], None] = _silent,
) -> Material:
    """The data of a report on a system. Raises UserError and UserErrors for bad input."""
    progress("judging the criteria")
    now = datetime.now(UTC)
    judged = judgement.judge_system(system, since=since, name=name, as_of=as_of, whole=True)
    return Material(judged, files.perflogs(), now, progress)
