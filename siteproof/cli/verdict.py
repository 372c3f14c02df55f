"""`siteproof verdict`: the contract, criterion by criterion."""

from __future__ import annotations

import click
from rich.table import Table
from rich.text import Text

from siteproof.cli.shared import (
    SET_ASIDE,
    json_option,
    print_left_out,
    print_table,
    print_text,
    which_answers,
)
from siteproof.export import documents
from siteproof.judge.severity import Verdict
from siteproof.units import count
from siteproof.verdict.judgement import Judgement, judge_system
from siteproof.wording.findings import warning
from siteproof.wording.verdicts import (
    age,
    answered_line,
    bound,
    counted,
    last_line,
    next_command,
    reason,
    value,
)

COLOURS = {
    Verdict.FAIL: "bold red",
    Verdict.ERROR: "bold red",
    Verdict.REGRESSED: "bold yellow",
    Verdict.INCOMPLETE: "yellow",
    Verdict.PENDING: "cyan",
    Verdict.SKIP: "dim",
    Verdict.PASS: "green",
}
COLUMNS = ("criterion", "verdict", "worst value", "bound", "nodes", "age", "worst nodes, or why")


@click.command()
@which_answers
@json_option("verdict")
def verdict(system: str, since: str, campaign: str, as_of: str, as_json: bool) -> None:
    """Show for each criterion whether the system meets it.

    Each criterion is answered, node by node and pair by pair, by the newest measurement that
    matches its conditions, from any session. A newer failure replaces an older PASS. An answer
    that is older than the criterion's max_age (7d), or than a recorded change of kernel, firmware
    or software lock, is INCOMPLETE. With --since or --campaign only these sessions count, and ages
    count from the newest of them. SITEPROOF_CAMPAIGN=NAME in the environment of a run names its
    campaign.

    Exit code: 0 every criterion in force was decided and is met; 1 a FAIL, ERROR or REGRESSED; 2
    wrong usage or input; 3 nothing failed, but something is INCOMPLETE or PENDING, or a SKIP
    without a waiver or not_here; or nothing was decided; or a file was left out, or a stage
    directory set aside, that could hold a failure.

    \b
    siteproof verdict --since 2026-11-21T18:00
    """
    judged = judge_system(system, since=since, name=campaign, as_of=as_of)
    print_left_out(judged.sessions, aside=False)
    if as_json:
        click.echo(documents.dumps(documents.verdict(judged)))
    else:
        _print(judged)
    raise SystemExit(judged.exit_code)


def _print(judged: Judgement) -> None:
    title = Text(f"{judged.site.system.system}: {judged.chosen}")
    table = Table(title=title, title_justify="left")
    for name in COLUMNS:
        table.add_column(name, overflow="fold", no_wrap=name in ("criterion", "verdict", "age"))
    for result in judged.verdicts:
        worst = result.worst
        table.add_row(
            Text(result.id),
            Text(result.verdict, style=COLOURS[result.verdict]),
            Text(value(worst, result.criterion) if worst else "-"),
            Text(bound(judged, result)),
            counted(result),
            Text(age(result)),
            Text(reason(result)),
        )
    print_table(table)
    for why in judged.warnings:
        print_text(f"warning: {warning(why)}")
    if judged.site.gaps:
        gaps = count(len(judged.site.gaps), "gap")
        name = judged.site.name
        print_text(f"warning: the site has {gaps}; 'siteproof lint {name}' lists what is missing")
    for metric in judged.unjudged:
        print_text(f"measured, but no criterion covers it: {metric}")
    if skipped := [r.id for r in judged.verdicts if r.verdict is Verdict.SKIP and not r.excused]:
        print_text(
            f"could not be measured here: {', '.join(skipped)}; if that is expected, give the "
            "criterion 'not_here: REASON', or write a waiver"
        )
    for line in judged.sessions.set_aside if judged.sessions else ():
        print_text(f"{SET_ASIDE}{line}")
    print_text(answered_line(judged))
    command = next_command(judged)
    last = last_line(judged) + (f"; next: {command}" if command else "")
    print_text(last)
