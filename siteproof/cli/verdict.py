"""`siteproof verdict`: the contract, criterion by criterion."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import click
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet
from rich.console import Console
from rich.table import Table
from rich.text import Text

from siteproof import units
from siteproof.analysis.pair_units import ends
from siteproof.analysis.verdict import CriterionVerdict, NodeVerdict, Verdict, exit_code
from siteproof.cli.options import which_samples
from siteproof.judgement import Judgement, expected_nodes, judge_system

COLOURS = {
    Verdict.PASS: "green", Verdict.FAIL: "bold red", Verdict.ERROR: "bold red",
    Verdict.REGRESSED: "bold yellow", Verdict.INCOMPLETE: "yellow", Verdict.PENDING: "cyan",
    Verdict.SKIP: "dim",
}
WIDTH = 132  # columns where nobody looks at a terminal
SHOWN = 3  # worst nodes that a row names
LONGEST = 12  # digits that a person reads; more are told in the bound's unit, and kept in perflogs
SIGNS = {"at_least": ">=", "at_most": "<=", "equals": "="}


@click.command()
@which_samples
@click.option("--json", "as_json", is_flag=True, help="For programs: one JSON object.")
def verdict(system: str, since: str, campaign: str, as_json: bool) -> None:
    """Say for each criterion whether the system keeps it.

    Without --since and --campaign it speaks of the newest session that could answer a criterion,
    and of all sessions of its campaign (SITEPROOF_CAMPAIGN names one when checks run).

    \b
    siteproof verdict --since 2026-11-21T18:00
    """
    judged = judge_system(system, since=since, name=campaign)
    code = exit_code(v.verdict for v in judged.verdicts)
    if as_json:
        click.echo(json.dumps(_record(judged, code), indent=1))
    else:
        _print(judged)
    raise SystemExit(code)


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
    return text + (f", {criterion.rounding}" if criterion.step else "")


def figure(result: NodeVerdict) -> str:
    """The tool's own digits; of a median or mean, the figure that was worked out."""
    of_one = result.sample is not None and Fraction(result.sample.number) == result.value
    return str(result.sample.value) if of_one else number(result.value, 12)


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


def _print(judged: Judgement) -> None:
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH)
    table = Table(title=f"{judged.site.system.system}: {judged.chosen}", title_justify="left")
    for name in ("criterion", "verdict", "worst value", "bound", "nodes", "worst nodes, or why"):
        table.add_column(name, overflow="fold", no_wrap=name in ("criterion", "verdict"))
    for result in judged.verdicts:
        worst = result.worst
        table.add_row(
            Text(result.id), Text(result.verdict, style=COLOURS[result.verdict]),
            Text(value(worst, result.criterion) if worst else "-"), Text(bound(judged, result)),
            f"{result.ok} of {len(result.nodes)}" if result.nodes else "-", Text(_reason(result)),
        )
    console.print(table)
    for text, nodes in judged.warnings.items():
        console.print(f"warning: {nodes}: {text}", markup=False, highlight=False)
    for metric in judged.unjudged:
        console.print(f"measured, and no criterion speaks of it: {metric}", markup=False)
    console.print(_last_line(judged), markup=False, highlight=False)


def _reason(result: CriterionVerdict) -> str:
    parts = [result.why] if result.why else []
    if result.by_rounding:
        parts.append("passes only by rounding")
    bad = [n for n in result.nodes if n.verdict is not Verdict.PASS] or (
        list(result.nodes) if len(result.nodes) > 1 and result.worst else [])
    if bad and len(result.nodes) > 1:
        parts.insert(0, _names(bad))
    return "; ".join(parts)


def _names(nodes: Sequence[NodeVerdict]) -> str:
    """The worst few of those that were measured, by name; the other nodes as a set."""
    measured = [n.node for n in nodes if n.value is not None]
    missing = [n.node for n in nodes if n.value is None]
    told = measured[:SHOWN] + ([f"{len(measured) - SHOWN} more"] if len(measured) > SHOWN else [])
    if len(missing) > SHOWN and any(len(ends(unit)) > 1 for unit in missing):
        told.append(f"{len(missing)} without a figure, such as {missing[0]}")  # no set is short
    elif missing:
        told.append(str(NodeSet.fromlist(missing, resolver=RESOLVER_NOGROUP)))
    return ", ".join(told)


def _last_line(judged: Judgement) -> str:
    counts = {v: sum(r.verdict is v for r in judged.verdicts) for v in Verdict}
    told = ", ".join(f"{n} {v}" for v, n in counts.items() if n)
    return f"verdict on {judged.site.system.system}: {told or 'no criterion'}"


def _record(judged: Judgement, code: int) -> dict[str, Any]:
    return {
        "system": judged.site.system.system, "samples_of": judged.chosen, "exit_code": code,
        "criteria": [
            {
                "id": r.id, "verdict": r.verdict, "why": r.why, "metric": r.criterion.metric,
                "bound": bound(judged, r), "source": r.criterion.source,
                "by_rounding": r.by_rounding, "nodes_ok": r.ok, "nodes_expected": len(r.nodes),
                "nodes": [_node_record(n) for n in r.nodes],
            }
            for r in judged.verdicts
        ],
    }


def _node_record(result: NodeVerdict) -> dict[str, Any]:
    sample = result.sample
    return {
        "node": result.node, "verdict": result.verdict, "why": result.why,
        "value": None if result.value is None else figure(result),
        "unit": sample.unit if sample else None,
        "rounded": None if result.rounded is None else number(result.rounded, 12),
        "session": sample.header.session if sample else None,
    }
