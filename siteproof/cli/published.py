"""siteproof published: Show which published values meet their criterion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click
from rich.text import Text

from siteproof import files
from siteproof.cli.shared import (
    flag,
    forms,
    print_answer,
    print_plain,
    print_table,
    print_text,
    site_of,
    table,
    which_system,
)
from siteproof.compare.published import results
from siteproof.compare.published.ratios import Table as Results
from siteproof.compare.published.ratios import shown, when
from siteproof.compare.published.results import Answer as Outcome
from siteproof.compare.published.results import Judged, remarks
from siteproof.errors import ExitCode, UserError
from siteproof.export.documents import Answer, dumps
from siteproof.record import finding
from siteproof.record.finding import Finding, Kind
from siteproof.record.samples import PUBLISHED
from siteproof.sites import site_tables
from siteproof.wording.verdicts import own

WHOLE = ("answer", "criterion", "value")  # columns that are never broken
CELLS = ("table", "row", "column", "value")  # of all tables, whose columns differ


@dataclass(frozen=True)
class Published(Answer):
    """Published values against the criteria: 'siteproof published --json'.

    exit_code: 0 a value meets its criterion and none misses it; 1 some value misses it; 3 no value
        is covered by a criterion.
    timeline: Milestones that were met or missed, a sentence each.
    figures: Each published value that a criterion covers.
    tables: The tables, as printed with --all.
    findings: Each published value that misses its criterion.
    """

    timeline: Sequence[str]
    figures: Sequence[Mapping[str, Any]]
    tables: Sequence[Mapping[str, Any]]
    findings: Sequence[Finding]


@click.command()
@which_system
@flag(
    "--all everything",
    "Show all tables: comparisons, ratios, failures, all other values and texts.",
)
@forms(Published)
def published(system: str, everything: bool, form: str) -> None:
    """Show which published values miss their criterion, and which meet it.

    Import them first, with 'siteproof import'. A mean that misses its bound shows that some node
    misses it; a mean that meets it proves nothing about each node.

    \b
    siteproof published --system jetstream-tacc
    """
    site = site_of(system)
    published = results.read(files.perflogs(), site.name)
    if not published:
        what = f"no published value of {site.name} is imported"
        hint = f"Run 'siteproof import --system {site.name} --apply' first"
        raise UserError("published", what, hint=hint)
    judged = results.judged(site, published)
    on_time = site_tables.remarks(site.milestones)
    tables = results.tables(site, published)
    if form == "json":
        click.echo(dumps(_for_programs(site.name, judged, tables, on_time)))
    elif form and everything:
        print_plain(CELLS, _cells(tables))
    elif form and not judged:
        click.echo("siteproof: no published value has a criterion; --all prints all", err=True)
    elif form:
        print_plain(tables[0].columns, tables[0].rows)
    else:
        _print(tables if everything else tables[: bool(judged)])
        print_text(*on_time, title="timeline: ")
        answer = _answer(site.name, len(published), judged)
        print_answer(answer, own(site.name, "verdict"))
    raise SystemExit(_code(judged))


def _code(judged: list[Judged]) -> ExitCode:
    answers = {one.answer for one in judged}
    if Outcome.MISSES in answers:
        return ExitCode.FAIL
    return ExitCode.PASS if Outcome.KEEPS in answers else ExitCode.INCOMPLETE


def _cells(tables: list[Results]) -> Iterator[Sequence[str]]:
    """A line a cell, so that tables with other columns have the same header."""
    for one in tables:
        for at, row in enumerate(one.rows, start=1):
            for column, cell in zip(one.columns, row, strict=True):
                yield one.title, str(at), column, cell


def _print(tables: list[Results]) -> None:
    for one in tables:
        drawn = table(one.columns, one.rows, one.title, whole=WHOLE)
        drawn.caption, drawn.caption_justify = Text(one.note) if one.note else None, "left"
        print_table(drawn)


def _answer(name: str, samples: int, judged: list[Judged]) -> str:
    counts = Counter(one.answer for one in judged)
    misses = Counter(
        one.sample.metric.partition(".")[0] for one in judged if one.answer is Outcome.MISSES
    )
    of = {Outcome.MISSES: f" ({', '.join(f'{check} {n}' for check, n in misses.items())})"}
    against = ", ".join(f"{counts[one]} {one}{of.get(one, '')}" for one in Outcome if counts[one])
    return f"published of {name}: {samples} values and texts; with a criterion: {against or 'none'}"


def _missed(one: Judged) -> Finding:
    sample = one.sample
    return finding.of(
        Kind.MISSES_BOUND,
        {"source": sample.conditions.get(PUBLISHED)},
        subject=sample.node or sample.header.system,
        check=sample.header.check,
        metric=sample.metric,
        criterion=one.criterion_id,
        value=str(sample.value),
        unit=sample.unit,
        bound=one.criterion.required,
        since=sample.header.time,
    )


def _for_programs(
    name: str, judged: list[Judged], tables: list[Results], on_time: list[str]
) -> Published:
    return Published(
        *(name, "what others have published", _code(judged), on_time),
        figures=[
            {
                "answer": one.answer,
                "criterion": one.criterion_id,
                "metric": one.sample.metric,
                "figure": shown(one.sample),
                "date": when(one.sample),
                "campaign": one.sample.header.campaign,
                "bound": str(one.criterion.bound),
                "by_rounding": one.outcome.by_rounding,
                "not_said": list(one.outcome.not_stated),
                "remarks": remarks(one),
            }
            for one in judged
        ],
        tables=[one._asdict() for one in tables],
        findings=[_missed(one) for one in judged if one.answer is Outcome.MISSES],
    )
