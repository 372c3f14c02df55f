"""siteproof history: Show what was measured over the years, query it with SQL, export it."""

from __future__ import annotations

import functools
import itertools
import json
import math
import shlex
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from siteproof import files
from siteproof.cli import shared
from siteproof.errors import ExitCode, UserError, harmless
from siteproof.history import History, extract, open_history, views
from siteproof.history.extract import Wanted
from siteproof.record import campaign
from siteproof.wording.findings import fulls

MAX_REFUSED = 40  # refused lines that are printed; --json has all of them
MAX_ROWS = 1000  # rows of an answer that are printed; --csv and --json have all of them
EXAMPLES = "\n\n".join(
    f'\b\n{q.title}:\nsiteproof history --sql "\n{q.sql}"' for q in views.QUESTIONS
)
SUMMARY = """
SELECT system, source, count(DISTINCT file), count(*), count(*) FILTER (status <> 'ok'),
    count(DISTINCT node) FILTER (node <> ''), count(DISTINCT metric) FILTER (status = 'ok'),
    strftime(min(time), '%Y-%m-%d'), strftime(max(time), '%Y-%m-%d')
FROM samples WHERE {where} GROUP BY system, source ORDER BY system, source"""
COLUMNS = "siteproof history --columns"
NAMES = ("system", "source", "files", "samples", "failed", "nodes", "metrics", "first", "last")


@click.command(epilog=EXAMPLES)
@shared.text_option("--system", "NAME", "Only this system; without it, all.")
@shared.text_option(
    "--since", "TIME", "Only what was measured since TIME: 12h, 7d, 2026-11-21T18:00 (UTC)."
)
@shared.text_option("--campaign name", "NAME", "Only this campaign.")
@click.option(
    "--metric",
    "metrics",
    shell_complete=shared.by_metric,
    multiple=True,
    metavar="METRIC",
    help="Only this metric, such as Stream.triad; may be repeated.",
)
@shared.text_option("--node nodes", "NODES", "Only these nodes, a node set.")
@click.option(
    "--export",
    "file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the samples to FILE.csv, FILE.parquet, or FILE.jsonl.",
)
@click.option("--sql", "query", metavar="QUERY", help="Query the views samples and runs.")
@shared.flag("--columns", "List the columns of the views.")
@shared.flag("--rebuild", "Read every file again.")
@click.option("--json", "form", flag_value="json", default="", help="For programs: JSON.")
@click.option("--csv", "form", flag_value="csv", help="Print the answer to --sql as CSV.")
@shared.plain_option
def history(
    system: str,
    since: str,
    name: str,
    metrics: Sequence[str],
    nodes: str,
    file: Path | None,
    query: str | None,
    columns: bool,
    rebuild: bool,
    form: str,
) -> None:
    """Update the history from perflogs/, and show or query what was measured.

    The history is a store of Parquet files of your own, in SITEPROOF_CACHE; without it, in
    output/cache of the data folder, or in ~/.cache/siteproof where others may write to that folder.
    You can delete it at any time. QUERY is one SELECT in DuckDB's SQL; it reads the two views, no
    files, and changes nothing.

    Exit code 3: a file or line was refused, and is named; the rest counts. Exit code 2: wrong
    usage, a mistake in QUERY, or nothing to export.
    """
    if columns:
        _print_columns()
        return
    wanted = Wanted([system] if system else [], name, metrics, _nodes(nodes), start_of(since))
    if query is not None and (file or wanted.since or wanted.lists.keys() - {"system"}):
        what = "cannot be combined with --export or the options that select samples"
        raise UserError("--sql", what, hint="Select samples in the query, with WHERE")
    if form == "csv" and query is None:
        raise UserError("--csv", "needs --sql", hint="Use --sql QUERY --csv, or --json")
    files.must_exist()
    with _opened(wanted, rebuild=rebuild) as found:
        for one in wanted.systems or found.systems:
            clocks = fulls(found.clock_findings(one))
            shared.print_text(*clocks, title=f"siteproof: {one}: ", err=True)
        wanted.must_be_known(found)
        if query is not None:
            _answer(found, query, form)
        elif file:
            count = extract.export(found, file, wanted)
            click.echo(f"{file}: {count:,} samples")
        else:
            _summary(found, wanted, form)
        if query is not None or file:
            _refused(found.refused, err=True)
        raise SystemExit(ExitCode.INCOMPLETE if found.refused else ExitCode.PASS)


def _nodes(text: str) -> list[str]:
    from siteproof import nodesets  # imported only if needed, as it takes a while

    if not text:
        return []
    try:
        return list(nodesets.parse(text))
    except ValueError as error:
        raise UserError("--node", str(error), "a node set such as n[001-010]") from None


def start_of(text: str) -> datetime | None:
    """--since, as the history has times. Raises UserError."""
    if not text:
        return None
    return campaign.since(text, datetime.now(UTC)).astimezone(UTC).replace(tzinfo=None)


def _summary(found: History, wanted: Wanted, form: str) -> None:
    rows = found.sql(SUMMARY.format(where=wanted.sql))
    if form == "json":
        systems = [dict(zip(NAMES, row, strict=True)) for row in rows]
        store = str(found.folder) if found.folder else None
        answer = {"systems": systems, "refused": found.refused, "store": store}
        click.echo(json.dumps(answer, indent=1))
        return
    if form:
        shared.print_plain(NAMES, [list(map(_cell, row)) for row in rows])
        return
    if rows:
        _table(NAMES, rows)
    _refused(found.refused)
    samples, count = (sum(row[place] for row in rows) for place in (3, 2))
    click.echo(f"store: {found.folder or 'in memory'}")
    text = f"history: {samples:,} samples in {count:,} files, {len(found.refused)} refused"
    shared.print_answer(text, COLUMNS)


def _refused(lines: Sequence[str], err: bool = False) -> None:
    show = functools.partial(shared.print_text, err=err)
    shared.print_some("refused: ", lines, MAX_REFUSED, "'siteproof history --json'", show=show)


def _answer(found: History, query: str, form: str) -> None:
    names, rows = extract.ask(found, query)
    twice = [name for name in names if names.count(name) > 1]
    if twice and form == "json":
        what = f"two columns are named {twice[0]}"
        raise UserError("--json", what, hint="Rename one of them in the query, with AS")
    if cell := CELLS.get(form):
        cells = (list(map(cell, row)) for row in rows)
        shared.print_rows([str(cell(name)) for name in names], cells, form)
        return
    shown = list(itertools.islice(rows, MAX_ROWS))
    _table(names, shown)
    more = sum(1 for _ in rows)
    cut = f", {more:,} of them not shown; --csv and --json have all" if more else ""
    shared.print_answer(f"{len(shown) + more:,} rows{cut}", COLUMNS)


def _plain(value: object) -> object:
    """A value for JSON, which has no infinity."""
    is_strange = isinstance(value, float) and not math.isfinite(value)
    return str(value) if is_strange else value


def _table(names: Iterable[str], rows: Iterable[Sequence[object]]) -> None:
    shared.print_table(shared.table(map(harmless, names), (list(map(_cell, row)) for row in rows)))


def _cell(value: object) -> str:
    if value is None:
        return ""
    return harmless(f"{value:.10g}" if isinstance(value, float) else str(value))


CELLS = {"csv": extract.cell, "json": _plain, "plain": _cell}  # how a form has a value


def _opened(wanted: Wanted, *, rebuild: bool) -> History:
    with shared.bar("history") as progress:
        found = open_history(files.perflogs(), wanted.systems, rebuild=rebuild, progress=progress)
    if not any("trusted_owners" in line for line in found.refused):
        return found
    from siteproof import sites  # imported only if needed, as it takes a while

    sites.trust()
    found.close()
    return open_history(files.perflogs(), wanted.systems)


def _print_columns() -> None:
    for view, columns in views.VIEWS.items():
        each = "value" if view == "samples" else "job"
        shared.print_wrapped(f"{view}, one row for each {each}:")
        for column in columns:
            shared.print_wrapped(f"  {column.name:<12} {column.kind:<10} {column.meaning}")
    count = sum(map(len, views.VIEWS.values()))
    first = ["siteproof", "history", "--sql", "SELECT * FROM runs ORDER BY time DESC LIMIT 20"]
    shared.print_answer(f"{len(views.VIEWS)} views, {count} columns", shlex.join(first))
