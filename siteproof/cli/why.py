"""siteproof why: Explain a criterion's or a node's verdict from its samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import median
from typing import TYPE_CHECKING, Any

import click

from siteproof import errors, nodesets
from siteproof.analysis.slow_nodes import Slow, State
from siteproof.answers.attempts import of_unit, why_not
from siteproof.answers.criterion import CriterionVerdict, NodeVerdict, outdated
from siteproof.cli.gate_answer import print_in_slurm, with_remark
from siteproof.cli.shared import (
    by_subject,
    json_option,
    print_answer,
    print_text,
    print_wrapped,
    which_answers,
)
from siteproof.errors import ExitCode, UserError
from siteproof.export import documents
from siteproof.export.documents import Answer, Time, dumps, same
from siteproof.record.finding import Finding, Verdict, exit_code
from siteproof.record.pair_units import LINK, PEER, ends, grouped, is_gpu
from siteproof.record.samples import Sample
from siteproof.sites import Criterion
from siteproof.units import count, with_unit
from siteproof.verdict.derived.given import DerivedSample
from siteproof.verdict.judgement import Judgement, judge_system
from siteproof.verdict.tally import Tally
from siteproof.wording import verdicts as wording
from siteproof.wording.findings import fulls, sentence
from siteproof.wording.in_bounds_unit import Shown
from siteproof.wording.tallies import members
from siteproof.wording.verdicts import age, bound, heading, measure, number, own_command, value

if TYPE_CHECKING:
    from siteproof.nodes.states import NodeReport


@dataclass(frozen=True)
class InputAnswer:
    """A sample from which a derived value follows.

    metric: Its metric.
    node: The node, or the sender of a pair; empty of a link and of the system.
    dims: Its dimensions, such as peer and link.
    session: The session that measured it.
    job: The job that measured it.
    value: The value as printed by the tool.
    unit: The unit of value.
    """

    metric: str
    node: str
    dims: Mapping[str, str]
    session: str
    job: str
    value: str | None
    unit: str


@dataclass(frozen=True)
class SampleAnswer:
    """A sample that could answer a criterion.

    criterion: The criterion that it could answer.
    node: The node or pair.
    time: When its job ended.
    session: The session that measured it.
    job: The job that measured it.
    status: ok, or why it has no value.
    value: The value as printed by the tool; null without one.
    unit: The unit of value.
    conditions: What it was measured under.
    refused: Why it does not count; null if it does.
    follows: How a derived value follows from its inputs, in words; only of a derived value.
    inputs: The samples from which a derived value follows, the oldest first; only of a derived
        value.
    """

    criterion: str
    node: str
    time: Time
    session: str
    job: str
    status: str
    value: str | None
    unit: str
    conditions: Mapping[str, str]
    refused: Finding | None
    follows: str | None = None
    inputs: Sequence[InputAnswer] | None = None


@dataclass(frozen=True)
class Why(Answer):
    """A criterion, a node or a pair, explained: 'siteproof why SUBJECT --json'.

    exit_code: What the command ends with, as for 'siteproof verdict'; of a node that meets all
        criteria, or has none, as for 'siteproof nodes'.
    subject: The criterion, node or pair that was named.
    criteria: The criterion, or all criteria of the node or pair; 'nodes' has those that the subject
        selects.
    samples: The samples that could answer, the newest of each node first.
    findings: Why the verdicts are what they are.
    state: The state of the node, as 'siteproof nodes' has it; only of a node.
    state_findings: Why the node is in its state, the most severe first; only of a node.
    """

    subject: str
    criteria: Sequence[documents.CriterionAnswer]
    samples: Sequence[SampleAnswer]
    findings: Sequence[Finding]
    state: str | None = None
    state_findings: Sequence[Finding] | None = None


MAX_PAIRS = 8  # of a node in many pairs, the worst are explained …
MAX_UNITS = 60  # … and of a criterion on many pairs or GPUs
MAX_POINTS = 6  # of a unit, besides the worst
MAX_INPUTS = 12  # lines of values from which a derived value follows …
MAX_TRIALS = 12  # … and values in each
Found = tuple[CriterionVerdict, NodeVerdict]  # a criterion, and one of its nodes or pairs


@click.command()
@click.argument("subject", metavar="CRITERION|NODE|PAIR", shell_complete=by_subject)
@which_answers
@json_option(Why)
def why(subject: str, system: str, since: str, campaign: str, as_of: str, form: str) -> None:
    """Explain the verdict on a criterion, a node or a pair of nodes from its samples.

    The exit code is that of 'siteproof verdict', for this criterion, node or pair; of a node that
    meets all its criteria, or has none, it is that of 'siteproof nodes', for this node.

    \b
    siteproof why JS-4.1.1-HPL
    siteproof why node003
    siteproof why 'node003>login1'
    """
    judged = judge_system(system, since=since, name=campaign, as_of=as_of, whole=True)
    of_criterion = [result for result in judged.verdicts if result.id == subject]
    found = [
        (result, unit)
        for result in of_criterion or judged.verdicts
        for unit in result.nodes
        if of_criterion or _is_about(unit.node, subject)
    ]
    pairs = {} if of_criterion else _without_criterion(judged, subject)
    if not (of_criterion or found or pairs or judged.site.role_of(subject)):
        raise _unknown(judged, subject)
    node = None if of_criterion else _report(judged, subject)
    code = _code(of_criterion, found, node)
    if form:
        click.echo(dumps(_answer(judged, subject, code, of_criterion, found, node)))
    elif of_criterion:
        _criterion(judged, of_criterion[0])
    else:
        _node(judged, subject, found, node, pairs)
    raise SystemExit(code)


def _code(
    of_criterion: Sequence[CriterionVerdict], found: Sequence[Found], node: NodeReport | None
) -> ExitCode:
    """That of the verdicts that count; if all are PASS, or there are none, of the node's state."""
    counted = [result.verdict for result in of_criterion if not result.excused]
    if not of_criterion:
        counted = [unit.verdict for r, unit in found if not (r.excused or unit.waived)]
    if node and set(counted) <= {Verdict.PASS}:
        return documents.nodes_exit_code([node])
    return exit_code(counted)


def _answer(
    judged: Judgement,
    subject: str,
    code: int,
    of_criterion: Sequence[CriterionVerdict],
    found: Sequence[Found],
    node: NodeReport | None,
) -> Why:
    """The answer for programs: the criteria, with the nodes or pairs that the subject selects."""
    results = {result.id: result for result in (*of_criterion, *(r for r, _ in found))}
    criteria = [
        replace(result, nodes=[n for r, n in found if r.id == name])
        for name, result in results.items()
    ]
    findings = [why for result in of_criterion for why in result.findings]
    findings += [why for _, unit in found for why in unit.findings]
    return Why(
        *(judged.site.system.system, judged.chosen, code, subject),
        criteria=[documents.criterion(judged, result) for result in criteria],
        samples=_samples(judged, found),
        findings=list(dict.fromkeys(findings)),
        state=node.state if node else None,
        state_findings=list(dict.fromkeys(node.findings)) if node else None,
    )


def _report(judged: Judgement, subject: str) -> NodeReport | None:
    """The node that is the subject, in its state as 'siteproof nodes' has it; None of a pair."""
    if judged.site.role_of(subject) is None or is_gpu(subject):
        return None
    from siteproof.gate import reports  # numpy, which a criterion does not need

    return reports.fleet(judged, only=subject).nodes.get(subject)


def _samples(judged: Judgement, found: Sequence[Found]) -> list[SampleAnswer]:
    """Each sample that could answer, and why it does not count."""
    attempts = {r.id: judged.attempts(r) for r, _ in found}
    return [
        SampleAnswer(
            *(result.id, one.node, sample.header.time),
            **_measured(sample),
            status=sample.status,
            conditions=dict(sorted(sample.conditions.items())),
            refused=_refused(judged, result.criterion, one, sample),
            follows=sample.why if isinstance(sample, DerivedSample) else None,
            inputs=_inputs(sample) if isinstance(sample, DerivedSample) else None,
        )
        for result, unit in found
        for one in (unit, *(unit.members if result.criterion.over else ()))
        for sample in of_unit(one.node, attempts[result.id])
    ]


def _refused(
    judged: Judgement, criterion: Criterion, unit: NodeVerdict, sample: Sample
) -> Finding | None:
    """Why a sample does not count: its conditions, or its age; None if it does."""
    why = why_not(criterion, sample)
    if why or sample is unit.sample and not unit.too_old:
        return why
    alone = replace(unit, sample=sample, verdict=Verdict.PASS)
    return outdated(criterion, alone, judged.fresh)


def _inputs(sample: DerivedSample) -> list[InputAnswer]:
    return [InputAnswer(o.metric, o.node, o.dims, **_measured(o)) for o in sample.inputs]


def _measured(sample: Sample) -> dict[str, Any]:
    value = None if sample.value is None else str(sample.value)
    return {**same(sample.header, "session", "job"), "value": value, "unit": sample.unit}


def _unknown(judged: Judgement, subject: str) -> UserError:
    nodes = sorted({node for r in judged.verdicts for n in r.nodes for node in ends(n.node)})
    known = [r.id for r in judged.verdicts]
    system = judged.site.system.system
    what = f"'{subject}' is neither a criterion nor a node or pair of {system}"
    what += errors.hint(subject, known if len(ends(subject)) > 1 else [*known, *nodes])
    folded = str(nodesets.of(node for node in nodes if node != system))
    return UserError("why", what, [*known, *filter(None, [folded])])


def _is_about(unit: str, subject: str) -> bool:
    """Whether a unit is the subject, or a pair over one of several links, or one with the node."""
    return subject in (unit, unit.partition(" over ")[0], *ends(unit))


def _criterion(judged: Judgement, result: CriterionVerdict) -> None:
    criterion, tally = result.criterion, Tally.of(judged.site, result)
    lines = [
        f"{result.id}: {criterion.description}",
        f"  source       {criterion.source}",
        f"  required     {criterion.metric} {bound(judged, result)}, {criterion.scope}",
        f"  passes from  {_raw_limit(tally)}",
        f"  conditions   {_conditions(criterion)}",
        f"  oldest       {_oldest(result)}",
    ]
    lines += [f"  note         {criterion.note}"] if criterion.note else []
    print_wrapped(heading(judged), *lines)
    print_wrapped(*(f"  member {text}" for text in members(tally)))
    are_many = criterion.links or criterion.subject == "gpu"
    shown = result.nodes[:MAX_UNITS] if are_many else result.nodes
    for names, text, units in _alike(result, shown):
        print_wrapped(f"  {names}: {text}", *_other_points(result, units[0]))
    each = [one for unit in shown for one in (unit.members if criterion.over else [unit])]
    for sample in filter(None, (one.sample for one in each)):
        _chain(sample, "    ")
    if rest := len(result.nodes) - len(shown):
        click.echo(f"  and {rest} more, none of them worse")
    text = wording.why(result)
    reason = f", {text}" if text else ""
    rounding = "; passes only by rounding" if result.by_rounding else ""
    command = wording.after_criterion(judged, result)
    print_answer(f"{_counted(result)}{result.verdict}{reason}{rounding}", command)


def _counted(result: CriterionVerdict) -> str:
    """How many meet it; empty where nothing must, and of the system's one value."""
    criterion, what = result.criterion, "GPUs" if result.criterion.subject == "gpu" else "nodes"
    is_whole = criterion.subject in ("system", "service") and criterion.scope == "system"
    if criterion.links:
        what = "links" if criterion.subject == "system" else "pairs"
    elif is_whole:
        return ""
    if criterion.report_only or not result.nodes:
        return ""
    return f"{result.ok} of {len(result.nodes)} {what} meet it: "


def _oldest(result: CriterionVerdict) -> str:
    """When the oldest answer was measured, and which age is allowed."""
    allowed = f"at most {result.criterion.max_age}" if result.criterion.oldest else "of any age"
    if result.oldest is None:
        return f"no answer; {allowed}"
    return f"{result.oldest:%Y-%m-%d %H:%M} UTC, {age(result)}; {allowed}"


def _alike(
    result: CriterionVerdict, units: Sequence[NodeVerdict]
) -> list[tuple[str, str, list[NodeVerdict]]]:
    """The line of each unit; nodes without a value for the same reason share one."""

    def alone(unit: NodeVerdict) -> str:
        own = unit.value is not None or unit.points or result.criterion.links
        return unit.node if own else ""

    lines = grouped(((alone(unit), _verdict(result, unit)), unit) for unit in units)
    return [
        (name or str(nodesets.of(unit.node for unit in own)), text, own)
        for (name, text), own in lines.items()
    ]


def _other_points(result: CriterionVerdict, unit: NodeVerdict) -> Iterator[str]:
    """A line for each point of a unit but the worst, and how many more there are."""
    if result.criterion.report_only:  # has a line for each point
        return
    others = unit.points[1:]
    for one in others[:MAX_POINTS]:
        yield f"    at {unit.point_of(one)}: {_verdict(result, one)}"
    if rest := others[MAX_POINTS:]:
        yield f"    {count(len(rest), 'more point')}: {wording.numbers(rest)}"


def _without_criterion(judged: Judgement, subject: str) -> dict[str, list[str]]:
    """The newest values of the pairs of a node, or of a pair, by metrics that no criterion covers.

    The worst first.
    """
    values: dict[tuple[str, str], list[Sample]] = {}
    for one in judged.samples:  # the oldest first
        pair = f"{one.node}>{one.dims.get(PEER)}"
        is_uncovered = one.metric in judged.unjudged and one.status == "ok" and PEER in one.dims
        if is_uncovered and _is_about(pair, subject):
            known = values.get((one.metric, pair), [])
            values[one.metric, pair] = [*(s for s in known if s.header is one.header), one]
    lines: dict[str, list[str]] = {}
    for metric, pairs in grouped((metric, found) for (metric, _), found in values.items()).items():
        pairs.sort(key=_middle, reverse=judged.site.catalogue[metric].better == "lower")
        lines[metric] = [_of_pair(judged, found) for found in pairs[:MAX_PAIRS]]
        if len(pairs) > MAX_PAIRS:
            lines[metric].append(f"{metric}: {len(pairs) - MAX_PAIRS} more pairs of {subject}")
    return lines


def _middle(found: Sequence[Sample]) -> Fraction:
    return Fraction(median(Fraction(one.number) for one in found))


def _of_pair(judged: Judgement, found: Sequence[Sample]) -> str:
    """The value of a pair, of several trials the median, and where it is from."""
    one, head = found[0], found[0].header
    number, unit = Shown(judged).value(one.metric, _middle(found), one.unit)
    job = f"{head.time} session {head.session} job {head.job}"
    return f"{one.metric}: {one.node}>{one.dims[PEER]}: {with_unit(number, unit)}, {job}"


def _node(
    judged: Judgement,
    node: str,
    found: Sequence[Found],
    report: NodeReport | None,
    pairs: Mapping[str, Sequence[str]],
) -> None:
    state = f": {report.state}" if report else ""
    print_wrapped(heading(judged), f"{node}{state}")
    repair = [report.repair] if report and report.repair else []
    of_node = Shown(judged).all(report.findings) if report else ()
    print_wrapped(*fulls([*of_node, *repair]), title="  ")
    print_in_slurm(judged, node)
    for result in dict.fromkeys(r.id for r, _ in found):
        _units(judged, node, [(r, v) for r, v in found if r.id == result])
    _print_pairs(judged, pairs)
    for sample in judged.samples:
        if sample.node == node and "parameter" in sample.dims:
            what = sample.metric.rpartition(".")[2].replace("_", " ")
            print_wrapped(f"  {what}: {sample.dims['parameter']}: {sample.value}")
    _end_of_node(judged, node, found, report)


def _print_pairs(judged: Judgement, pairs: Mapping[str, Sequence[str]]) -> None:
    """By metrics that no criterion covers; the command is never broken, as it is to copy."""
    for metric, lines in pairs.items():
        print_wrapped(*lines, title="  ")
        if command := wording.of_pairs(judged, metric):
            print_text(f"  no criterion covers it; all pairs: {command}")


def _end_of_node(
    judged: Judgement, node: str, found: Sequence[Found], report: NodeReport | None
) -> None:
    required = {r.id for r, _ in found}
    bad = {r.id for r, v in found if v.verdict is not Verdict.PASS}
    met = f"{len(required) - len(bad)} of {len(required)} criteria are met"
    if report is None:
        both = nodesets.of(end for end in ends(node) if judged.site.role_of(end))
        is_met = bool(found) and not bad
        again = "" if is_met or not both or judged.past else measure(judged, both)
        print_answer(f"{met} on {node}", again)
    elif judged.past or report.state is State.OK:
        print_answer(f"{node}: {report.state}, {met}")
    else:
        print_answer(f"{node}: {report.state}, {met}", _test_again(judged, report))


def _test_again(judged: Judgement, report: NodeReport) -> str:
    """The command that measures a node again, inside its quarantine if it is there.

    Empty where waivers excuse all that is wrong with it.
    """
    from siteproof.gate import act, reports

    node = report.node
    if excused := reports.excused(judged, {node: report}):
        print_wrapped(*with_remark(excused, Shown(judged)))
        return ""
    unproven = any(why.get("rule") == Slow.ONCE for why in report.findings)
    if not unproven and report.state is not State.UNTESTED:
        record = wording.own(judged.site.system.system, "repaired", node, "--why", "TEXT")
        print_wrapped(f"first repair {node}; '{record}' records it")
    if node in act.in_quarantine(judged.site):
        return own_command(judged, "gate", "--retest", "--apply")
    return measure(judged, node)


def _chain(sample: Sample, margin: str) -> None:
    """From which measured values a derived value follows, down to those that a tool printed."""
    if not isinstance(sample, DerivedSample):
        return
    place = sample.node or sample.dims.get(LINK) or sample.header.system
    print_wrapped(f"{margin}{place} follows from: {sample.why}")
    lines = _inputs_alike(sample.inputs)
    print_wrapped(*lines[:MAX_INPUTS], title=f"{margin}  ")
    if rest := lines[MAX_INPUTS:]:
        click.echo(f"{margin}  and {count(len(rest), 'more line')} of such values")


def _inputs_alike(inputs: Sequence[Sample]) -> list[str]:
    """The values of each pair, link or node at a point, trial by trial; nodes with the same share a
    line.
    """
    values: dict[tuple[str, str, str], list[Sample]] = {}
    for one in inputs:
        pair = ">".join(filter(None, (one.node, one.dims.get(PEER, ""))))
        place = pair or one.dims.get(LINK) or one.header.system
        job = f"{one.header.time} session {one.header.session} job {one.header.job}"
        dims = [f" at {k} {v}" for k, v in sorted(one.dims.items()) if k not in (PEER, LINK)]
        values.setdefault(("".join((one.metric, *dims)), job, place), []).append(one)
    alike = grouped(
        ((f"{metric} of {place if PEER in found[0].dims else ''}", job, _values(found)), place)
        for (metric, job, place), found in values.items()
    )
    return [
        f"{what if what[-1] != ' ' else what + str(nodesets.of(places))}, {job}: {text}"
        for (what, job, text), places in alike.items()
    ]


def _values(found: Sequence[Sample]) -> str:
    """What the tool printed, trial by trial."""
    shown = ", ".join(str(one.value) for one in found[:MAX_TRIALS])
    more = ", …" if len(found) > MAX_TRIALS else ""
    return with_unit(shown + more, found[0].unit)


def _units(judged: Judgement, node: str, found: Sequence[Found]) -> None:
    """One criterion on a node: its own value, or those of its pairs, the worst first."""
    result = found[0][0]
    attempts = judged.attempts(result)
    for _, verdict in found[:MAX_PAIRS]:
        unit = "" if verdict.node == node else f" {verdict.node}:"
        line = f"  {result.id}:{unit} {_verdict(result, verdict)}"
        print_wrapped(line, *_other_points(result, verdict))
        for sample in of_unit(verdict.node, attempts):
            refused = _refused(judged, result.criterion, verdict, sample)
            print_wrapped(f"    {_sample(sample, refused)}")
            _chain(sample, "      ")
    if rest := [v for _, v in found[MAX_PAIRS:]]:
        kept = sum(v.verdict is Verdict.PASS for v in rest)
        what = "GPUs" if result.criterion.subject == "gpu" else "pairs"
        print_wrapped(f"  {result.id}: {len(rest)} more {what} of {node}, {kept} of them PASS")


def _verdict(result: CriterionVerdict, node: NodeVerdict) -> str:
    at_point = f"at {node.point}" if node.point else ""
    measured = at_point if node.value is None else value(node, result.criterion)
    rounded = "passes only by rounding" if node.by_rounding else ""
    words = (str(node.verdict), measured, rounded, wording.reasons(node.findings))
    return ", ".join(filter(None, words))


def _sample(sample: Sample, refused: Finding | None) -> str:
    head = sample.header
    what = f"{sample.status}: {sample.why}"
    if sample.status == "ok":
        what = with_unit(sample.value, sample.unit)
        what += f" '{sample.line}'" if sample.line else ""
    counts = f"does not count: {sentence(refused)}" if refused else "counts"
    under = " ".join(f"{k}={v}" for k, v in sorted(sample.conditions.items()))
    return f"{head.time} session {head.session} job {head.job}: {what} [{counts}] {under}"


def _raw_limit(tally: Tally) -> str:
    """From or up to which measured value it passes, in the unit of the bound."""
    if tally.criterion.bound is None:
        return "the same text" if tally.criterion.equals else "no bound: it is only reported"
    sides = [(sign, limit) for sign, limit in zip("><", tally.limits, strict=True) if limit]
    return " ".join(
        f"{sign}{'=' if limit.inclusive else ''} {with_unit(number(limit.value, 12), tally.unit)}"
        " as measured"
        for sign, limit in sides
    )


def _conditions(criterion: Criterion) -> str:
    texts = [f"{key} {rule}" for key, rule in criterion.conditions.items()]
    texts += [f"program {' or '.join(criterion.programs)}"] if criterion.programs else []
    return "; ".join(texts) or "none"
