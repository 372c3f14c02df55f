"""Samples against criteria: whether the system meets them, and which nodes miss them.

A criterion is answered by the newest sample of each expected node that meets its conditions and
comes from a program that may answer it; values are rounded by the rule of the criterion.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from statistics import median
from typing import TYPE_CHECKING

from siteproof.judge import published_values as published
from siteproof.judge.severity import RANKS, UNDECIDED, WRONG, Verdict, most_severe, of_status
from siteproof.record import finding, pair_units
from siteproof.record.finding import Finding, Kind
from siteproof.record.point import KNOB, OWN
from siteproof.record.samples import (
    EMULATED,
    INTERRUPTED,
    LOST,
    PUBLISHED,
    TOOL_MISSING,
    Sample,
    expected_nodes,
)
from siteproof.record.series import VARIABLE
from siteproof.units import UNITS, convert

if TYPE_CHECKING:
    from siteproof.judge.age import Freshness
    from siteproof.record.samples import Header, Order
    from siteproof.sites import Baseline, Criterion, Hardware, Waiver
    from siteproof.sites.system import Value

Excuses = Sequence[tuple[str, "Waiver"]]  # waivers with their keys in the site
MIDDLES = ("median", "mean")
ALL_UNITS = ""  # in place of a unit
SERVICE = "service"  # condition: which service was used
ASKED = ("mode", "file_system", SERVICE)  # conditions that a measurement has before it begins


@dataclass(frozen=True)
class NodeVerdict:
    """One node and one criterion. value: in the metric's unit; rounded: in the bound's.

    findings: why the verdict is what it is. unwaived: what it were without the waiver. too_old: it
    was answered, and that does not count any more. interrupted: a newer session that was
    interrupted, and so took nothing back.
    """

    node: str
    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    sample: Sample | None = None
    value: Fraction | None = None
    rounded: Fraction | None = None
    by_rounding: bool = False
    waived: bool = False
    unwaived: Verdict | None = None
    too_old: bool = False
    interrupted: str = ""

    @property
    def lost(self) -> bool:
        """Whether what may have answered it cannot be read."""
        return any(why.kind is Kind.LOST for why in self.findings)


@dataclass(frozen=True)
class CriterionVerdict:
    """One criterion. nodes: from the worst on, those that fail first.

    findings: why, as most of the nodes that decide have it; others: how many reasons there are
    besides.

    oldest: when the oldest of its answers was measured, and how long ago that is; None without one.

    excused: a SKIP that decides nothing: the criterion has `report_only` or `not_here`, or waivers
    excuse all of its nodes.
    """

    id: str
    criterion: Criterion
    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    nodes: Sequence[NodeVerdict] = field(default_factory=tuple)
    others: int = 0
    excused: bool = False
    oldest: datetime | None = None
    age: timedelta | None = None

    @property
    def ok(self) -> int:
        """How many nodes meet the criterion."""
        return sum(n.verdict in (Verdict.PASS, Verdict.REGRESSED) for n in self.nodes)

    @property
    def worst(self) -> NodeVerdict | None:
        """The worst measured node that is not waived; None if there is none."""
        measured = [n for n in self.nodes if n.value is not None and not n.waived]
        return measured[0] if measured else None

    @property
    def by_rounding(self) -> bool:
        """Whether it passes only because the contract rounds."""
        return self.verdict in (Verdict.PASS, Verdict.REGRESSED) and any(
            n.by_rounding for n in self.nodes
        )


def judge(
    name: str,
    criterion: Criterion,
    samples: Collection[Sample],
    expected: Mapping[str, Hardware],
    baselines: Mapping[str, Sequence[Baseline]] | None = None,
    waived: Mapping[str, Excuses] | None = None,
    fresh: Freshness | None = None,
    lacks: Mapping[str, Finding] | None = None,
) -> CriterionVerdict:
    """The verdict on one criterion whose metric some check yields: the most severe one on any node.

    samples: all samples in question, in any order. expected: the hardware of each expected node;
    where the criterion names links, of each unit of siteproof.record.pair_units, such as `a>b`;
    where it covers the system as a whole, of the system's name.
    baselines: those of the metric that cover a node, by node. waived: nodes that may miss it,
    each with its waivers; what they miss is SKIP, and the others decide. fresh: decides which
    answers are too old; without it no answer is. lacks: why a unit has no value, or under "" why
    none has, where that is known.
    """
    if criterion.report_only:
        why = (Finding(Kind.REPORTED_ONLY, message=criterion.report_only),)
        nodes = sorted(reported(criterion, samples, expected), key=lambda n: (n.value or 0, n.node))
        result = CriterionVerdict(name, criterion, Verdict.SKIP, why, nodes, excused=True)
        return _with_age(result, nodes, fresh)
    if not expected:
        missing = Finding(Kind.NO_PAIR if criterion.links else Kind.ROLE_EMPTY)
        return not_here(CriterionVerdict(name, criterion, Verdict.INCOMPLETE, (missing,)), ())
    found = [
        _with_bound(name, n, criterion)
        for n in units(criterion, samples, expected, baselines, fresh)
    ]
    found = [_lacking_input(n, lacks or {}) for n in found]
    result = _judge_all(name, criterion, expected, found, baselines or {}, waived or {})
    result = _with_published(result, samples, expected)
    attempts = attempts_at(samples, criterion) if criterion.not_here else {}
    outdated = {n.node for n in found if n.too_old}
    tried = [s for unit in expected if unit not in outdated for s in attempts.get(unit, ())]
    return _with_age(not_here(result, tried), found, fresh)


def units(
    criterion: Criterion,
    samples: Collection[Sample],
    expected: Mapping[str, Hardware],
    baselines: Mapping[str, Sequence[Baseline]] | None = None,
    fresh: Freshness | None = None,
) -> list[NodeVerdict]:
    """The verdict on each expected node or unit by itself, in their order."""
    attempts = attempts_at(samples, criterion)
    found = []
    for node, facts in expected.items():
        own = not_taken_back(criterion, _attempts_on(node, attempts))
        result = judge_unit(criterion, node, facts, own, (baselines or {}).get(node, ()))
        found.append(_too_old(criterion, _noted(criterion, result, own), fresh))
    return found


def _attempts_on(unit: str, attempts: Mapping[str, list[Sample]]) -> list[Sample]:
    """Its own, and what nobody knows whether it concerns it; the newest first."""
    own, of_any = attempts.get(unit, []), attempts.get(ALL_UNITS, [])
    return sorted([*own, *of_any], key=_place_of, reverse=True) if of_any else own


def reported(
    criterion: Criterion, samples: Collection[Sample], expected: Collection[str]
) -> Iterator[NodeVerdict]:
    """The values of what decides nothing: of each unit the median of its newest job's trials."""
    attempts = attempts_at(samples, criterion)
    for unit in expected:
        own = not_taken_back(criterion, attempts.get(unit, ()))
        counted = [s for s in own if not why_not(criterion, s)]
        newest = _newest_job(counted)
        good = [s for s in newest if isinstance(s.value, Decimal)]
        texts = [s for s in newest if isinstance(s.value, str)]
        if good:
            middle, nearest = _middle_trial(good)
            why = Finding(Kind.REPORTED_ONLY, message=criterion.report_only or "")
            yield NodeVerdict(unit, Verdict.SKIP, (why,), nearest, middle)
        elif texts:
            why = Finding(Kind.TEXT, metric=criterion.metric, value=str(texts[0].value))
            yield NodeVerdict(unit, Verdict.SKIP, (why,), texts[0])


def _newest_job(samples: Sequence[Sample]) -> list[Sample]:
    """Those of the job that measured the first of them."""
    return [s for s in samples if pair_units.job(s) == pair_units.job(samples[0])]


def _lacking_input(node: NodeVerdict, lacks: Mapping[str, Finding]) -> NodeVerdict:
    """A unit that was not measured, with the reason if it is known."""
    why = lacks.get(node.node) or lacks.get("")
    return replace(node, findings=(why,)) if why and node.sample is None else node


def _too_old(criterion: Criterion, result: NodeVerdict, fresh: Freshness | None) -> NodeVerdict:
    """An answer that does not count any more is INCOMPLETE, and no value."""
    answered = result.sample is not None and result.verdict not in (
        Verdict.INCOMPLETE,
        Verdict.SKIP,
    )
    if not fresh or not answered or result.sample is None:
        return result
    alone = bool(result.sample.node)  # else all nodes of its job matter
    nodes = pair_units.ends(result.node) if alone else ()
    why = fresh.too_old(criterion, result.sample, result.verdict, nodes)
    if why is None:
        return result
    return NodeVerdict(
        result.node,
        Verdict.INCOMPLETE,
        (replace(why, metric=criterion.metric),),
        result.sample,
        too_old=True,
        interrupted=result.interrupted,
    )


def _noted(criterion: Criterion, result: NodeVerdict, attempts: Sequence[Sample]) -> NodeVerdict:
    """The result with the newer session that was interrupted, where an older answer counts."""
    newest = next((s for s in attempts if not refusal(criterion, s)), None)
    if newest is None or newest.status != INTERRUPTED or result.sample is None:
        return result
    if pair_units.job(newest) <= pair_units.job(result.sample):
        return result
    return replace(result, interrupted=newest.header.session)


def _with_age(
    result: CriterionVerdict, nodes: Iterable[NodeVerdict], fresh: Freshness | None
) -> CriterionVerdict:
    """The verdict with the age of its oldest answer."""
    if fresh is None:
        return result
    answers = [n.sample for n in nodes if n.sample]
    ages = [age for sample in answers if (age := fresh.age(sample)) is not None]
    if not ages:
        return result
    age = max(ages)
    return replace(result, oldest=fresh.ages.now - age, age=age)


def _judge_all(
    name: str,
    criterion: Criterion,
    expected: Mapping[str, Hardware],
    nodes: list[NodeVerdict],
    baselines: Mapping[str, Sequence[Baseline]],
    waived: Mapping[str, Excuses],
) -> CriterionVerdict:
    excused, deciding = _waive_all(_all_or_none_skip(nodes), waived)
    if criterion.scope in MIDDLES and deciding:
        middle = _judge_middle(criterion, deciding, expected, baselines)
        deciding = [_with_bound(name, middle, criterion)]
    worst = most_severe(node.verdict for node in deciding) or Verdict.SKIP
    nodes = sorted([*deciding, *excused], key=lambda node: _badness(criterion, node))
    findings, others = _commonest(nodes, worst)
    return CriterionVerdict(name, criterion, worst, findings, nodes, others, not deciding)


def _all_or_none_skip(nodes: Sequence[NodeVerdict]) -> Sequence[NodeVerdict]:
    """Where a check can run on some nodes, the others must have an answer, too."""
    if all(node.verdict is Verdict.SKIP for node in nodes):
        return nodes
    return [_incomplete_not_skip(node) for node in nodes]


def _waive_all(
    nodes: Iterable[NodeVerdict], waived: Mapping[str, Excuses]
) -> tuple[list[NodeVerdict], list[NodeVerdict]]:
    """The nodes that a waiver excuses, and those that decide."""
    judged = [_waive(node, waived.get(node.node, ())) for node in nodes]
    return [n for n in judged if n.waived], [n for n in judged if not n.waived]


def _incomplete_not_skip(node: NodeVerdict) -> NodeVerdict:
    skipped = node.verdict is Verdict.SKIP
    return replace(node, verdict=Verdict.INCOMPLETE) if skipped else node


def _with_published(
    result: CriterionVerdict, samples: Collection[Sample], expected: Mapping[str, Hardware]
) -> CriterionVerdict:
    """The verdict with what others have published, where no measurement answers."""
    if not any(PUBLISHED in sample.own_conditions for sample in samples):
        return result
    criterion = result.criterion
    attempts = attempts_at(samples, criterion)
    of_all = published.newest_of_all(samples, criterion)

    def with_published(node: NodeVerdict) -> NodeVerdict:
        own = attempts.get(node.node)
        sample = own[0] if own else of_all
        unanswered = node.node in expected and node.sample is None and not node.waived
        if not unanswered or sample is None or PUBLISHED not in sample.own_conditions:
            return node
        node = _published_node(criterion, node, sample, expected[node.node])
        return _with_bound(result.id, node, criterion)

    nodes = sorted(map(with_published, result.nodes), key=lambda node: _badness(criterion, node))
    measured = any(node.sample for node in nodes)
    if of_all and result.verdict is Verdict.INCOMPLETE and not measured:
        why, misses = published.judged(criterion, of_all, published.facts_of(expected))
        # Which node misses it is not published, so this counts against no node.
        verdict = Verdict.FAIL if misses else Verdict.INCOMPLETE
        return replace(result, verdict=verdict, findings=(why,), nodes=nodes, others=0)
    if any(node.verdict is Verdict.FAIL and not node.waived for node in nodes):
        result = replace(result, verdict=Verdict.FAIL)
    findings, others = _commonest(nodes, result.verdict)
    return replace(result, findings=findings, nodes=nodes, others=others)


def _published_node(
    criterion: Criterion, node: NodeVerdict, sample: Sample, facts: Hardware
) -> NodeVerdict:
    """A node that was not measured: FAIL only where its own published value misses."""
    why, misses = published.judged(criterion, sample, [facts])
    if not (misses and published.own(criterion, sample)):
        return replace(node, findings=(why,))
    value = Fraction(sample.number)
    rounded = criterion.rounded(value, sample.unit, facts)
    return NodeVerdict(node.node, Verdict.FAIL, (why,), sample, value, rounded)


def _waive(node: NodeVerdict, waivers: Excuses) -> NodeVerdict:
    """SKIP for what a node misses where a waiver holds; PASS stays PASS.

    A wrong answer needs a waiver that names its status.
    """
    status = node.sample.status if node.sample else ""
    holding = [w for w in waivers if status not in WRONG or status in w[1].wrong_answers]
    if not holding or node.lost or node.verdict is Verdict.PASS:
        return node
    excuse = waiver_finding(*holding[-1])
    return replace(
        node, verdict=Verdict.SKIP, findings=(excuse,), waived=True, unwaived=node.verdict
    )


def waiver_finding(key: str, waiver: Waiver) -> Finding:
    """The findings of waivers: problem, owner, and until when each holds."""
    return finding.of(
        Kind.WAIVED,
        {
            "problem": waiver.problem,
            "owner": waiver.owner,
            "until": waiver.expires.isoformat(),
            "ticket": waiver.ticket,
        },
        waived_by=key,
    )


def not_here(result: CriterionVerdict, attempts: Iterable[Sample]) -> CriterionVerdict:
    """An excused SKIP where the criterion has `not_here`, and no attempt contradicts it.

    attempts: the samples of its nodes; one that could have answered decides as anywhere.
    """
    criterion = result.criterion
    if (
        not criterion.not_here
        or result.verdict not in UNDECIDED
        or result.excused
        or any(s.status != TOOL_MISSING and not why_not(criterion, s) for s in attempts)
    ):
        return result
    why = (Finding(Kind.NOT_HERE, message=criterion.not_here),)
    nodes = [
        node if node.waived else replace(node, verdict=Verdict.SKIP, findings=why)
        for node in result.nodes
    ]
    return replace(result, verdict=Verdict.SKIP, findings=why, others=0, nodes=nodes, excused=True)


def by_node(samples: Iterable[Sample], metric: str) -> dict[str, list[Sample]]:
    """Each node's samples of a metric, and its failures to measure it; the newest first."""
    failure = metric.partition(".")[0] + ".*"
    found: dict[str, list[Sample]] = {}
    for sample in samples:
        if sample.metric in (metric, failure):
            found.setdefault(sample.node, []).append(sample)
    return _newest_first(found)


def _with_lacking(samples: Iterable[Sample], metric: str) -> Iterator[Sample]:
    """Those of a metric, and of each node of a job that lacks it, though others have it: lost."""
    failure = metric.partition(".")[0] + ".*"
    jobs: dict[int, tuple[Header, set[str]]] = {}
    for sample in samples:
        if sample.metric in (metric, failure):
            _, nodes = jobs.setdefault(id(sample.header), (sample.header, set()))
            nodes.add(sample.node)
            yield sample
    for header, nodes in jobs.values():
        owed = expected_nodes(header.expected) if header.owes_lines and "" not in nodes else set()
        for node in owed - nodes:
            why = f"there is no {metric} of it, and of others there is"
            yield Sample(header, node, metric, status=LOST, why=why)


def of_system(criterion: Criterion) -> bool:
    """Whether it covers the system or a service as a whole, rather than nodes, pairs or links."""
    whole = criterion.subject in ("system", "service") and criterion.scope == "system"
    return whole and not criterion.links


def attempts_at(samples: Iterable[Sample], criterion: Criterion) -> dict[str, list[Sample]]:
    """The samples that may answer for each node, or pair or link, of a criterion; newest first.

    Of the system as a whole, by its name. What was lost as a whole is that of ALL_UNITS.
    """
    if not criterion.links and not of_system(criterion):
        return by_node(_with_lacking(samples, criterion.metric), criterion.metric)
    failure = criterion.metric.partition(".")[0] + ".*"
    found: dict[str, list[Sample]] = {}
    for sample in samples:
        if sample.metric in (criterion.metric, failure):
            of_any = sample.status == LOST and not sample.node
            for unit in [ALL_UNITS] if of_any else _units(criterion, sample):
                found.setdefault(unit, []).append(sample)
    return _newest_first(found)


def _units(criterion: Criterion, sample: Sample) -> Iterable[str]:
    """What a sample may answer for, of a criterion over links or on the system as a whole."""
    if criterion.links:
        return pair_units.of_sample(criterion, sample)
    return [] if sample.node or pair_units.of_link(sample) else [sample.header.system]


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


def _newest_first(found: dict[str, list[Sample]]) -> dict[str, list[Sample]]:
    for attempts in found.values():
        attempts.sort(key=_place_of, reverse=True)
    return found


def _place_of(sample: Sample) -> tuple[Order, int]:
    return sample.header.order, sample.trial


def judge_node(
    criterion: Criterion,
    unit: str,
    facts: Hardware,
    attempts: Sequence[Sample],
    baselines: Iterable[Baseline] = (),
) -> NodeVerdict:
    """The verdict on one node from its attempts, the newest first."""
    newest = next((s for s in attempts if not why_not(criterion, s)), None)
    if newest is None:
        return NodeVerdict(unit, Verdict.INCOMPLETE, (_unanswered(criterion, attempts),))
    if newest.status != "ok":
        known = None if newest.header.is_unread else newest
        return NodeVerdict(unit, of_status(newest.status), (failure(newest),), known)
    return _compare(criterion, unit, facts, newest, baselines)


def _unanswered(criterion: Criterion, attempts: Sequence[Sample]) -> Finding:
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
    """Why a sample has no value; or that its value is wrong."""
    kinds = {"node_lost": Kind.NODE_LOST, INTERRUPTED: Kind.INTERRUPTED, LOST: Kind.LOST}
    kinds |= dict.fromkeys(WRONG, Kind.WRONG_ANSWER)
    return Finding(
        kinds.get(sample.status, Kind.NO_VALUE),
        check=sample.header.check,
        status=sample.status,
        since="" if sample.header.is_unread else sample.header.time,
        message=sample.why,
    )


def judge_unit(
    criterion: Criterion,
    unit: str,
    facts: Hardware,
    attempts: Sequence[Sample],
    baselines: Iterable[Baseline] = (),
) -> NodeVerdict:
    """The verdict on a pair, a link or the system; of several services the worst one's."""
    each = _by_service(criterion, attempts)
    found = [_judge_newest(criterion, unit, facts, own, baselines) for own in each]
    return min(found, key=lambda n: _badness(criterion, n))


def _by_service(criterion: Criterion, attempts: Sequence[Sample]) -> Sequence[Sequence[Sample]]:
    """The attempts at each service where a criterion names several, or none; else all at once."""
    rule = criterion.conditions.get(SERVICE)
    # Of the header: what follows from several services has the condition, and no service.
    used = [sample.header.conditions.get(SERVICE, "") for sample in attempts]
    if (rule and not rule.one_of) or not any(used):
        return [attempts]
    of_service: dict[str, list[Sample]] = {name: [] for name in (rule.one_of if rule else ()) or ()}
    for name, sample in zip(used, attempts, strict=True):
        if not rule or name in of_service:
            of_service.setdefault(name, []).append(sample)
    return list(of_service.values())


def _judge_newest(
    criterion: Criterion,
    unit: str,
    facts: Hardware,
    attempts: Sequence[Sample],
    baselines: Iterable[Baseline],
) -> NodeVerdict:
    """The verdict of the newest job: the median of its trials.

    A failed trial among good ones is a missing trial, unless it was a wrong answer; where all
    failed, the most severe failure counts. Values that differ in another dimension, such as a size,
    are judged each by itself, and each is required; the worst decides.
    """
    answers = [s for s in attempts if not why_not(criterion, s)]
    job = _newest_job(answers)
    good = [s for s in job if s.status == "ok"]
    failed = sorted((s for s in job if s.status != "ok"), key=lambda s: RANKS[of_status(s.status)])
    wrong = bool(failed) and failed[0].status in WRONG
    if not good or wrong:
        return judge_node(criterion, unit, facts, failed or attempts)
    alike: dict[str, list[Sample]] = {}
    for sample in good:
        alike.setdefault(pair_units.dimensions(sample), []).append(sample)
    found = [_judge_trials(criterion, unit, facts, t, baselines) for t in alike.values()]
    found += _all_lacking(criterion, unit, facts, attempts, alike)
    return min(found, key=lambda n: _badness(criterion, n))


def _all_lacking(
    criterion: Criterion,
    unit: str,
    facts: Hardware,
    attempts: Sequence[Sample],
    alike: Mapping[str, Sequence[Sample]],
) -> Iterator[NodeVerdict]:
    """The kinds of value that the job of these good ones should have given, too.

    alike: the good samples by their other dimensions, such as a size.
    """
    this_job = pair_units.job(next(iter(alike.values()))[0])
    for sample in attempts:
        in_this_job = pair_units.job(sample) == this_job
        lacking = in_this_job and pair_units.lacks_its_own(sample, alike)
        if lacking and not refusal(criterion, sample):
            yield _lacking(criterion, unit, facts, sample)


def _lacking(criterion: Criterion, unit: str, facts: Hardware, sample: Sample) -> NodeVerdict:
    """One kind of value is missing where others are there: a missing tool counts, too."""
    return _incomplete_not_skip(judge_node(criterion, unit, facts, [sample]))


def _judge_trials(
    criterion: Criterion,
    unit: str,
    facts: Hardware,
    trials: Sequence[Sample],
    baselines: Iterable[Baseline],
) -> NodeVerdict:
    required = criterion.trials or 1
    if len(trials) < required:
        details = {"trials": len(trials), "expected": required}
        why = finding.of(Kind.TRIALS_MISSING, details, metric=criterion.metric)
        return NodeVerdict(unit, Verdict.INCOMPLETE, (why,), trials[0])
    if not isinstance(trials[0].value, Decimal):
        each = [_compare(criterion, unit, facts, s, ()) for s in trials]
        return min(each, key=lambda n: RANKS[n.verdict])
    middle, nearest = _middle_trial(trials)
    baselines = [b for b in baselines if b.scope not in MIDDLES]
    return _judge_value(criterion, unit, middle, nearest, facts, baselines)


def _middle_trial(trials: Sequence[Sample]) -> tuple[Fraction, Sample]:
    """The median, in the unit of the trial nearest to it, and that trial."""
    unit = trials[0].unit
    numbers = [_number_in(unit, sample, Fraction(sample.number)) for sample in trials]
    middle = Fraction(median(numbers))
    _, at = min((abs(number - middle), at) for at, number in enumerate(numbers))
    nearest = trials[at]
    return (middle if nearest.unit == unit else convert(middle, unit, nearest.unit)), nearest


def _number_in(unit: str, sample: Sample, value: Fraction) -> Fraction:
    """The value of a sample in a unit: programs print one metric in several."""
    return value if sample.unit == unit else convert(value, sample.unit, unit)


def why_not(criterion: Criterion | Baseline, sample: Sample) -> Finding | None:
    """Why a sample does not answer a criterion; None if it does.

    A measurement that somebody interrupted does not count: an older one answers, if there is one.
    """
    refused = refusal(criterion, sample)
    if refused is None and sample.status == INTERRUPTED:
        return failure(sample)
    return refused


def refusal(criterion: Criterion | Baseline, sample: Sample) -> Finding | None:
    """Why a sample could not answer a criterion, with or without a value; None if it could."""
    if sample.dims or sample.own_conditions:
        return _refusal(criterion, sample)
    # It is that of all such samples of the job; the header is kept, so that no other gets its id.
    key = (id(sample.header), sample.metric, sample.status)
    if key not in criterion.refusals:
        criterion.refusals[key] = (sample.header, _refusal(criterion, sample))
    known: Finding | None = criterion.refusals[key][1]
    return known


def _refusal(criterion: Criterion | Baseline, sample: Sample) -> Finding | None:
    have = {**sample.dims, **sample.conditions}
    if PUBLISHED in have:
        details = {"source": have[PUBLISHED], "own": 1, "keeps": "unknown"}
        return finding.of(Kind.PUBLISHED, details, metric=sample.metric)
    changed = [name for name in _turned(sample) if name not in criterion.conditions]
    if changed:
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
    program = have.get("program", "")
    if criterion.programs and program not in criterion.programs:
        expected = ", ".join(criterion.programs)
        programs = {"program": program or "an unknown program", "expected": expected}
        return finding.of(Kind.OTHER_PROGRAM, programs, metric=sample.metric)
    return _other_condition(sample, criterion.conditions, have)


def _known_before(criterion: Criterion | Baseline, sample: Sample) -> Mapping[str, Value]:
    """The rules on what a failed measurement has: the conditions that were requested."""
    return {
        key: rule
        for key, rule in criterion.conditions.items()
        if (key in ASKED or key in sample.dims) and not sample.header.is_unread
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


def _compare(
    criterion: Criterion, node: str, facts: Hardware, sample: Sample, baselines: Iterable[Baseline]
) -> NodeVerdict:
    value = sample.value
    if not isinstance(value, Decimal):
        verdict = Verdict.PASS if criterion.met(str(value), sample.unit, facts) else Verdict.FAIL
        why = Finding(Kind.TEXT, metric=criterion.metric, value=str(value))
        return NodeVerdict(node, verdict, (why,), sample)
    baselines = [b for b in baselines if b.scope not in MIDDLES]
    return _judge_value(criterion, node, Fraction(value), sample, facts, baselines)


def _judge_value(
    criterion: Criterion,
    name: str,
    value: Fraction,
    sample: Sample,
    facts: Hardware,
    baselines: Iterable[Baseline],
) -> NodeVerdict:
    """One value, of a node or of all of them, against the criterion and then its baselines."""
    rounded = criterion.rounded(value, sample.unit, facts)
    if not criterion.met_by(rounded):
        return NodeVerdict(name, Verdict.FAIL, _explained(sample), sample, value, rounded)
    verdict = Verdict.PASS
    why: tuple[Finding, ...] = ()
    for baseline in baselines:
        if not why_not(baseline, sample) and not baseline.met(value, sample.unit, facts):
            verdict = Verdict.REGRESSED
            short = Finding(Kind.BELOW_BASELINE, metric=sample.metric, bound=str(baseline.bound))
            why = (short,)
    by_rounding = criterion.step is not None and not published.meets_raw(
        criterion, value, sample.unit, facts
    )
    return NodeVerdict(name, verdict, why, sample, value, rounded, by_rounding)


def _explained(sample: Sample) -> tuple[Finding, ...]:
    """The steps of a service that failed, or the variables that controlled a library."""
    if sample.why and SERVICE in sample.conditions:
        return (Finding(Kind.STEPS_FAILED, metric=sample.metric, message=sample.why),)
    names = sorted(name for name in sample.conditions if name.startswith(VARIABLE))
    if not names:
        return ()
    shown = " ".join(f"{n.removeprefix(VARIABLE)}={sample.conditions[n]}" for n in names)
    return (finding.of(Kind.STEERED, {"variables": shown}, metric=sample.metric),)


def _judge_middle(
    criterion: Criterion,
    nodes: Sequence[NodeVerdict],
    expected: Mapping[str, Hardware],
    baselines: Mapping[str, Sequence[Baseline]],
) -> NodeVerdict:
    """Median or mean of all nodes, once every one of them is measured."""
    name = f"{criterion.scope} of {len(nodes)}"
    if missing := [n for n in nodes if n.value is None]:
        worst = min(missing, key=lambda n: RANKS[n.verdict])
        details = {"node": worst.node, "more": len(missing) - 1}
        lack = finding.of(Kind.MEMBERS_MISSING, details, metric=criterion.metric)
        return NodeVerdict(name, worst.verdict, (lack, *worst.findings), worst.sample)
    node, sample = nodes[0].node, nodes[0].sample
    assert sample is not None
    values = [
        _number_in(sample.unit, n.sample, n.value)
        for n in nodes
        if n.sample and n.value is not None
    ]
    middle = median(values) if criterion.scope == "median" else sum(values) / len(values)
    own = [b for b in baselines.get(node, ()) if b.scope == criterion.scope]
    return _judge_value(criterion, name, Fraction(middle), sample, expected[node], own)


def _with_bound(name: str, node: NodeVerdict, criterion: Criterion) -> NodeVerdict:
    """With the value and the bound or the baseline that it misses, if it misses one."""
    sample = node.sample
    misses = node.verdict in (Verdict.FAIL, Verdict.REGRESSED)
    if not misses or sample is None or sample.status != "ok":
        return node
    value = str(sample.value)
    if node.value is not None and node.value != Fraction(sample.number):
        value = f"{float(node.value):.12g}"  # of several trials or nodes
    missed = Finding(
        Kind.MISSES_BOUND,
        subject=node.node,
        check=sample.header.check,
        metric=criterion.metric,
        criterion=name,
        value=value,
        unit="" if sample.unit == "text" else sample.unit,
        bound=criterion.required,
        since=sample.header.time,
    )
    if node.verdict is Verdict.FAIL:
        return replace(node, findings=(missed, *node.findings))
    findings = (
        replace(missed, kind=why.kind, bound=why.bound) if why.kind is Kind.BELOW_BASELINE else why
        for why in node.findings
    )
    return replace(node, findings=tuple(findings))


def _badness(criterion: Criterion, node: NodeVerdict) -> tuple[int, float, Fraction, str]:
    value = node.value or Fraction(0)
    if node.sample and node.sample.unit in UNITS:  # programs print one metric in several units
        value *= UNITS[node.sample.unit][1]
    signed = -value if criterion.at_most else value
    # Nearly all floats differ, and are compared in no time.
    return (RANKS[node.verdict], float(signed), signed, node.node)


def _commonest(nodes: Sequence[NodeVerdict], verdict: Verdict) -> tuple[tuple[Finding, ...], int]:
    """The reasons that most of the nodes with this verdict share, and how many others there are.

    Of answers that are too old that of the oldest. That a bound is missed counts as a reason only
    where there is no other.
    """
    counts: Counter[tuple[object, ...]] = Counter()
    example: dict[tuple[object, ...], tuple[Finding, ...]] = {}
    kept = verdict in (Verdict.PASS, Verdict.SKIP)  # what is not kept has reasons of its own
    for node in nodes:
        if node.findings and (node.verdict is verdict or kept and node.waived):
            reason = tuple(map(_kind_of_reason, node.findings))
            reason = tuple(found for found in reason if found.kind is not Kind.MISSES_BOUND)
            counts[reason] += 1
            known = example.setdefault(reason, node.findings)
            example[reason] = max(known, node.findings, key=_age)
    if set(counts) - {()}:
        del counts[()]
    if not counts:
        return (), 0
    most, _ = counts.most_common(1)[0]
    return example[most], len(counts) - 1


def _kind_of_reason(found: Finding) -> Finding:
    """The same reason of a sample of another time, node or check, or of a whole check."""
    others = tuple((name, details) for name, details in found.details if name != "age")
    if found.kind is Kind.BELOW_BASELINE:
        found = replace(found, subject="", value="")
    return replace(found, since="", check="", metric="", details=others)


def _age(findings: Sequence[Finding]) -> float:
    """How many seconds ago it was measured; 0 where that does not matter."""
    return max(found.number("age") for found in findings)
