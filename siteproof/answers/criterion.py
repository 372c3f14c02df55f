"""Samples against criteria: whether the system meets them, and which nodes miss them.

A criterion is answered by the newest sample of each expected node that meets its conditions and
comes from a program that may answer it; values are rounded by the rule of the criterion.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from statistics import median

from siteproof.answers import published_values as published
from siteproof.answers.attempts import (
    MIDDLES,
    PROGRAM,
    Freshness,
    answers,
    apart,
    attempts_at,
    attempts_on,
    failure,
    lacking,
    newest_job,
    of_unit,
    refusal,
    unanswered,
    why_not,
)
from siteproof.answers.expected import Excuses
from siteproof.errors import UserError
from siteproof.record import finding, pair_units
from siteproof.record.finding import (
    RANKS,
    UNDECIDED,
    WRONG,
    Finding,
    Kind,
    Verdict,
    most_severe,
    note,
    of_status,
)
from siteproof.record.pair_units import FROM, TO, Point
from siteproof.record.samples import (
    INTERRUPTED,
    NODE_LOST,
    PUBLISHED,
    TOOL_MISSING,
    Sample,
    expected_nodes,
)
from siteproof.record.series import Settings
from siteproof.record.series import settings as settings_of
from siteproof.sites import Baseline, Criterion, Hardware, Waiver
from siteproof.sites.promise import SUM
from siteproof.units import UNITS, Limit, convert

Limits = tuple[Limit | None, Limit | None]
TOGETHER: Mapping[str, Callable[[Sequence[Fraction]], Fraction]] = {  # by the scope
    "median": lambda values: Fraction(median(values)),
    "mean": lambda values: sum(values, Fraction(0)) / len(values),
    SUM: lambda values: sum(values, Fraction(0)),
}


@dataclass(frozen=True)
class NodeVerdict:
    """One node and one criterion. value: in its sample's unit. facts: with which it was judged.

    findings: why the verdict is what it is. unwaived: what it were without the waiver. too_old: it
    was answered, and that does not count any more. interrupted: a newer session that was
    interrupted, and so took nothing back. points: the verdict at each point, if there are several,
    the worst first.
    trials: whose median the value is, where it is one; members: the units whose median, mean or sum
    it is, or the systems of which it is one.
    """

    node: str
    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    sample: Sample | None = None
    value: Fraction | None = None
    facts: Hardware | None = None
    by_rounding: bool = False
    waived: bool = False
    unwaived: Verdict | None = None
    too_old: bool = False
    interrupted: str = ""
    points: Sequence[NodeVerdict] = ()
    trials: tuple[Sample, ...] = ()
    members: tuple[NodeVerdict, ...] = ()

    def rounded(self, criterion: Criterion) -> Fraction | None:
        """The value as it is compared: in the bound's unit, rounded. None: it was not judged."""
        if self.facts is None or self.value is None or self.sample is None:
            return None
        return criterion.rounded(self.value, self.sample.unit, self.facts)

    @property
    def point(self) -> str:
        """The point of its value or failure, as point_of has it."""
        return self.point_of(self)

    def point_of(self, one: NodeVerdict) -> str:
        """What of a point other points of the unit do not share: `block 4096`, `n1>n2`."""
        known = [dict(pair_units.point(other.sample)) for other in self.points if other.sample]
        own = dict(pair_units.point(one.sample)) if one.sample else {}
        is_pair = {FROM, TO} <= own.keys() and bool(known)
        pair = [f"{own.pop(FROM)}>{own.pop(TO)}"] if is_pair else []
        rest = (f"{k} {v}" for k, v in own.items() if any(other.get(k) != v for other in known))
        return ", ".join([*pair, *rest])

    @property
    def lost(self) -> bool:
        """Whether what may have answered it cannot be read."""
        return any(why.kind is Kind.LOST for why in self.findings)

    @property
    def never_waived(self) -> bool:
        """Whether no waiver covers it."""
        return any(why.kind in finding.NEVER_WAIVED for why in self.findings)


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
    def units(self) -> int:
        """How many units it has verdicts or values of, however many points."""
        return len({n.node for n in self.nodes})

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
    explain: Callable[[Sample], tuple[Finding, ...]] | None = None,
) -> CriterionVerdict:
    """The verdict on one criterion whose metric some check yields: the most severe one on any node.

    samples: all samples in question, in any order. expected: the hardware of each expected node;
    where the criterion names links, of each unit of siteproof.record.pair_units, such as `a>b`;
    where it covers the system as a whole, of the system's name.
    baselines: those of the metric that cover a node, by node. waived: nodes that may miss it,
    each with its waivers; what they miss is SKIP, and the others decide. fresh: decides which
    answers are too old; without it no answer is. lacks: why a unit has no value, or under "" why
    none has, where that is known. explain: why a value misses its bound, as far as that shows.
    """
    if criterion.report_only:
        why = (Finding(Kind.REPORTED_ONLY, message=criterion.report_only),)
        nodes = sorted(reported(criterion, samples, expected), key=lambda n: (n.value or 0, n.node))
        result = CriterionVerdict(name, criterion, Verdict.SKIP, why, nodes, excused=True)
        return _with_age(result, nodes, fresh)
    if not expected:
        missing = note("no pair was measured" if criterion.links else "no node has this role")
        return not_here(CriterionVerdict(name, criterion, Verdict.INCOMPLETE, (missing,)), ())
    found = [
        _with_bound(name, n, criterion, explain)
        for n in units(criterion, samples, expected, baselines, fresh)
    ]
    if lacks:
        found = [_lacking_input(n, lacks) for n in found]
    result = _judge_all(name, criterion, expected, found, baselines or {}, waived or {})
    result = _with_published(result, samples, expected)
    if criterion.not_here:
        attempts = attempts_at(samples, criterion)
        current = expected.keys() - {n.node for n in found if n.too_old}
        result = not_here(result, [s for unit in current for s in of_unit(unit, attempts)])
    return _with_age(result, found, fresh)


def units(
    criterion: Criterion,
    samples: Collection[Sample],
    expected: Mapping[str, Hardware],
    baselines: Mapping[str, Sequence[Baseline]] | None = None,
    fresh: Freshness | None = None,
) -> list[NodeVerdict]:
    """The verdict on each expected node or unit by itself, in their order."""
    attempts = attempts_at(samples, criterion)
    alone = _Alone(criterion, fresh)
    found = []
    for node, facts in expected.items():
        own_baselines = (baselines or {}).get(node, ())
        tried = attempts_on(node, attempts)
        if alone.decides(tried):
            each = [alone.judged(node, facts, tried[0], own_baselines)]
        else:
            each = _judge_tried(criterion, node, facts, tried, own_baselines, fresh)
        if fresh and fresh.settings and own_baselines:
            each = [_undecided(criterion, one, own_baselines, fresh.settings) for one in each]
        found.append(_worst_point(criterion, each))
    return found


def _judge_tried(
    criterion: Criterion,
    unit: str,
    facts: Hardware,
    tried: Sequence[Sample],
    baselines: Sequence[Baseline],
    fresh: Freshness | None,
) -> list[NodeVerdict]:
    """The verdicts on a unit, at each of its points."""
    each = [
        _too_old(criterion, _noted(criterion, one, own), fresh)
        for own in apart(criterion, tried)
        for one in _judge_points(criterion, unit, facts, own, baselines)
    ]
    return _all_or_none_skip(each)


class _Alone:
    """The units of which one value is all that was tried, as of nearly all nodes of a fleet.

    Whether such a value answers, and whether it is too old, is found once for a job: only its
    rounding and its comparison with the bounds are its own.
    """

    def __init__(self, criterion: Criterion, fresh: Freshness | None) -> None:
        self._criterion, self._fresh = criterion, fresh
        self._answers: dict[int, bool] = {}  # by the header's id: the attempts keep each header
        self._counts: dict[tuple[int, Verdict], bool] = {}

    def decides(self, attempts: Sequence[Sample]) -> bool:
        """Whether that is so, and it answers by itself."""
        if len(attempts) != 1:
            return False
        sample, criterion = attempts[0], self._criterion
        if sample.dims or sample.own_conditions or not isinstance(sample.value, Decimal):
            return False
        job = id(sample.header)
        if job not in self._answers:
            self._answers[job] = (
                (criterion.trials or 1) == 1
                and apart(criterion, attempts) == [attempts]
                and why_not(criterion, sample) is None
            )
        return self._answers[job]

    def judged(
        self, unit: str, facts: Hardware, sample: Sample, baselines: Sequence[Baseline]
    ) -> NodeVerdict:
        """The verdict on such a unit."""
        result = _judge_trials(self._criterion, unit, facts, [sample], baselines)
        if self._fresh is None:
            return result
        job = id(sample.header), result.verdict
        if job not in self._counts:  # of all nodes of the job: what changed on none of them
            why = self._fresh.too_old(self._criterion, sample, result.verdict)
            self._counts[job] = why is None
        if self._counts[job] and sample.node in expected_nodes(sample.header.expected):
            return result
        return _too_old(self._criterion, result, self._fresh)


def _worst_point(criterion: Criterion, each: Sequence[NodeVerdict]) -> NodeVerdict:
    """The verdict that decides, with those at the other points."""
    if len(each) == 1:
        return each[0]
    each = sorted(each, key=lambda n: _badness(criterion, n))
    return replace(each[0], points=each)


def _undecided(
    criterion: Criterion, result: NodeVerdict, baselines: Sequence[Baseline], settings: Settings
) -> NodeVerdict:
    """INCOMPLETE where a baseline is there, and the value has settings that nobody accepted."""
    sample = result.sample
    if sample is None or result.verdict not in (Verdict.PASS, Verdict.REGRESSED):
        return result
    own = [b for b in baselines if (b.scope in MIDDLES) == (criterion.scope in MIDDLES)]
    fitting = [b for b in own if not why_not(b, sample)]
    others = [found for b in own if (found := _settings_of(b, sample))]
    if not (fitting or others):
        return result
    nodes = pair_units.ends(result.node) if sample.node else ()
    changed = settings.changed(sample, nodes)
    if _is_known(changed, fitting) or not changed and settings.is_accepted(sample, nodes):
        return result
    why = finding.other_setting(changed or others[0], metric=criterion.metric)
    return NodeVerdict(result.node, Verdict.INCOMPLETE, (why,), sample)


def _is_known(changed: Mapping[str, str], fitting: Iterable[Baseline]) -> bool:
    """Whether a baseline that is met by the conditions is for the settings that changed."""
    return any(changed.keys() <= {*b.conditions, *(b.programs and [PROGRAM])} for b in fitting)


def _settings_of(baseline: Baseline, sample: Sample) -> dict[str, str]:
    """The settings that a baseline is for, and a sample has not; none if more keeps them apart."""
    why = why_not(baseline, sample)
    if why is None or why.kind not in (Kind.OTHER_PROGRAM, Kind.OTHER_CONDITION):
        return {}
    have = {**sample.dims, **sample.conditions}
    rules = {k: r for k, r in baseline.conditions.items() if not r.met_by(have.get(k, ""))}
    found = {key: f"{rule} -> {have.get(key)}" for key, rule in rules.items()}
    if why.kind is Kind.OTHER_PROGRAM:
        found[PROGRAM] = f"{' or '.join(baseline.programs)} -> {have.get(PROGRAM)}"
    settings = settings_of(sample.conditions).keys() - sample.dims.keys()
    return found if found.keys() <= settings else {}


def reported(
    criterion: Criterion, samples: Collection[Sample], expected: Collection[str]
) -> Iterator[NodeVerdict]:
    """The values of what decides nothing: at each point the median of its newest job's trials."""
    attempts = attempts_at(samples, criterion)
    for unit in expected:
        good = [s for s in answers(criterion, of_unit(unit, attempts)) if s.status == "ok"]
        of_points = pair_units.by_point(good).values()
        each = [_reported(criterion, unit, trials) for trials in of_points]
        yield from (replace(one, points=each) if len(each) > 1 else one for one in each)


def _reported(criterion: Criterion, unit: str, trials: Sequence[Sample]) -> NodeVerdict:
    if isinstance(trials[0].value, Decimal):
        why = Finding(Kind.REPORTED_ONLY, message=criterion.report_only or "")
        middle, nearest = middle_trial(trials)
        return NodeVerdict(unit, Verdict.SKIP, (why,), nearest, middle, trials=tuple(trials))
    return NodeVerdict(unit, Verdict.SKIP, (_found(trials[0]),), trials[0])


def _found(sample: Sample) -> Finding:
    """A value that is a text."""
    return note("found {value}", metric=sample.metric, value=str(sample.value))


def _lacking_input(node: NodeVerdict, lacks: Mapping[str, Finding]) -> NodeVerdict:
    """A unit that was not measured, with the reason if it is known; or not at all of its points."""
    why = lacks.get(node.node)
    if node.sample is None:
        why = why or lacks.get("")
        return replace(node, findings=(why,)) if why else node
    if why is None or node.verdict is not Verdict.PASS:
        return node
    return NodeVerdict(node.node, Verdict.INCOMPLETE, (why,), points=(node,))


def _too_old(criterion: Criterion, result: NodeVerdict, fresh: Freshness | None) -> NodeVerdict:
    """An answer that does not count any more is INCOMPLETE, and no value.

    A waiver must name it if it was a wrong one.
    """
    decided = result.verdict not in (Verdict.INCOMPLETE, Verdict.SKIP)
    status = result.sample.status if result.sample else ""
    why = outdated(criterion, result, fresh) if decided or status == NODE_LOST else None
    if why is None:
        return result
    return NodeVerdict(
        result.node,
        Verdict.INCOMPLETE,
        (replace(why, metric=criterion.metric, status=status if status in WRONG else ""),),
        result.sample,
        too_old=True,
        interrupted=result.interrupted,
    )


def outdated(criterion: Criterion, unit: NodeVerdict, fresh: Freshness | None) -> Finding | None:
    """Why the value of a unit does not count any more; None if it does, or if there is none."""
    if not fresh or unit.sample is None:
        return None
    alone = bool(unit.sample.node)  # else all nodes of its job matter
    nodes = pair_units.ends(unit.node) if alone else ()
    return fresh.too_old(criterion, unit.sample, unit.verdict, nodes)


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
    samples = (node.sample for node in nodes if node.sample)
    of_jobs = {(id(one.header), PUBLISHED in one.own_conditions): one for one in samples}
    ages = map(fresh.age, of_jobs.values())
    age = max((one for one in ages if one is not None), default=None)
    if age is None:
        return result
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
        middles = [
            replace(
                _judge_middle(criterion, at_point, expected, baselines), members=tuple(at_point)
            )
            for at_point in _at_each_point(criterion, deciding)
        ]
        deciding = [_with_bound(name, _worst_point(criterion, middles), criterion)]
    worst = most_severe(node.verdict for node in deciding) or Verdict.SKIP
    nodes = sorted([*deciding, *excused], key=lambda node: _badness(criterion, node))
    findings, others = _commonest(nodes, worst)
    return CriterionVerdict(name, criterion, worst, findings, nodes, others, not deciding)


def _all_or_none_skip(nodes: Sequence[NodeVerdict]) -> list[NodeVerdict]:
    """Where a check can run on some nodes or at some points, the others must have an answer."""
    if all(node.verdict is Verdict.SKIP for node in nodes):
        return [*nodes]
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
        own = of_unit(node.node, attempts)
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
    return NodeVerdict(node.node, Verdict.FAIL, (why,), sample, Fraction(sample.number), facts)


def _waive(node: NodeVerdict, waivers: Excuses) -> NodeVerdict:
    """SKIP for what a node misses where a waiver holds; PASS stays PASS.

    A wrong answer needs a waiver that names its status.
    """
    status = node.sample.status if node.sample else ""
    holding = [w for w in waivers if status not in WRONG or status in w[1].wrong_answers]
    if not holding or node.never_waived or node.verdict is Verdict.PASS:
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


def _without_value(criterion: Criterion, unit: str, attempts: Sequence[Sample]) -> NodeVerdict:
    """The verdict on a unit from its attempts, the newest first; none of them is a good answer."""
    newest = next((s for s in attempts if not why_not(criterion, s)), None)
    if newest is None:
        return NodeVerdict(unit, Verdict.INCOMPLETE, (unanswered(criterion, attempts),))
    known = None if newest.header.is_unread else newest
    return NodeVerdict(unit, of_status(newest.status), (failure(newest),), known)


def _judge_points(
    criterion: Criterion,
    unit: str,
    facts: Hardware,
    attempts: Sequence[Sample],
    baselines: Iterable[Baseline],
) -> list[NodeVerdict]:
    """The verdicts of the newest job: at each point the median of its trials.

    A failed trial among good ones is a missing trial, unless it was a wrong answer; where all
    failed, the most severe failure of each point counts.
    """
    job = newest_job(criterion, attempts)
    good = [s for s in job if s.status == "ok"]
    failed = sorted((s for s in job if s.status != "ok"), key=lambda s: RANKS[of_status(s.status)])
    wrong = bool(failed) and failed[0].status in WRONG
    if not good or wrong:
        of_points: list[Sequence[Sample]] = [*pair_units.by_point(failed).values()] or [attempts]
        return [_without_value(criterion, unit, own) for own in of_points]
    there = pair_units.by_point(good).values()
    found = [_judge_trials(criterion, unit, facts, trials, baselines) for trials in there]
    # A missing tool counts where others are there.
    lacks = [_without_value(criterion, unit, [s]) for s in lacking(criterion, attempts, good)]
    return [*found, *map(_incomplete_not_skip, lacks)]


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
        met = [criterion.met(str(s.value), s.unit, facts) for s in trials]
        verdict = Verdict.PASS if all(met) else Verdict.FAIL
        first = trials[met.index(all(met))]  # that decides
        return NodeVerdict(unit, verdict, (_found(first),), first, trials=tuple(trials))
    middle, nearest = middle_trial(trials)
    baselines = [b for b in baselines if b.scope not in MIDDLES]
    return _judge_value(criterion, unit, middle, nearest, facts, baselines, tuple(trials))


def middle_trial(trials: Sequence[Sample]) -> tuple[Fraction, Sample]:
    """The median, in the unit of the trial nearest to it, and that trial."""
    if len(trials) == 1:
        return Fraction(trials[0].number), trials[0]
    unit = trials[0].unit
    numbers = [_number_in(unit, sample, Fraction(sample.number)) for sample in trials]
    middle = Fraction(median(numbers))
    _, at = min((abs(number - middle), at) for at, number in enumerate(numbers))
    nearest = trials[at]
    return (middle if nearest.unit == unit else convert(middle, unit, nearest.unit)), nearest


def _number_in(unit: str, sample: Sample, value: Fraction) -> Fraction:
    """The value of a sample in a unit: programs print one metric in several."""
    return value if sample.unit == unit else convert(value, sample.unit, unit)


def _judge_value(
    criterion: Criterion,
    name: str,
    value: Fraction,
    sample: Sample,
    facts: Hardware,
    baselines: Iterable[Baseline],
    trials: tuple[Sample, ...] = (),
) -> NodeVerdict:
    """One value, of a node or of all of them, against the criterion and then its baselines."""
    if not within(value, _limits(criterion, sample.unit, facts)):
        return NodeVerdict(name, Verdict.FAIL, (), sample, value, facts, trials=trials)
    verdict = Verdict.PASS
    why: tuple[Finding, ...] = ()
    for baseline in baselines:
        if not why_not(baseline, sample) and not baseline.met(value, sample.unit, facts):
            verdict = Verdict.REGRESSED
            why = (Finding(Kind.BELOW_BASELINE, metric=sample.metric, bound=str(baseline.bound)),)
    by_rounding = criterion.step is not None and not published.meets_raw(
        criterion, value, sample.unit, facts
    )
    return NodeVerdict(name, verdict, why, sample, value, facts, by_rounding, trials=trials)


def _limits(criterion: Criterion, unit: str, facts: Hardware) -> Limits:
    """The lowest and the highest value of this unit that meet the bound once they are rounded.

    They are the same for a whole fleet, so that no value of it has to be rounded. Raises UserError.
    """
    if criterion.bound is None:
        raise UserError(criterion.metric, f"{criterion.kind} has no bound that is a number")
    key = unit, facts if criterion.bound.fact else None
    if key not in criterion.kept:
        criterion.kept[key] = criterion.limits(unit, facts)
    found: Limits = criterion.kept[key]
    return found


def within(value: Fraction, limits: Limits) -> bool:
    """Whether a value before any rounding is within both limits; None is open."""
    low, high = limits
    return (low is None or value > low.value or (low.inclusive and value == low.value)) and (
        high is None or value < high.value or (high.inclusive and value == high.value)
    )


def _at_each_point(
    criterion: Criterion, nodes: Sequence[NodeVerdict]
) -> Iterator[Sequence[NodeVerdict]]:
    """The verdicts on all nodes at one point after the other; a node may lack its value there."""
    # The worst comes last, so that it stands for all that have no value.
    at = [{_point_of(one): one for one in reversed(node.points or (node,))} for node in nodes]
    points = dict.fromkeys(point for of_node in at for point in of_node if point is not None)
    lack = (Finding(Kind.NOT_MEASURED, metric=criterion.metric),)
    for point in points or [None]:
        yield [
            of_node.get(point, of_node.get(None, NodeVerdict(n.node, Verdict.INCOMPLETE, lack)))
            for n, of_node in zip(nodes, at, strict=True)
        ]


def _point_of(node: NodeVerdict) -> Point | None:
    """The point of its value; None without one."""
    if node.sample is None or node.value is None:
        return None
    return pair_units.point(node.sample, *pair_units.OF_GPU)


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
        lack = _no_value_of(criterion, worst, len(missing) - 1)
        return NodeVerdict(name, worst.verdict, (lack, *worst.findings), worst.sample)
    node, sample = nodes[0].node, nodes[0].sample
    assert sample is not None
    values = [
        _number_in(sample.unit, n.sample, n.value)
        for n in nodes
        if n.sample and n.value is not None
    ]
    middle = TOGETHER[criterion.scope](values)
    own = [b for b in baselines.get(node, ()) if b.scope == criterion.scope]
    return _judge_value(criterion, name, middle, sample, expected[node], own)


def of_members(
    name: str, criterion: Criterion, system: str, each: Mapping[str, CriterionVerdict]
) -> CriterionVerdict:
    """The verdict on a system that consists of others, from that on each by itself, by `over`.

    So many must meet it: the last one of these decides, and its value is that of the system.
    """
    members = _all_or_none_skip([_member(key, result) for key, result in each.items()])
    if criterion.over == SUM and not criterion.report_only:
        facts = {one.node: Hardware() for one in members}
        found = _judge_middle(criterion.like(scope=SUM), members, facts, {})
    else:
        found = _last_of(criterion, members)
    found = replace(found, node=system, members=tuple(members))
    found = _with_bound(name, replace(found, points=()), criterion)
    excused = all(result.excused for result in each.values())
    return CriterionVerdict(
        *(name, criterion, found.verdict, found.findings, [found]),
        excused=excused,
        oldest=min((r.oldest for r in each.values() if r.oldest), default=None),
        age=max((r.age for r in each.values() if r.age is not None), default=None),
    )


def _member(name: str, result: CriterionVerdict) -> NodeVerdict:
    """The verdict on a member; of several points the worst is the first."""
    if result.nodes:
        return result.nodes[0]
    return NodeVerdict(name, result.verdict, result.findings)


def _last_of(criterion: Criterion, members: Sequence[NodeVerdict]) -> NodeVerdict:
    """The last one of so many members that must meet it, the best first."""
    ranked = sorted(members, key=lambda one: _badness(criterion, one))
    last = ranked[-criterion.needed_of(len(ranked))]
    if last.value is not None or last.verdict is Verdict.SKIP:
        return last
    return replace(last, findings=(_no_value_of(criterion, last), *last.findings))


def _no_value_of(criterion: Criterion, worst: NodeVerdict, more: int = 0) -> Finding:
    text = "no value of {node}{more: and %s more}"
    return note(text, metric=criterion.metric, node=worst.node, more=more)


def _with_bound(
    name: str,
    node: NodeVerdict,
    criterion: Criterion,
    explain: Callable[[Sample], tuple[Finding, ...]] | None = None,
) -> NodeVerdict:
    """With the value, the bound or the baseline that it misses, and why; if it misses one."""
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
        reasons = explain(sample) if explain else ()
        return replace(node, findings=(missed, *node.findings, *reasons))
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
