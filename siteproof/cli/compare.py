"""`siteproof compare`: how every metric changed from one campaign to another."""

from __future__ import annotations

import json
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from siteproof import files, nodesets, sites
from siteproof.analysis.before_after import Effect
from siteproof.cli.records import print_table
from siteproof.cli.shared import json_option, print_clocks, print_left_out, print_some, print_text
from siteproof.compare import accepted, comparison
from siteproof.compare.comparison import Comparison, Row
from siteproof.errors import ExitCode, UserError
from siteproof.units import with_unit
from siteproof.verdict import judgement
from siteproof.wording.findings import full

COLOURS = {
    Effect.WORSE: "bold red",
    Effect.BETTER: "green",
    Effect.UNDECIDABLE: "yellow",
    Effect.CHANGED: "cyan",
    Effect.SAME: "dim",
}
MAX_WORST = 3  # nodes of a row
MAX_PAIRS = 5  # of the last line
MAX_LINES = 40  # of changes; --json has all of them


@click.command()
@click.argument("a", required=False)
@click.argument("b", required=False)
@click.option(
    "--system",
    default="",
    metavar="NAME",
    help="The system; without it, the one that this machine belongs to.",
)
@json_option("compare")
def compare(a: str | None, b: str | None, system: str, as_json: bool) -> None:
    """Compare B with A: campaigns, sessions, or the words accepted, latest, previous.

    Without A it is the accepted campaign, or the previous one if none was accepted; without B the
    latest. Exit code 1: a metric is worse; 3: no metric is in both.

    \b
    siteproof compare before-firmware after-firmware
    siteproof compare accepted latest
    """
    site = sites.load(system or sites.recognise())
    files.must_exist()
    record = judgement.Record.of(site)
    jobs = record.headers
    before = accepted.read_all(files.perflogs(), site.system.system)
    names = [
        accepted.resolve(change, jobs, before)
        for change in (
            a or (accepted.ACCEPTED if before else accepted.PREVIOUS),
            b or accepted.LATEST,
        )
    ]
    if names[0] == names[1]:
        raise UserError("compare", f"A and B are both {names[0]}", accepted.names(jobs)[-8:])
    first, second = (record.samples(accepted.jobs_of(name, jobs)) for name in names)
    result = comparison.compare(site, first, second, files.perflogs())
    print_left_out(record.sessions)
    print_clocks(record.sessions)
    code = _exit_code(result)
    if as_json:
        click.echo(json.dumps(_record(result, names, code), indent=1))
    else:
        _print(result, names)
    raise SystemExit(code)


def _exit_code(result: Comparison) -> ExitCode:
    if any(row.change.effect is Effect.WORSE or row.worst for row in result.rows):
        return ExitCode.FAIL
    return ExitCode.PASS if result.rows else ExitCode.INCOMPLETE


def _print(result: Comparison, names: list[str]) -> None:
    table = Table(title=Text(f"A: {names[0]}, B: {names[1]}"), title_justify="left")
    for name in ("metric", "A", "B", "change", "noise", "verdict", "nodes", "worst nodes"):
        table.add_column(name, overflow="fold")
    shown = [r for r in result.rows if not (r.of_a_point and r.change.effect is Effect.SAME)]
    for row in shown:
        table.add_row(
            *map(
                Text,
                (
                    row.name,
                    with_unit(f"{row.change.before:.6g}", row.unit),
                    with_unit(f"{row.change.after:.6g}", row.unit),
                    share(row.change.change),
                    _noise(row),
                ),
            ),
            Text(row.change.text, style=COLOURS[row.change.effect]),
            Text(str(row.nodes)),
            Text(_worst(row)),
        )
    if shown:
        print_table(table)
    if len(shown) < len(result.rows):
        print_text(f"{len(result.rows) - len(shown)} points of sweeps are the same, see --json")
    for title, lines in (
        ("", result.not_comparable),
        ("only in A: ", result.only_a),
        ("only in B: ", result.only_b),
        ("changed: ", result.changed),
    ):
        print_some(title, list(map(full, lines)), MAX_LINES)
    print_text(_last_line(result))


def share(change: float | None) -> str:
    """A change in per cent, with its sign."""
    return "-" if change is None else f"{change:+.1%}".replace("%", " %")


def _noise(row: Row) -> str:
    return "unknown" if row.change.one_value else f"{row.change.noise:.1%}".replace("%", " %")


def _worst(row: Row) -> str:
    shown = [f"{node} {share(change)}" for node, change in row.worst[:MAX_WORST]]
    more = len(row.worst) - MAX_WORST
    return ", ".join(shown + ([f"{more} more"] if more > 0 else []))


def _last_line(result: Comparison) -> str:
    if not result.rows:
        return "no metric is in both"
    counts = {change: sum(r.change.effect is change for r in result.rows) for change in Effect}
    shown = ", ".join(f"{n} {change}" for change, n in counts.items() if n)
    nodes = sorted({node for row in result.rows for node, _ in row.worst})
    pairs = [name for name in nodes if ">" in name]
    alone = [str(nodesets.of(set(nodes) - set(pairs)))] if len(nodes) > len(pairs) else []
    alone += pairs[:MAX_PAIRS] + (
        [f"{len(pairs) - MAX_PAIRS} more pairs"] * (len(pairs) > MAX_PAIRS)
    )
    fell = f"; fell by themselves: {', '.join(alone)}" if alone else ""
    return f"from A to B: {shown}{fell}"


def _record(result: Comparison, names: list[str], code: int) -> dict[str, Any]:
    lists = {
        "not_comparable": result.not_comparable,
        "only_in_a": result.only_a,
        "only_in_b": result.only_b,
        "changed": result.changed,
    }
    return {
        "a": names[0],
        "b": names[1],
        "exit_code": int(code),
        "rows": [
            {
                "metric": r.name,
                "role": r.role,
                "unit": r.unit,
                "a": r.change.before,
                "b": r.change.after,
                "change": r.change.change,
                "noise": r.change.noise,
                "verdict": r.change.text,
                "nodes": str(r.nodes),
                "worst": dict(r.worst),
            }
            for r in result.rows
        ],
        **{name: list(map(full, found)) for name, found in lists.items()},
        "findings": [why.record() for found in lists.values() for why in found],
    }
