"""A verdict in words: figures, bounds and reasons as `verdict`, `why` and reports print them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from siteproof import nodesets, units
from siteproof.curves import whole_sweep
from siteproof.judge.age import published, short
from siteproof.judge.criterion import CriterionVerdict, NodeVerdict
from siteproof.judge.gravity import WORTH_REPEATING, Verdict
from siteproof.record.pair_units import ends
from siteproof.sites.catalogue import MODES
from siteproof.sites.promise import CONTRACT_MODES, SIGNS
from siteproof.verdict.judgement import Judgement, expected_nodes
from siteproof.wording.findings import count, sentences

SHOWN = 3  # worst nodes that a line names
LONGEST = 12  # digits that a person reads; more are told in the bound's unit, and kept in perflogs


def number(value: Fraction, digits: int = 6) -> str:
    """A figure for people: six significant digits, no trailing zeros."""
    return f"{float(value):.{digits}g}"


def bound(judged: Judgement, result: CriterionVerdict) -> str:
    """The bound as the contract words it, a share worked out."""
    criterion = result.criterion
    if criterion.report_only:
        return "reported only"
    text = f"{SIGNS[criterion.kind]} {criterion.bound or criterion.equals}"
    if criterion.bound and criterion.bound.fact:
        facts = {id(f): f for f in expected_nodes(judged.site, criterion).values()}
        text += "".join(f" = {criterion.bound_value(f)}" for f in facts.values())
    return text + (f", {criterion.rounding_rule}" if criterion.step else "")


def figure(result: NodeVerdict) -> str:
    """The tool's own digits; of a median or mean, the figure that was worked out."""
    if result.sample is not None and Fraction(result.sample.number) == result.value:
        return str(result.sample.value)
    return "-" if result.value is None else number(result.value, 12)


def value(result: NodeVerdict, criterion: Any) -> str:
    """Raw value as measured, and rounded where the contract rounds; and who measured it."""
    if result.value is None or result.sample is None:
        return "-"
    told, unit = figure(result), result.sample.unit
    if criterion.bound and not criterion.bound.fact and len(told) > LONGEST:
        unit = criterion.bound.quantity.unit
        told = number(units.convert(result.value, result.sample.unit, unit))
    told = f"{told} {unit}"
    if result.rounded is not None and criterion.bound and (criterion.step or criterion.bound.fact):
        told += f" -> {number(result.rounded)} {criterion.bound.quantity.unit}"
    program = result.sample.conditions.get("program", "")
    return f"{told} by {program}" if program not in ("", "proc") else told


def reason(result: CriterionVerdict) -> str:
    """The worst nodes, and why the verdict is what it is."""
    parts = [why(result)] if result.findings else []
    if result.by_rounding:
        parts.append("passes only by rounding")
    bad = [n for n in result.nodes if n.verdict is not Verdict.PASS] or (
        list(result.nodes) if len(result.nodes) > 1 and result.worst else []
    )
    if bad and len(result.nodes) > 1:
        parts.insert(0, _names(bad))
    return "; ".join(parts)


def why(result: CriterionVerdict) -> str:
    """Why the verdict is what it is, as most of the nodes that decide have it."""
    text = sentences(result.findings)
    if not result.others:
        return text
    return f"{text} (and {count(result.others, 'other reason')})"


def _names(nodes: Sequence[NodeVerdict]) -> str:
    """The worst few of those that were measured, by name; the other nodes as a set."""
    measured = [n.node for n in nodes if n.value is not None]
    missing = [n.node for n in nodes if n.value is None]
    told = measured[:SHOWN] + ([f"{len(measured) - SHOWN} more"] if len(measured) > SHOWN else [])
    if len(missing) > SHOWN and any(len(ends(unit)) > 1 for unit in missing):
        told.append(f"{len(missing)} without a figure, such as {missing[0]}")  # no set is short
    elif missing:
        told.append(str(nodesets.of(missing)))
    return ", ".join(told)


def age(result: CriterionVerdict) -> str:
    """How old its oldest answer is: `5 h`, `12 d`."""
    return short(result.age) if result.age is not None else "-"


def next_command(judged: Judgement) -> str:
    """What measures all that failed or is missing, and nothing else; empty: nothing would.

    Since some time it is the checks that owe an answer, on all nodes: for a run an older one is
    an answer, too.
    """
    owed = [r.criterion for r in judged.verdicts if _can_be_measured(judged, r)]
    rules = [rule for c in owed if (rule := c.conditions.get("mode"))]
    known = dict.fromkeys([judged.site.system.mode, *CONTRACT_MODES, *MODES])
    modes = [mode for mode in known if all(rule.met_by(mode) for rule in rules)]
    if judged.past or not owed or not modes:
        return ""
    named = f"SITEPROOF_CAMPAIGN={shlex.quote(judged.campaign)} " if judged.campaign else ""
    system = judged.site.system.system
    command = f"{named}reframe -c checks/ -r --system {system} --mode {modes[0]}"
    checks = dict.fromkeys(judged.site.catalogue[c.metric].check for c in owed)
    since = "".join(f" -n {check}" for check in checks)
    return command + (since if judged.late else f" -S nodes={nodesets.MISSING}")


def _can_be_measured(judged: Judgement, result: CriterionVerdict) -> bool:
    """Whether a run of checks could mend it; a whole sweep is no part of them."""
    if result.excused or result.verdict not in WORTH_REPEATING:
        return False
    if any(published(sample) for sample in judged.samples):
        return False
    metric = judged.site.catalogue[result.criterion.metric]
    return bool(metric.check) and result.criterion.metric not in whole_sweep.METRICS


def last_line(judged: Judgement) -> str:
    """How many criteria have which verdict."""
    counts = {v: sum(r.verdict is v for r in judged.verdicts) for v in Verdict}
    told = ", ".join(f"{n} {v}" for v, n in counts.items() if n)
    return f"verdict on {judged.site.system.system}: {told or 'no criterion'}"
