"""The rounds of a soak: sessions of a campaign, what each asked of which nodes, and what it got.

A node is under load in a round from the begin of the round to the end of the last job in which it
answered: the wait in the queue counts, and nothing counts in which it did not answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from fractions import Fraction

from ClusterShell.NodeSet import NodeSet

from siteproof import nodesets, units
from siteproof.answers import expected
from siteproof.answers.criterion import judge
from siteproof.availability.definitions import Span
from siteproof.record.clocks import moment_of
from siteproof.record.grouped import grouped
from siteproof.record.pair_units import PEER, ends
from siteproof.record.samples import INTERRUPTED, Header, Sample, expected_nodes, file_name
from siteproof.record.severity import NOT_TRIED, WRONG, Verdict
from siteproof.sites import Criterion, Site

ROUNDS, WITHIN = 6, timedelta(days=1)  # of the same checks, from which on a campaign is a soak


class Failure(StrEnum):
    """The classes of failures."""

    NODE_DOWN = "node down"
    WRONG = "wrong answer"
    BROKE = "job or tool failed"
    BELOW = "below its bound"
    MISSING = "no answer"
    CONTROL = "control daemon lost"
    ROUND = "round without record"


@dataclass(frozen=True)
class Round:
    """A session of the campaign.

    session: Its name.
    begin: When it began.
    end: When its last job ended.
    asked: The nodes that it had to measure.
    answered: Those of them that answered each check that asked them.
    lacking: Checks that most rounds have, and of which this one has no record.
    """

    session: str
    begin: datetime
    end: datetime
    asked: NodeSet
    answered: NodeSet
    lacking: Sequence[str]


@dataclass
class Session:
    """A session while its jobs are read. results: what each check gave on each subject."""

    name: str
    begin: int
    end: int
    checks: set[str] = field(default_factory=set)
    asked: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)
    load: dict[str, int] = field(default_factory=dict)
    results: dict[tuple[str, str], list[Result]] = field(default_factory=dict)


@dataclass(frozen=True)
class Result:
    """kind: the class of the failure; None of a value. at: when the job ended."""

    kind: Failure | None
    at: int
    why: str = ""


def is_soak(jobs: Sequence[Header]) -> bool:
    """Whether ROUNDS sessions of the same checks began within a day, with a node in common."""
    alike: dict[frozenset[str], list[tuple[datetime, frozenset[str]]]] = {}
    for own in grouped((job.session, job) for job in jobs).values():
        nodes = frozenset[str]().union(*(expected_nodes(job.expected) for job in own))
        checks = frozenset(job.check for job in own)
        alike.setdefault(checks, []).append((moment(min(map(began, own))), nodes))
    for rounds in alike.values():
        rounds.sort(key=lambda one: one[0])
        for at in range(len(rounds) - ROUNDS + 1):
            some = rounds[at : at + ROUNDS]
            common = frozenset.intersection(*(nodes for _, nodes in some))
            if common and some[-1][0] - some[0][0] <= WITHIN:
                return True
    return False


def times_of(jobs: Sequence[Header]) -> dict[str, Span]:
    """Begin and end of each session, in their order, whatever the clocks say.

    None begins before the one before it, so that a clock that was set back makes no time longer.
    """
    found: dict[str, Span] = {}
    latest = 0
    in_order = sorted(jobs, key=lambda job: job.job_order)
    for name, own in grouped((job.session, job) for job in in_order).items():
        end = max(map(ended, own))
        latest = max(min(map(began, own)), min(latest, end))
        found[name] = latest, end
    return found


def began(job: Header) -> int:
    """When the session began, by its name, but not after its job; without a time, as the job."""
    return ended(job) if job.began is None else min(int(job.began), ended(job))


def ended(job: Header) -> int:
    """When it ended, in seconds since 1970."""
    return int(moment_of(job).timestamp())


def sessions_of(jobs: Sequence[Header], found: Sequence[Sample]) -> list[Session]:
    """The rounds in their order, with the results of their jobs."""
    of_job = grouped((_file(sample.header), sample) for sample in found)
    times = times_of(jobs)
    rounds: dict[str, Session] = {}
    for job in sorted(jobs, key=lambda job: job.job_order):
        one = rounds.setdefault(job.session, Session(job.session, *times[job.session]))
        one.checks.add(job.check)
        _add_job(one, job, of_job.get(_file(job), ()))
    return list(rounds.values())


def _file(job: Header) -> tuple[str, str]:
    return job.partition, file_name(job)


def _add_job(one: Session, job: Header, found: Sequence[Sample]) -> None:
    """What a job asked and got. A value of no single node is an answer of all its nodes."""
    asked = set(expected_nodes(job.expected))
    answered, missing, at = set[str](), set[str](), ended(job)
    for sample in found:
        own = {sample.node, sample.dims.get(PEER, "")} - {""}
        asked |= own
        (missing if sample.status in NOT_TRIED else answered).update(own or asked)
        if sample.status != INTERRUPTED:
            result = Result(_class(sample.status), at, sample.why)
            subject = sample.node or sample.header.system
            one.results.setdefault((subject, job.check), []).append(result)
    one.asked |= asked
    one.missing |= missing | (asked - answered)
    one.load |= {node: max(at, one.load.get(node, at)) for node in answered}


def _class(status: str) -> Failure | None:
    classes = dict.fromkeys(WRONG, Failure.WRONG) | dict.fromkeys(NOT_TRIED, Failure.MISSING)
    return None if status == "ok" else classes.get(status, Failure.BROKE)


def add_below(site: Site, one: Session, found: Sequence[Sample], today: date) -> int:
    """Add the values that miss a criterion in this round alone; how many values were judged."""
    judged = 0
    for name, criterion, own in _asked(site, found):
        check = own[0].header.check
        units, baselines, excused = expected.covered(site, name, criterion, own, today)
        for unit in judge(name, criterion, own, units, baselines, excused).nodes:
            if unit.value is None or unit.sample is None:
                continue
            judged += 1
            if unit.verdict is Verdict.FAIL:
                value = _in_unit(unit.value, unit.sample.unit, criterion)
                why = f"{name}: {value}, {criterion.required} required"
                result = Result(Failure.BELOW, ended(unit.sample.header), why)
                one.results.setdefault((ends(unit.node)[0], check), []).append(result)
    return judged


def _in_unit(value: Fraction, unit: str, criterion: Criterion) -> str:
    """A value in the unit of the bound; of a share of a fact, in its own."""
    bound = criterion.bound
    own = bound.quantity.unit if bound and not bound.fact else unit
    return units.with_unit(f"{float(units.convert(value, unit, own)):.6g}", own)


def _asked(
    site: Site, found: Sequence[Sample]
) -> Iterator[tuple[str, Criterion, Sequence[Sample]]]:
    """The criteria that a check answers by itself, each with the samples of its check, if any."""
    of_check = grouped((sample.header.check, sample) for sample in found)
    for name, criterion in site.criteria.items():
        own = of_check.get(site.catalogue[criterion.metric].check or "")
        if own and not criterion.report_only and criterion.answered_by != "evidence":
            yield name, criterion, own


def mix_of(rounds: Sequence[Session]) -> set[str]:
    """The checks that more than half of the rounds have."""
    counts = Counter(check for one in rounds for check in one.checks)
    return {check for check, count in counts.items() if 2 * count > len(rounds)}


def round_of(one: Session, mix: set[str]) -> Round:
    """The round as it is shown. mix: the checks that it should have."""
    asked, answered = nodesets.of(one.asked), nodesets.of(one.asked - one.missing)
    lacking = sorted(mix - one.checks)
    return Round(one.name, moment(one.begin), moment(one.end), asked, answered, lacking)


def moment(at: int) -> datetime:
    """Seconds since 1970 as a time in UTC."""
    return datetime.fromtimestamp(at, UTC)
