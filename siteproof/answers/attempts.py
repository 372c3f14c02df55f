"""Which attempts answer a question: whether one could, on which unit, and which is the newest.

A question is a criterion, an input of a derived one, or a baseline: a metric of units under rules
on conditions. This is the only place that decides whether an attempt could answer it, and which of
those that could counts.

Whether an answer is too old: by its criterion's `max_age`, or by what has changed since.

Whether the newest attempt of each check ended well on each node, whatever criteria require.

Each check of the catalogue, in each environment, must have ended well on every node on which it has
run, on whichever partition. A failure stands until the same check has ended well on the node, in
the same environment and in the same mode or a stricter one. A run that somebody interrupted, and a
program that is not installed, take nothing back.

An attempt is the sample that decides how a check ended on a node in one job: that of the most
severe status.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from siteproof.record import finding, pair_units
from siteproof.record.clocks import Ages
from siteproof.record.descriptions import Updates
from siteproof.record.evidence_records import Repair
from siteproof.record.finding import BROKEN, WRONG, Finding, Kind, Verdict, most_severe_status
from siteproof.record.manifest import KNOB, OWN
from siteproof.record.pair_units import grouped, of_pairs
from siteproof.record.samples import (
    EMULATED,
    INTERRUPTED,
    LOST,
    NODE_LOST,
    PUBLISHED,
    SWEEP,
    TOOL_MISSING,
    Header,
    Order,
    Sample,
    expected_nodes,
)
from siteproof.record.series import Settings
from siteproof.sites import Baseline, Criterion, Expected, Site
from siteproof.sites.stated import Value
from siteproof.units import count

MIDDLES = ("median", "mean")
ALL_UNITS = ""  # in place of a unit
GPU_MISSING = "it is missing: other GPUs of its node have a value"
PROGRAM = "program"  # condition: which tool measured it
SERVICE = "service"  # condition: which service was used
STEP = "step"  # dimension: of the use of a service
PLANNED = "planned"  # status of an attempt of which only the header is known
ASKED = ("mode", "file_system", SERVICE)  # conditions that a measurement has before it begins
APPLICATION = "application"  # another one, of jobs that run one only


@dataclass(frozen=True)
class _Others(Sample):
    """What a GPU without a value has in a job that has one of another GPU of its node."""


def why_not(criterion: Criterion | Baseline, sample: Sample) -> Finding | None:
    """Why a sample does not answer a criterion; None if it does.

    A measurement that somebody interrupted does not count: an older one answers, if there is one.
    """
    refused = refusal(criterion, sample)
    if refused is None and sample.status == INTERRUPTED:
        return failure(sample)
    return refused


def may_answer(
    criterion: Criterion | Baseline, job: Header, known: Mapping[str, str] | None = None
) -> bool:
    """Whether a job could answer it, as far as its header shows; also one that is yet to run.

    known: other conditions that its samples will have.
    """
    planned = Sample(job, "", criterion.metric, status=PLANNED, dims=known or {})
    return refusal(criterion, planned) is None


def refusal(criterion: Criterion | Baseline, sample: Sample) -> Finding | None:
    """Why a sample could not answer a criterion, with or without a value; None if it could."""
    if sample.dims or sample.own_conditions:
        return _refusal(criterion, sample)
    # It is that of all such samples of the job; the header is kept, so that no other gets its id.
    key = (id(sample.header), sample.metric, sample.status)
    if key not in criterion.kept:
        criterion.kept[key] = (sample.header, _refusal(criterion, sample))
    known: Finding | None = criterion.kept[key][1]
    return known


def _refusal(criterion: Criterion | Baseline, sample: Sample) -> Finding | None:
    have = {**sample.dims, **sample.conditions}
    if PUBLISHED in have:
        details = {"source": have[PUBLISHED], "own": 1, "keeps": "unknown"}
        return finding.of(Kind.PUBLISHED, details, metric=sample.metric)
    if changed := [name for name in _turned(sample) if name not in criterion.conditions]:
        setting = {"setting": changed[0].removeprefix(KNOB)}
        return finding.of(Kind.SETTING_CHANGED, setting, metric=sample.metric)
    if EMULATED in have and EMULATED not in criterion.conditions:
        found = {"condition": EMULATED, "found": have[EMULATED], "expected": "the real thing"}
        return finding.of(Kind.OTHER_CONDITION, found, metric=sample.metric)
    link = have.get(pair_units.LINK, "")
    if criterion.links and (link or sample.status == "ok") and link not in criterion.links:
        links = {"link": link or "no link", "expected": " or ".join(criterion.links)}
        return finding.of(Kind.OTHER_LINK, links)
    if sample.status != "ok":
        return _other_condition(sample, _known_before(criterion, sample), have)
    program = have.get(PROGRAM, "")
    if criterion.programs and program not in criterion.programs:
        expected = ", ".join(criterion.programs)
        programs = {"program": program or "an unknown program", "expected": expected}
        return finding.of(Kind.OTHER_PROGRAM, programs, metric=sample.metric)
    return _other_condition(sample, criterion.conditions, have)


def _known_before(criterion: Criterion | Baseline, sample: Sample) -> Mapping[str, Value]:
    """The rules on what a failed measurement has: the conditions that were requested."""
    of_job = {APPLICATION} & sample.header.conditions.keys()
    return {
        key: rule
        for key, rule in criterion.conditions.items()
        if (key in ASKED or key in sample.dims or key in of_job) and not sample.header.is_unread
    }


def _other_condition(
    sample: Sample, rules: Mapping[str, Value], have: Mapping[str, str]
) -> Finding | None:
    for key, rule in rules.items():
        if key == EMULATED and key not in have:
            continue  # the real thing will do
        if key not in have or not rule.met_by(have[key]):
            found = {"condition": key, "found": have.get(key, "unknown"), "expected": str(rule)}
            return finding.of(Kind.OTHER_CONDITION, found, metric=sample.metric)
    return None


def _turned(sample: Sample) -> list[str]:
    """The settings of the nodes that a tuning sweep had changed; a promise is of the system as is.

    A knob that was varied is a dimension, and may be the machine's own; others were set for all.
    """
    varied = {name: value for name, value in sample.dims.items() if name.startswith(KNOB)}
    fixed = [name for name in sample.conditions if name.startswith(KNOB) and name not in varied]
    return fixed + [name for name, value in varied.items() if value != OWN]


def attempts_at(samples: Iterable[Sample], criterion: Criterion) -> dict[str, list[Sample]]:
    """The samples that may answer for each node, or pair or link, of a criterion; newest first.

    Of the system as a whole, by its name. What was lost as a whole is that of ALL_UNITS. What is of
    a node and of none of its GPUs is that of the node: `of_unit` has both.
    """
    if criterion.subject == "gpu":
        every = list(with_lacking(samples, criterion.metric))
        each = [*every, *_of_other_gpus(every)]
        return _newest_first(grouped((pair_units.unit_of(one), one) for one in each))
    if not criterion.links and not of_system(criterion):
        return by_node(with_lacking(samples, criterion.metric), criterion.metric)
    own = _of_metric(samples, criterion.metric)
    return _newest_first(grouped((unit, one) for one in own for unit in _units(criterion, one)))


def _of_metric(samples: Iterable[Sample], metric: str) -> Iterator[Sample]:
    """The values of a metric, and the failures to measure it."""
    failure = metric.partition(".")[0] + ".*"
    return (sample for sample in samples if sample.metric in (metric, failure))


def attempts_on(unit: str, attempts: Mapping[str, list[Sample]]) -> list[Sample]:
    """Its own, and what nobody knows whether it concerns it; the newest first."""
    own, of_any = of_unit(unit, attempts), attempts.get(ALL_UNITS, [])
    return sorted([*own, *of_any], key=_place_of, reverse=True) if of_any else own


def of_unit(unit: str, attempts: Mapping[str, list[Sample]]) -> list[Sample]:
    """Its own, and of a GPU those of its node that are of no GPU; the newest first."""
    own = attempts.get(unit, [])
    node = pair_units.node_of(unit)
    if node == unit:
        return own
    gpus = dict(zip(pair_units.OF_GPU, pair_units.gpus_of(unit), strict=False))
    # What failed at a GPU failed between it and each other one.
    alone = attempts.get(unit.partition(">")[0], []) if len(gpus) > 1 else []
    there = {_job_and_point(one) for one in own}
    of_node = [
        replace(one, dims={**one.dims, **gpus}) if isinstance(one, _Others) else one
        for one in attempts.get(node, [])
        if not (isinstance(one, _Others) and _job_and_point(one) in there)
    ]
    # A value that names no GPU is of none of them.
    failed = [one for one in (*alone, *of_node) if one.status != "ok"]
    return sorted([*own, *failed], key=_place_of, reverse=True)


def _of_other_gpus(samples: Iterable[Sample]) -> Iterator[Sample]:
    """At each point at which a job has a value of a GPU: what other GPUs of the node have."""
    seen = set[object]()
    for sample in samples:
        if sample.status != "ok" or pair_units.GPU not in sample.dims:
            continue
        key = (sample.node, _job_and_point(sample))
        if key not in seen:
            seen.add(key)
            lacks = {"value": None, "unit": "", "status": "generic", "why": GPU_MISSING}
            yield _Others(**{**vars(pair_units.as_unit(sample)), **lacks, "node": sample.node})


def _job_and_point(sample: Sample) -> object:
    return pair_units.job(sample), pair_units.point(sample, *pair_units.OF_GPU)


def _units(criterion: Criterion, sample: Sample) -> Iterable[str]:
    """What a sample may answer for, of a criterion over links or on the system as a whole."""
    if sample.status == LOST and not sample.node:
        return [ALL_UNITS]
    if criterion.links:
        return pair_units.of_sample(criterion, sample)
    return [] if sample.node or pair_units.of_link(sample) else [sample.header.system]


def by_node(samples: Iterable[Sample], metric: str) -> dict[str, list[Sample]]:
    """Each node's samples of a metric, and its failures to measure it; the newest first."""
    return _newest_first(grouped((one.node, one) for one in _of_metric(samples, metric)))


def with_lacking(samples: Iterable[Sample], metric: str) -> Iterator[Sample]:
    """Those of a metric, and of each node of a job that lacks it, though others have it: lost."""
    jobs: dict[int, tuple[Header, set[str]]] = {}
    for sample in _of_metric(samples, metric):
        _, nodes = jobs.setdefault(id(sample.header), (sample.header, set()))
        nodes.add(sample.node)
        yield sample
    for header, nodes in jobs.values():
        owed = expected_nodes(header.expected) if header.owes_lines and "" not in nodes else set()
        for node in owed - nodes:
            why = f"it has no {metric}, and other nodes have one"
            yield Sample(header, node, metric, status=LOST, why=why)


def of_system(criterion: Criterion) -> bool:
    """Whether it covers the system or a service as a whole, rather than nodes, pairs or links."""
    whole = criterion.subject in ("system", "service") and criterion.scope == "system"
    return whole and not criterion.links


def _newest_first(found: dict[str, list[Sample]]) -> dict[str, list[Sample]]:
    for attempts in found.values():
        attempts.sort(key=_place_of, reverse=True)
    return found


def _place_of(sample: Sample) -> tuple[Order, int]:
    return sample.header.order, sample.trial


def answers(criterion: Criterion, attempts: Sequence[Sample]) -> list[Sample]:
    """What counts of the attempts on a unit: the newest job's, on each file system or service."""
    return [s for own in apart(criterion, attempts) for s in newest_job(criterion, own)]


def newest_job(criterion: Criterion, attempts: Sequence[Sample]) -> list[Sample]:
    """The attempts that answer, of the newest job that has one."""
    answers = (s for s in attempts if not why_not(criterion, s))
    newest = next(answers, None)
    if newest is None:
        return []
    job = pair_units.job(newest)
    return [newest, *(sample for sample in answers if pair_units.job(sample) == job)]


def apart(criterion: Criterion, attempts: Sequence[Sample]) -> list[Sequence[Sample]]:
    """The attempts that count: on each file system or service where a criterion names several, or
    none; else all at once.
    """
    have = [sample.header.conditions for sample in attempts]
    key = _of_job(have)
    rule = criterion.conditions.get(key)
    if not key or (rule and not rule.one_of):
        return [not_taken_back(criterion, attempts)]
    used = [one.get(key, "") for one in have]
    each = []
    for name in (rule.one_of if rule else None) or dict.fromkeys(filter(None, used)):
        may = ("", name)  # what is of no known one may be of each
        own = [sample for sample, of in zip(attempts, used, strict=True) if of in may]
        each.append(not_taken_back(criterion, own))
    return each


def each_place(
    criterion: Criterion, have: Sequence[Mapping[str, str]], there: Collection[str]
) -> list[Criterion]:
    """A criterion on each file system or service by itself, where jobs of its check have several.

    Each is a point of its own, and may have its newest answer in a session of its own. have: the
    conditions of these jobs; there: the file systems and services that the site has.
    """
    key = _of_job(have)
    rule = criterion.conditions.get(key)
    may = (rule.one_of or ()) if rule else there
    names = [name for name in dict.fromkeys(one.get(key, "") for one in have) if name in may]
    rules = ({**criterion.conditions, key: Expected(exact=name)} for name in names)
    return [criterion.like(conditions=one) for one in rules] if len(names) > 1 else []


def _of_job(have: Sequence[Mapping[str, str]]) -> str:
    """By what jobs with these conditions are apart: file system or service; empty: by neither."""
    names = set[str]().union(*have)
    return next((name for name in pair_units.OF_JOB if name in names), "")


def not_taken_back(criterion: Criterion | Baseline, attempts: Sequence[Sample]) -> Sequence[Sample]:
    """The attempts on a unit, the newest first, without those that take no answer back.

    A program that is missing in one partition or environment may be there in another one: what was
    measured there still answers.
    """
    without = set[tuple[str, str]]()
    for number, sample in enumerate(attempts):
        if why_not(criterion, sample):
            continue
        if sample.status != TOOL_MISSING:
            if not without or place(sample) in without:
                return attempts
            newer = [s for s in attempts[:number] if s.status != TOOL_MISSING]
            return [*newer, *attempts[number:]]
        without.add(place(sample))
    return attempts


def place(sample: Sample) -> tuple[str, str]:
    """The partition and the environment in which it was measured."""
    return sample.header.partition, sample.header.environment


def lacking(
    criterion: Criterion, attempts: Sequence[Sample], good: Iterable[Sample]
) -> list[Sample]:
    """The failures at points at which the job of these good ones should have given a value, too."""
    if all(sample.status == "ok" for sample in attempts):
        return []  # as nearly always
    have = [(pair_units.job(s), pair_units.point(s)) for s in good]
    jobs, there = {job for job, _ in have}, {point for _, point in have}
    return [
        sample
        for sample in attempts
        if pair_units.lacks_its_own(sample, there) and pair_units.job(sample) in jobs
        if not refusal(criterion, sample)
    ]


def unanswered(criterion: Criterion, attempts: Sequence[Sample]) -> Finding:
    """Why no attempt answers: the end of the newest, or under what else it was measured.

    Under which conditions it failed matters less than that nothing was measured.
    """
    reason = why_not(criterion, attempts[0]) if attempts else None
    if reason is None:
        return Finding(Kind.NOT_MEASURED, metric=criterion.metric)
    failed = attempts[0].status not in ("ok", LOST) and reason.kind not in (
        Kind.OTHER_LINK,
        Kind.PUBLISHED,
    )
    return failure(attempts[0]) if failed else reason


def failure(sample: Sample) -> Finding:
    """Why a sample has no value; or that its value is wrong. The step of a service is named."""
    kinds = {NODE_LOST: Kind.NODE_LOST, INTERRUPTED: Kind.INTERRUPTED, LOST: Kind.LOST}
    kinds |= dict.fromkeys(WRONG, Kind.WRONG_ANSWER)
    return Finding(
        kinds.get(sample.status, Kind.NO_VALUE),
        check=sample.header.check,
        status=sample.status,
        since="" if sample.header.is_unread else sample.header.time,
        message=": ".join(filter(None, (sample.dims.get(STEP, ""), sample.why))),
    )


HOUR, DAY = timedelta(hours=1), timedelta(days=1)
_UNITS = ((DAY, "day", "d"), (HOUR, "hour", "h"), (timedelta(minutes=1), "minute", "min"))
SOME = 2  # units of which one word is enough: 47 hours, but 2 days


@dataclass(frozen=True)
class Freshness:
    """What decides whether an answer still counts; settings: and with what it is compared."""

    ages: Ages
    updates: Updates | None = None
    settings: Settings | None = None

    def age(self, sample: Sample) -> timedelta | None:
        """How long ago it was measured, at most; None of what is published or of no known time."""
        return None if published(sample) else self.ages.age(sample.header)

    def too_old(
        self, criterion: Criterion, sample: Sample, verdict: Verdict, nodes: Collection[str] = ()
    ) -> Finding | None:
        """Why an answer does not count any more; None if it does.

        verdict: the one that it gives. nodes: those whose changes matter. Where the clock was wrong
        a promise that is kept takes the longest age that it may have, one that is broken the
        shortest.
        """
        if published(sample):
            return None
        limit = criterion.oldest
        answer = None if verdict is Verdict.PASS else str(verdict)
        if self.updates and (other := self.updates.replaced(sample.header, nodes)):
            return finding.of(Kind.REPLACED, {**other._asdict(), "answer": answer})
        if limit is None:
            return None
        age = self.ages.age(sample.header, youngest=verdict in BROKEN)
        if age is None:
            clock = sample.header.time[:16]
            return finding.of(Kind.AGE_UNKNOWN, {"clock": clock, "answer": answer})
        seconds = age.total_seconds()
        if age > limit:
            bounds = {"age": seconds, "limit": limit.total_seconds(), "answer": answer}
            return finding.of(Kind.TOO_OLD, bounds)
        update = self.updates.after(sample.header, nodes) if self.updates else None
        if update:
            changed = {"age": seconds, **update._asdict(), "answer": answer}
            return finding.of(Kind.UPDATED_SINCE, changed)
        return None


def published(sample: Sample) -> bool:
    """Whether others have published it, which has no age here."""
    return sample.header.mode == PUBLISHED or PUBLISHED in sample.own_conditions


def lasting(span: timedelta, other_than: timedelta | None = None) -> str:
    """`30 days`, `5 hours`; in a smaller unit where it would look equal to the other span."""
    for unit, name, _ in _UNITS:
        looks_equal = other_than is not None and span // unit == other_than // unit
        if span >= SOME * unit and not looks_equal:
            return count(span // unit, name)
    return count(span // _UNITS[-1][0], _UNITS[-1][1])


def short(span: timedelta) -> str:
    """`30 d`, `5 h`, `12 min`."""
    for unit, _, sign in _UNITS:
        if span >= SOME * unit:
            return f"{span // unit} {sign}"
    return f"{span // _UNITS[-1][0]} {_UNITS[-1][2]}"


STRICTNESS = ("", "quick", "maintenance", "acceptance")  # of a mode, the least strict first
NO_OUTCOME = (INTERRUPTED, TOOL_MISSING)
RECENT = 10  # sessions of a check in which failures are counted …
FLAPPING = 2  # … and with so many of its own, a node cannot be relied on
SHARED = 3  # nodes of a job that all fail alike accuse the check, or what they share
Tried = tuple[str, str]  # check, environment
# The samples of a job, at least of some nodes.
Read = Callable[[Header, Collection[str]], Sequence[Sample]]


@dataclass(frozen=True)
class SharedFailure(Sample):
    """A failure that all nodes of its job share: no node is condemned by it."""


def standing(site: Site, headers: Iterable[Header], read: Read) -> list[Sample]:
    """The failures that no later success has cleared, the newest first of each check and node."""
    return [
        attempt
        for jobs in _tried(site, headers).values()
        for attempt in _standing(site, jobs, read)
    ]


def gone(site: Site, headers: Iterable[Header]) -> list[str]:
    """The checks with results that are in no catalogue any more: they count for nothing."""
    found = {header.check for header in headers if not (header.is_plain or _is_no_check(header))}
    return sorted(found - {metric.check for metric in site.catalogue.values() if metric.check})


def of_site(site: Site, headers: Iterable[Header]) -> list[Header]:
    """The jobs of the checks that this site still runs, in environments that it still has."""
    return [job for jobs in _tried(site, headers).values() for job in jobs]


def _is_no_check(header: Header) -> bool:
    """Whether it is no attempt on nodes: what others have published, and a sweep."""
    return header.mode == PUBLISHED or SWEEP in header.conditions


def _tried(site: Site, headers: Iterable[Header]) -> Mapping[Tried, list[Header]]:
    """The jobs of each check that this site still runs, the newest first."""
    newest_first = sorted(headers, key=lambda header: header.job_order, reverse=True)
    not_here = set(gone(site, newest_first))
    found: dict[Tried, list[Header]] = {}
    unknown: list[Header] = []  # in which environment
    for header in newest_first:
        partition = site.system.partitions.get(header.partition)
        if partition is None or header.check in not_here or _is_no_check(header):
            continue
        if header.environment in partition.environments:
            found.setdefault((header.check, header.environment), []).append(header)
        elif header.is_unread and not header.environment:
            unknown.append(header)
    for header in unknown:
        _add_unknown(found, header)
    return found


def _add_unknown(found: dict[Tried, list[Header]], header: Header) -> None:
    """Add it to each environment in which its check has run, in the strictest mode there."""
    same = [key for key in found if key[0] == header.check]
    for key in same or [(header.check, "")]:
        jobs = found.setdefault(key, [])
        strictest = max((job.mode for job in jobs), key=_strictness, default="")
        jobs.append(replace(header, mode=strictest))
        jobs.sort(key=lambda job: job.job_order, reverse=True)


def _strictness(mode: str) -> int:
    return STRICTNESS.index(mode)


def _standing(site: Site, jobs: Sequence[Header], read: Read) -> Iterator[Sample]:
    """Those of one check in one environment. A node is looked for in each mode until it is known.

    After an attempt that ended well only stricter modes can have a failure that stands.
    """
    nodes = set(site.system.inventory)
    left = {mode: set(nodes) for mode in {header.mode for header in jobs}}
    for header in jobs:
        own, weaker = left[header.mode], _up_to(left, header.mode)
        wanted = weaker & (expected_nodes(header.expected) or weaker)
        if wanted:
            ended = [a for a in attempts(read(header, wanted)) if a.status not in NO_OUTCOME]
            if failed := [a for a in ended if a.status != "ok" and a.node in own]:
                yield from _marked(failed, read(header, expected_nodes(header.expected) or nodes))
            _strike_off(left, header.mode, ended)


def _up_to(left: Mapping[str, set[str]], mode: str) -> set[str]:
    """The nodes of which an attempt in this mode still matters: a success clears weaker ones."""
    known = (nodes for other, nodes in left.items() if _strictness(other) <= _strictness(mode))
    return set().union(*known)


def _marked(failed: Iterable[Sample], of_job: Iterable[Sample]) -> Iterator[Sample]:
    """The failures of a job, those apart that all of its nodes share."""
    own = {attempt.node for attempt in _of_its_own(attempts(of_job))}
    for one in failed:
        shared = one.status != LOST and one.node not in own
        yield SharedFailure(**vars(one)) if shared else one


def _strike_off(left: Mapping[str, set[str]], mode: str, ended: Iterable[Sample]) -> None:
    """The nodes of which no older attempt matters: in this mode, or also in less strict ones.

    What is lost may have been a failure, too, and clears none.
    """
    known = {attempt.node for attempt in ended if attempt.status != LOST}
    good = {attempt.node for attempt in ended if attempt.status == "ok"}
    for other, nodes in left.items():
        if other == mode:
            nodes -= known
        elif _strictness(other) < _strictness(mode):
            nodes -= good


def of_samples(site: Site, samples: Iterable[Sample]) -> list[Sample]:
    """The failures that stand among the samples of whole jobs."""
    own = {id(of_job[0].header): of_job for of_job in _by_job(samples)}
    headers = [of_job[0].header for of_job in own.values()]
    return standing(site, headers, lambda job, _: own[id(job)])


def _by_job(samples: Iterable[Sample]) -> list[list[Sample]]:
    return list(grouped((_job_of(sample.header), sample) for sample in samples).values())


def _job_of(head: Header) -> tuple[object, ...]:
    return head.check, head.partition, head.environment, head.job_order


def shared(samples: Collection[Sample]) -> set[tuple[object, ...]]:
    """The failures of whole jobs that all of their nodes share: node, check, `job_order`."""
    failed = {_job_of(sample.header) for sample in samples if sample.status != "ok"}
    of_failed = (sample for sample in samples if _job_of(sample.header) in failed)
    jobs = [attempts(of_job) for of_job in _by_job(of_failed)]
    own = {id(one) for tried in jobs for one in _of_its_own(tried)}
    each = (one for tried in jobs for one in tried if one.status != "ok" and id(one) not in own)
    return {(one.node, one.header.check, one.header.job_order) for one in each}


def recent(site: Site, headers: Iterable[Header]) -> list[Header]:
    """The jobs of each check's last sessions."""
    found: list[Header] = []
    for jobs in _tried(site, headers).values():
        sessions = list(dict.fromkeys(job.session for job in jobs))[:RECENT]
        found += [job for job in jobs if job.session in sessions]
    return found


def flapping(samples: Iterable[Sample], repaired: Mapping[str, Repair]) -> dict[str, list[Sample]]:
    """The failures of each node that failed now and then, the oldest first.

    Of each check in each session one of each status.

    samples: of the jobs of `recent`, at least those without a value. repaired: the last repair of
    a node, before which nothing counts.
    """
    of_node: dict[str, dict[tuple[str, str, str], Sample]] = {}
    for of_job in _by_job(samples):
        for attempt in _of_its_own(attempts(of_job)):
            repair = repaired.get(attempt.node)
            if repair is None or repair.is_before(attempt.header):
                key = attempt.header.session, attempt.header.check, attempt.status
                of_node.setdefault(attempt.node, {}).setdefault(key, attempt)
    return {
        node: sorted(failed.values(), key=lambda attempt: attempt.header.job_order)
        for node, failed in of_node.items()
        if len({session for session, *_ in failed}) >= FLAPPING
    }


def _of_its_own(attempts_: Sequence[Sample]) -> Iterator[Sample]:
    """The failures of a job that not all of its nodes share; a wrong answer is always a node's."""
    alike = Counter(attempt.status for attempt in attempts_)
    for attempt in attempts_:
        if attempt.status in ("ok", LOST, *NO_OUTCOME):
            continue
        everybody = max(SHARED, len(expected_nodes(attempt.header.expected)), len(attempts_))
        if attempt.status in WRONG or alike[attempt.status] < everybody:
            yield attempt


def attempts(samples: Iterable[Sample]) -> list[Sample]:
    """The attempts on nodes that the samples of one job are; what concerns a pair is not one."""
    found: dict[str, Sample] = {}
    for sample in samples:
        if sample.node and not of_pairs(sample):
            known = found.setdefault(sample.node, sample)
            if sample.status != known.status:
                worst = most_severe_status([known.status, sample.status])
                found[sample.node] = known if worst == known.status else sample
    return list(found.values())
