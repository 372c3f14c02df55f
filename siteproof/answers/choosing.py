"""Which sessions answer a system's criteria: for each of its nodes, pairs and links the newest.

Sessions are looked through from the newest on, until everything that is promised has an answer. A
run that was interrupted gives no answer: the older one stands. An answer that is older than its
criterion allows is searched for too, so that its age can be shown, but not for long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from siteproof.answers.attempts import (
    ALL_UNITS,
    attempts_at,
    may_answer,
    of_system,
    place,
    refusal,
    why_not,
)
from siteproof.record import campaign
from siteproof.record.clocks import Ages
from siteproof.record.grouped import grouped
from siteproof.record.pair_units import is_gpu, node_of
from siteproof.record.samples import TOOL_MISSING, Header, Sample
from siteproof.sites import Criterion

BEYOND = 20  # sessions that are looked through for an answer that is too old
MAX_SOURCES_NAMED = 3
ANY = "*"  # a unit that only samples know, such as a pair that was drawn
FEW = 0.25  # of the nodes: reading these alone, and all of a session that answers, is cheaper
# The samples of some checks in a session, at least those of the nodes, if there are any.
Read = Callable[[str, set[str], "set[str] | None"], list[Sample]]


@dataclass
class Owed:
    """A criterion, those of its units that have no answer yet, and the checks that may answer it.

    looked: how many sessions were looked through that are too old for it. without: the units for
    which the newest answer is a missing program, with the partitions and environments that lack it;
    what was measured in another one, of `places`, still answers.
    """

    criterion: Criterion
    units: set[str]
    checks: set[str]
    looked: int = field(default=0)
    all: int = field(init=False)
    without: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    places: set[tuple[str, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.all = len(self.units)

    @property
    def few(self) -> set[str] | None:
        """The nodes that are left, if they are few; None where only all samples will do."""
        by_node = not (self.criterion.links or of_system(self.criterion) or ANY in self.units)
        left = self.left
        if not by_node or len(left) > FEW * self.all:
            return None
        return set(map(node_of, left))

    @property
    def left(self) -> set[str]:
        """The units for which older sessions are looked through."""
        return self.units | self.without.keys()

    def may_be_answered_by(self, header: Header) -> bool:
        """Whether a job could answer it, as far as its header shows."""
        return header.check in self.checks and may_answer(self.criterion, header)

    def find_places(self, headers: Iterable[Header]) -> None:
        """Note the partitions and environments of the jobs that could answer it."""
        may = filter(self.may_be_answered_by, headers)
        self.places = {(header.partition, header.environment) for header in may}

    def take(self, found: Sequence[Sample]) -> bool:
        """Note the units that these samples answer; whether one could have answered any."""
        units = attempts_at(found, self.criterion)
        spoke = self._had_to_measure(found, self.left - units.keys())
        for unit, attempts in units.items():
            may = self._left_of(unit)
            if not may:
                continue
            could = [s for s in attempts if not refusal(self.criterion, s)]
            spoke = spoke or bool(could)
            if answers := [s for s in could if not why_not(self.criterion, s)]:
                self.units -= may
                self._look_elsewhere(unit, may, answers)
        return spoke

    def _had_to_measure(self, found: Sequence[Sample], without: set[str]) -> bool:
        """Whether a job that could answer it was on the node of a unit that has no answer there."""
        nodes = set(map(node_of, without))
        own = (s for s in found if nodes and self.may_be_answered_by(s.header))
        return any(sample.node in nodes for sample in own)

    def _left_of(self, unit: str) -> set[str]:
        """Those that are left of the units that an attempt at this unit answers."""
        if unit == ALL_UNITS:
            return self.left
        of_node = self.criterion.subject == "gpu" and not is_gpu(unit)
        some = [one for one in self.left if node_of(one) == unit] if of_node else [unit, ANY]
        return {one for one in some if one in self.units or one in self.without}

    def _look_elsewhere(self, unit: str, may: set[str], answers: Sequence[Sample]) -> None:
        """Go on with a unit while all of its answers are missing programs, and others may be."""
        for one in may if self.criterion.subject == "gpu" else {unit}:
            lack = self.without.pop(one, set()) | {place(sample) for sample in answers}
            if all(sample.status == TOOL_MISSING for sample in answers) and self.places - lack:
                self.without[one] = lack


@dataclass
class Chosen:
    """The sessions that answer, the newest first; and jobs that answered when it was still time."""

    sessions: list[str] = field(default_factory=list)
    old_jobs: list[tuple[str, str]] = field(default_factory=list)

    def wanted(self, headers: Sequence[Header]) -> Callable[[Header], bool]:
        """Whether a job is one of them, or of the campaign of one; of the newest if all are old."""
        newest = self.sessions or [session for session, _ in self.old_jobs[:1]]
        sessions = campaign.with_campaign(headers, newest)
        jobs = set(self.old_jobs)
        return lambda h: h.session in sessions or (h.session, h.check) in jobs

    def words(self, headers: Sequence[Header]) -> str:
        """Which they are."""
        names = {h.session: h.campaign for h in headers}
        sources: dict[str, None] = {}
        for session in [*self.sessions, *(session for session, _ in self.old_jobs)]:
            name = names.get(session, "")
            sources[f"campaign {name}" if name else f"session {session}"] = None
        if len(sources) == 1:
            return next(iter(sources))
        *others, last = sources
        if (rest := len(sources) - MAX_SOURCES_NAMED) > 0:
            others, last = others[:MAX_SOURCES_NAMED], f"{rest} more"
        return f"the newest answers, of {', '.join(others)} and {last}"


def choose(owed: Mapping[str, Owed], headers: Sequence[Header], read: Read, ages: Ages) -> Chosen:
    """The sessions that answer the criteria. read: gives their samples."""
    chosen = Chosen()
    for one in owed.values():
        one.find_places(headers)
    newest_first = sorted(headers, key=lambda header: header.order, reverse=True)
    for session, jobs in grouped((header.session, header) for header in newest_first).items():
        in_time, late = _who_may(owed.values(), jobs, ages)
        checks = {check for one in (*in_time, *late) for check in one.checks}
        if not checks:
            continue
        found = read(session, checks, _few_of([*in_time, *late]))
        # Each takes what it can, even where one before has made the session count.
        taken = [one.take(found) for one in in_time]
        if any(taken):
            chosen.sessions.append(session)
        too_late = set[str]().union(*(one.checks for one in late if one.take(found)))
        chosen.old_jobs += [(session, check) for check in sorted(too_late)]
    return chosen


def _few_of(owed: Iterable[Owed]) -> set[str] | None:
    """The nodes that are left of all of these; None where one of them needs all samples."""
    left = [one.few for one in owed]
    return None if None in left else set().union(*filter(None, left))


def _who_may(
    owed: Iterable[Owed], jobs: Sequence[Header], ages: Ages
) -> tuple[list[Owed], list[Owed]]:
    """Those that these jobs may answer, in time or too late."""
    in_time, late = [], []
    for one in owed:
        may = [header for header in jobs if one.may_be_answered_by(header)]
        if not one.left or not may:
            continue
        if _in_time(one, may, ages):
            in_time.append(one)
        elif one.looked < BEYOND:
            one.looked += 1
            late.append(one)
    return in_time, late


def _in_time(owed: Owed, jobs: Sequence[Header], ages: Ages) -> bool:
    """Whether one of these jobs is young enough, or cannot be read."""
    limit = owed.criterion.oldest
    if limit is None or any(header.is_unread for header in jobs):
        return True
    return any((age := ages.age(header)) is not None and age <= limit for header in jobs)
