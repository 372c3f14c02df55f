"""`siteproof verdict`: the contract, criterion by criterion."""

from __future__ import annotations

from datetime import UTC, datetime

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from siteproof.analysis.verdict import Verdict, exit_code
from siteproof.cli.options import tell_left_out, which_samples
from siteproof.export import record
from siteproof.judgement import Judgement, judge_system
from siteproof.verdict_words import bound, last_line, reason, value

COLOURS = {
    Verdict.PASS: "green",
    Verdict.FAIL: "bold red",
    Verdict.ERROR: "bold red",
    Verdict.REGRESSED: "bold yellow",
    Verdict.INCOMPLETE: "yellow",
    Verdict.PENDING: "cyan",
    Verdict.SKIP: "dim",
}
WIDTH = 132  # columns where nobody looks at a terminal


@click.command()
@which_samples
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="For programs: one JSON object; 'siteproof export schema' explains it.",
)
def verdict(system: str, since: str, campaign: str, as_json: bool) -> None:
    """Say for each criterion whether the system keeps it.

    Without --since and --campaign it speaks of the newest session that could answer a criterion,
    and of all sessions of its campaign (SITEPROOF_CAMPAIGN names one when checks run).

    \b
    siteproof verdict --since 2026-11-21T18:00
    """
    judged = judge_system(system, since=since, name=campaign)
    tell_left_out(judged.sessions)
    code = exit_code(v.verdict for v in judged.verdicts)
    if as_json:
        click.echo(record.dumps(record.verdict(judged, datetime.now(UTC))))
    else:
        _print(judged)
    raise SystemExit(code)


def _print(judged: Judgement) -> None:
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH)
    title = Text(f"{judged.site.system.system}: {judged.chosen}")
    table = Table(title=title, title_justify="left")
    for name in ("criterion", "verdict", "worst value", "bound", "nodes", "worst nodes, or why"):
        table.add_column(name, overflow="fold", no_wrap=name in ("criterion", "verdict"))
    for result in judged.verdicts:
        worst = result.worst
        table.add_row(
            Text(result.id),
            Text(result.verdict, style=COLOURS[result.verdict]),
            Text(value(worst, result.criterion) if worst else "-"),
            Text(bound(judged, result)),
            f"{result.ok} of {len(result.nodes)}" if result.nodes else "-",
            Text(reason(result)),
        )
    console.print(table)
    for text, nodes in judged.warnings.items():
        console.print(f"warning: {nodes}: {text}", markup=False, highlight=False)
    for metric in judged.unjudged:
        console.print(f"measured, and no criterion speaks of it: {metric}", markup=False)
    console.print(last_line(judged), markup=False, highlight=False)
