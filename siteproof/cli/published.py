"""`siteproof published`: what others have published of a system, against its criteria."""

from __future__ import annotations

import json
from collections import Counter

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from siteproof import files, sites
from siteproof.cli.verdict import WIDTH
from siteproof.errors import ExitCode, UserError
from siteproof.published import milestones, results
from siteproof.published.figures import figure, when
from siteproof.published.judging import KEEPS, MISSES, ORDER, Judged, remarks
from siteproof.published.results import Stated

WHOLE = ("says", "criterion", "figure")  # columns that are never broken
COLOURS = {KEEPS: "green", MISSES: "bold red"}


@click.command()
@click.option(
    "--system",
    default="",
    metavar="NAME",
    help="The system; without it, the one that this machine belongs to.",
)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Every table: pairs, trials, transfers, landmarks, description.",
)
@click.option("--json", "as_json", is_flag=True, help="For programs: one JSON object.")
def published(system: str, everything: bool, as_json: bool) -> None:
    """Say which published figures miss their criterion, and which keep it.

    It speaks of what 'siteproof import' has made samples of. A figure that misses shows that some
    value does; one that keeps its criterion is no verdict on what was not published.

    \b
    siteproof published --system jetstream-tacc
    """
    site = sites.load(system or sites.recognise())
    files.must_exist()
    stated = results.stated(files.perflogs(), site.name)
    if not stated:
        raise UserError(
            "published",
            f"nothing published of {site.name} has been imported",
            hint=f"'siteproof import --system {site.name}' imports it",
        )
    judged = results.judged(site, stated)
    remarks_on_time = milestones.remarks(milestones.read(site))
    tables = results.tables(site, stated)
    if as_json:
        click.echo(json.dumps(_record(site.name, judged, tables, remarks_on_time), indent=1))
    else:
        _print(tables if everything else tables[:1] if judged else [])
        for told in remarks_on_time:
            click.echo(f"timeline: {told}")
        click.echo(_answer(site.name, len(stated), judged))
    raise SystemExit(_code(judged))


def _code(judged: list[Judged]) -> ExitCode:
    says = {one.says for one in judged}
    if MISSES in says:
        return ExitCode.FAIL
    return ExitCode.PASS if KEEPS in says else ExitCode.INCOMPLETE


def _print(tables: list[Stated]) -> None:
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH)
    for one in tables:
        table = Table(
            title=Text(one.title),
            title_justify="left",
            caption=Text(one.note) if one.note else None,
            caption_justify="left",
        )
        for name in one.columns:
            table.add_column(Text(name), overflow="fold", no_wrap=name in WHOLE)
        for row in one.rows:
            table.add_row(*(Text(cell, style=COLOURS.get(cell, "")) for cell in row))
        console.print(table)


def _answer(name: str, samples: int, judged: list[Judged]) -> str:
    told = ", ".join(filter(None, (_counted(judged, word) for word in ORDER)))
    return (
        f"published of {name}: {samples} figures and texts; against a criterion: {told or 'none'}"
    )


def _counted(judged: list[Judged], word: str) -> str:
    """How many say so, and of which checks where they miss: `5 misses (BlockStorage 2, …)`."""
    checks = Counter(one.sample.metric.partition(".")[0] for one in judged if one.says == word)
    which = ", ".join(f"{check} {count}" for check, count in checks.items())
    return f"{checks.total()} {word}" + (f" ({which})" if word == MISSES else "") if checks else ""


def _record(
    name: str, judged: list[Judged], tables: list[Stated], on_time: list[str]
) -> dict[str, object]:
    return {
        "system": name,
        "exit_code": int(_code(judged)),
        "timeline": on_time,
        "figures": [
            {
                "says": one.says,
                "criterion": one.criterion_id,
                "metric": one.sample.metric,
                "figure": figure(one.sample),
                "date": when(one.sample),
                "campaign": one.sample.header.campaign,
                "bound": str(one.criterion.bound),
                "by_rounding": one.said.by_rounding,
                "not_said": list(one.said.silent),
                "remarks": remarks(one),
            }
            for one in judged
        ],
        "tables": [one._asdict() for one in tables],
    }
