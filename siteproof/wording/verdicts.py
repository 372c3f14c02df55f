"""A verdict in words: values, bounds and reasons as `verdict`, `why` and reports print them."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from siteproof import nodesets, units
from siteproof.answers import expected
from siteproof.answers.attempts import published, short
from siteproof.answers.criterion import CriterionVerdict, NodeVerdict
from siteproof.curves import whole_sweep
from siteproof.record.finding import RANKS, UNDECIDED, WORTH_REPEATING, Finding, Kind, Verdict
from siteproof.record.pair_units import grouped
from siteproof.sites import Criterion
from siteproof.sites.catalogue import MODES
from siteproof.sites.promise import CONTRACT_MODES, SIGNS
from siteproof.units import count, with_unit
from siteproof.verdict.judgement import Judgement
from siteproof.wording.findings import sentences

MAX_DIGITS = 12  # of a value; a longer one is shown in the bound's unit, and kept in perflogs
AWAITED = {
    "answered": "answered",
    "measurement": "for a measurement",
    "inputs": "for inputs",
    "evidence": "for evidence",
    "acceptance": "for the acceptance of a setting",
    "check": "for a check that does not exist yet",
    "mode": "for a run in another mode",
    "decide_nothing": "nothing here",
}
VERBS = {"for": ("waits", "wait"), "nothing": ("decides", "decide")}  # by the first word
_MINUTE = "%Y-%m-%d %H:%M UTC"
PROC = "proc"  # the program of values that the node's kernel counts: it is not printed


def number(value: Fraction, digits: int = 6) -> str:
    """A number for people: six significant digits, no trailing zeros."""
    return f"{float(value):.{digits}g}"


def bound(judged: Judgement, result: CriterionVerdict) -> str:
    """The bound as in the contract, with a share of a fact computed."""
    criterion = result.criterion
    if criterion.report_only:
        return "reported only"
    text = f"{SIGNS[criterion.kind]} {criterion.bound or criterion.equals}"
    if criterion.bound and criterion.bound.fact:
        hardware = expected.nodes(judged.site, criterion).values()
        kinds = {id(facts): facts for facts in hardware}.values()
        text += "".join(f" = {criterion.bound_value(facts)}" for facts in kinds)
    return f"{text}, {criterion.rounding_rule}" if criterion.step else text


def digits(result: NodeVerdict) -> str:
    """The value in the tool's own digits; of a median or mean, as computed."""
    if result.sample is not None and Fraction(result.sample.number) == result.value:
        return str(result.sample.value)
    return "-" if result.value is None else number(result.value, 12)


def value(result: NodeVerdict, criterion: Any) -> str:
    """The value as measured, then rounded where the contract rounds; at which point of several, and
    which program gave it.
    """
    if result.value is None or result.sample is None:
        return "-"
    text = _with_unit(result, criterion)
    rounds = criterion.bound and (criterion.step or criterion.bound.fact)
    if rounds and (rounded := result.rounded(criterion)) is not None:
        text += f" -> {with_unit(number(rounded), criterion.bound.quantity.unit)}"
    text += f" at {result.point}" if result.point else ""
    program = result.sample.conditions.get("program", PROC)
    return f"{text} by {program}" if program != PROC else text


def _with_unit(result: NodeVerdict, criterion: Any) -> str:
    """The value in its own unit; one of too many digits in the bound's."""
    assert result.value is not None and result.sample is not None
    printed, unit = digits(result), result.sample.unit
    if len(printed) > MAX_DIGITS and criterion.bound and not criterion.bound.fact:
        unit = criterion.bound.quantity.unit
        printed = number(units.convert(result.value, result.sample.unit, unit))
    return with_unit(printed, unit)


def why(result: CriterionVerdict) -> str:
    """The reason for the verdict that most of the deciding nodes share."""
    text = reasons(result.findings)
    if not result.others:
        return text
    return f"{text} (and {count(result.others, 'other reason')})"


def reasons(findings: Iterable[Finding]) -> str:
    """Reasons in one line, for a place that prints the value and the missed bound itself."""
    return sentences(
        replace(found, value="") if found.kind is Kind.BELOW_BASELINE else found
        for found in findings
        if found.kind is not Kind.MISSES_BOUND
    )


def age(result: CriterionVerdict) -> str:
    """How old its oldest answer is: `5 h`, `12 d`."""
    return short(result.age) if result.age is not None else "-"


def next_command(judged: Judgement) -> str:
    """The next command: it measures what is missing, explains what failed, or reports."""
    if command := rerun(judged):
        return command
    deciding = [result for result in judged.verdicts if _decides(judged, result)]
    worst = min(deciding, key=lambda r: RANKS[r.verdict], default=None)
    if worst is None or worst.verdict is Verdict.PASS:
        words = ["nodes"] if judged.failed_besides else ["report"] * bool(worst)
        return own_command(judged, *words) if words else ""
    of_nodes = worst.criterion.subject in ("node", "gpu") and not worst.criterion.links
    explains = ["nodes"] if worst.verdict is Verdict.FAIL and of_nodes else ["why", worst.id]
    return own_command(judged, *explains)


def after_criterion(judged: Judgement, result: CriterionVerdict) -> str:
    """The command after the explanation of a criterion: of its pairs or worst node, or the run.

    Empty where it is met, and where no run could change it.
    """
    worst = result.nodes[0].node if result.nodes else ""
    as_a_whole = worst in ("", judged.site.system.system) or published_only(judged)
    if result.verdict in UNDECIDED or result.verdict is Verdict.PASS or as_a_whole:
        return rerun(judged, result)
    if result.criterion.links:
        return of_pairs(judged, result.criterion.metric)
    return own_command(judged, "why", worst)


def of_pairs(judged: Judgement, metric: str) -> str:
    """The command that shows all pairs; empty as of a time, for which it cannot be asked."""
    return "" if judged.asked.get("--as-of") else own_command(judged, "matrix", metric)


def own_command(judged: Judgement, *words: str) -> str:
    """A command of ours that judges the same: system, campaign and times."""
    return own(judged.site.system.system, *words, **judged.asked)


def own(system: str, *words: str, **asked: str) -> str:
    """A command of ours on this system. asked: the options by which samples are chosen."""
    chosen = [part for option in asked.items() if option[1] for part in option]
    return shlex.join(["siteproof", *words, *chosen, "--system", system])


def measure(judged: Judgement, nodes: object) -> str:
    """The command that runs all checks on these nodes, in the campaign that is judged."""
    mode = _mode_for(judged, [result.criterion for result in judged.verdicts])
    return f"{_reframe(judged, mode)} -S {shlex.quote(f'nodes={nodes}')}"


def _reframe(judged: Judgement, mode: str) -> str:
    """In the campaign that is judged, or that all that is judged is of."""
    own = {sample.header.campaign for sample in judged.samples if not published(sample)}
    only = own.pop() if len(own) == 1 and not judged.late else ""
    name = judged.campaign or only
    named = f"SITEPROOF_CAMPAIGN={shlex.quote(name)} " if name else ""
    return f"{named}reframe -c checks/ -r --system {judged.site.system.system} --mode {mode}"


def rerun(judged: Judgement, only: CriterionVerdict | None = None) -> str:
    """The command that measures what is missing, and what failed with it; empty: nothing is.

    With --since it measures all nodes with the checks that have no answer, as `nodes=missing`
    would accept an answer from before that time. only: the criterion that it answers. Of a system
    that consists of others, that of the first member that lacks something.
    """
    if judged.members:
        return next(filter(None, map(rerun, judged.members.values())), "")
    results = [only] if only else judged.verdicts
    can_be = [result for result in results if _can_be_measured(judged, result)]
    owed = [result.criterion for result in can_be]
    # A FAIL has its values.
    if judged.past or all(result.verdict is Verdict.FAIL for result in can_be):
        return ""
    command = _reframe(judged, _mode_for(judged, owed))
    if not judged.late:
        command += f" -S nodes={nodesets.MISSING}"
    if not (judged.late or only):
        return command
    needed = (one for criterion in owed for one in expected.answering(judged.site, criterion))
    checks = dict.fromkeys(judged.site.catalogue[one.metric].check for one in needed)
    return command + "".join(f" -n {check}" for check in checks if check)


def _mode_for(judged: Judgement, owed: Sequence[Criterion]) -> str:
    """The mode that most of these criteria accept; the system's own, if it is one."""
    rules = [rule for criterion in owed if (rule := criterion.conditions.get("mode"))]
    modes = dict.fromkeys([judged.site.system.mode, *CONTRACT_MODES, *MODES])
    return max(modes, key=lambda mode: sum(rule.met_by(mode) for rule in rules))


def _can_be_measured(judged: Judgement, result: CriterionVerdict) -> bool:
    """Whether a run of checks could change it; a metric of a whole sweep needs the sweep."""
    if result.verdict not in WORTH_REPEATING or not _decides(judged, result):
        return False
    if any(published(sample) for sample in judged.samples):
        return False
    if any(why.kind in (Kind.CHECK_MISSING, Kind.OTHER_SETTING) for why in result.findings):
        return False
    needed = [one.metric for one in expected.answering(judged.site, result.criterion)]
    return any(
        judged.site.catalogue[name].check and name not in whole_sweep.METRICS for name in needed
    )


def awaited(judged: Judgement) -> dict[str, int]:
    """How many criteria are answered, and for what the others wait; their sum is that of all."""
    found = Counter(_awaits(judged, result) for result in judged.verdicts)
    return {name: found[name] for name in AWAITED}


def _awaits(judged: Judgement, result: CriterionVerdict) -> str:
    """Which of AWAITED a criterion is."""
    metric = judged.site.catalogue[result.criterion.metric]
    if result.excused:
        return "decide_nothing"
    if result.verdict not in UNDECIDED:
        return "answered"
    if not _decides(judged, result):
        return "mode"
    if result.criterion.answered_by == "evidence":
        return "evidence"
    if not judged.site.can_answer(result.criterion):
        return "check"
    if any(why.kind is Kind.OTHER_SETTING for why in result.findings):
        return "acceptance"
    return "inputs" if metric.derived_from and not metric.check else "measurement"


def answered_line(judged: Judgement) -> str:
    """The same as a sentence."""
    parts = awaited_parts(awaited(judged))
    return f"{count(len(judged.verdicts), 'criterion', 'criteria')}: {parts or 'none'}"


def _decides(judged: Judgement, result: CriterionVerdict) -> bool:
    return not (result.excused or any(result is one for one in judged.of_other_modes))


def other_modes_lines(judged: Judgement) -> list[str]:
    """What only other modes answer, by these modes, and when it was measured last."""
    by_modes = grouped(
        (" or ".join(filter(result.criterion.sets, MODES)), result)
        for result in judged.of_other_modes
    )
    lines = []
    for modes, results in by_modes.items():
        number = count(len(results), "criterion is", "criteria are")
        day = min(one.oldest.date() for one in results if one.oldest)
        names = ", ".join(one.id for one in results)
        lines.append(f"{number} answered by {modes} only, last on {day}: {names}")
    return lines


def awaited_parts(counts: Mapping[str, int]) -> str:
    """`3 answered, 1 waits for inputs, 2 for evidence`: the first of each kind has the verb."""
    shown, said = [], set[str]()
    for name, number in counts.items():
        if number:
            kind = AWAITED[name].partition(" ")[0]
            verb = VERBS[kind][number > 1] if kind in VERBS and kind not in said else ""
            shown.append(" ".join(filter(None, (str(number), verb, AWAITED[name]))))
            said.add(kind)
    return ", ".join(shown)


def heading(judged: Judgement) -> str:
    """System, what is judged, when the newest of it was measured, and what ages count from."""
    text = f"{judged.site.system.system}: {judged.chosen}"
    if published_only(judged):
        return f"{text}; nothing was measured here"
    last = max((sample.header.time for sample in judged.samples), default="")
    if not last:
        return text
    newest, end = f"{datetime.fromisoformat(last).astimezone(UTC):{_MINUTE}}", "now"
    if judged.as_of is not None and any(judged.asked.values()):
        end = f"{judged.as_of:{_MINUTE}}"  # the end of what was asked for
    return f"{text}, {newest}; ages count from {'then' if end == newest else end}"


def published_only(judged: Judgement) -> bool:
    """Whether all values are those that others have published."""
    return bool(judged.samples) and all(map(published, judged.samples))


def numbers(verdicts: Iterable[CriterionVerdict | NodeVerdict]) -> str:
    """How many criteria, nodes or points have which verdict: `2 FAIL, 9 PASS`."""
    counts = Counter(result.verdict for result in verdicts)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])


def last_line(judged: Judgement) -> str:
    """How many criteria have which verdict."""
    shown = numbers(judged.verdicts)
    of = " by published values" if published_only(judged) else ""
    return f"verdict on {judged.site.system.system}{of}: {shown or 'no criterion'}{besides(judged)}"


def besides(judged: Judgement) -> str:
    """`; also failed: Health`: the checks that failed and that no criterion has decided."""
    checks = dict.fromkeys(attempt.header.check for attempt in judged.failed_besides)
    return f"; also failed: {', '.join(checks)}" if checks else ""
