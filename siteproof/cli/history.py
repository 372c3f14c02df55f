"""`siteproof history`: what has been measured over the years, to be asked and exported."""

from __future__ import annotations

import csv
import itertools
import json
import math
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from siteproof import files
from siteproof.cli.shared import bar
from siteproof.errors import ExitCode, UserError, harmless
from siteproof.history import History, extract, open_history, questions, views
from siteproof.history.extract import Wanted
from siteproof.history.questions import interruptible
from siteproof.record import campaign
from siteproof.wording.findings import full

WIDTH = 132  # columns where nobody looks at a terminal
MOST = 40  # refused lines that are told; --json has all of them
LONGEST = 1000  # rows of an answer that are shown; --csv and --json have all of them
EXAMPLES = "\n\n".join(
    f'\b\n{q.title}:\nsiteproof history --sql "\n{q.sql}"' for q in questions.ALL
)
SUMMARY = """
SELECT system, source, count(DISTINCT file), count(*), count(*) FILTER (status <> 'ok'),
    count(DISTINCT node) FILTER (node <> ''), count(DISTINCT metric) FILTER (status = 'ok'),
    strftime(min(time), '%Y-%m-%d'), strftime(max(time), '%Y-%m-%d')
FROM samples WHERE {where} GROUP BY system, source ORDER BY system, source"""
NAMES = ("system", "source", "files", "samples", "failed", "nodes", "metrics", "first", "last")


@click.command(epilog=EXAMPLES)
@click.option("--system", default="", metavar="NAME", help="Only this system; without it, all.")
@click.option(
    "--since",
    default="",
    metavar="TIME",
    help="Only what was measured since TIME: 12h, 7d, 2026-11-21T18:00 (UTC).",
)
@click.option("--campaign", "name", default="", metavar="NAME", help="Only this campaign.")
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="METRIC",
    help="Only this metric, such as Stream.triad; may be repeated.",
)
@click.option("--node", "nodes", default="", metavar="NODES", help="Only these nodes, a node set.")
@click.option(
    "--export",
    "file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the samples to FILE.csv, FILE.parquet, or FILE.jsonl.",
)
@click.option("--sql", "query", metavar="QUERY", help="Query the views samples and runs.")
@click.option("--columns", is_flag=True, help="List the columns of the views.")
@click.option("--rebuild", is_flag=True, help="Read every file again.")
@click.option("--csv", "as_csv", is_flag=True, help="Print the answer to --sql as CSV.")
@click.option("--json", "as_json", is_flag=True, help="For programs: JSON.")
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
    as_csv: bool,
    as_json: bool,
) -> None:
    """Update the history from perflogs/, and show or query what was measured.

    The history is a store of Parquet files of your own, in SITEPROOF_CACHE or ~/.cache/siteproof.
    You can delete it at any time. QUERY is one SELECT in DuckDB's SQL; it reads the two views, no
    files, and changes nothing.

    Exit code 3: a file or line was refused, and is named; the rest counts. Exit code 2: wrong
    usage, a mistake in QUERY, or nothing to export.
    """
    if columns:
        _print_columns()
        return
    wanted = Wanted([system] if system else [], name, metrics, _nodes(nodes), _since(since))
    if query is not None and (file or wanted.since or wanted.lists.keys() - {"system"}):
        raise UserError(
            "--sql",
            "does not go with --export and the options that choose samples",
            hint="Choose samples in the query, with WHERE",
        )
    if as_csv and (query is None or as_json):
        raise UserError(
            "--csv", "the form of an answer to --sql", hint="Use --sql QUERY --csv, or --json"
        )
    files.must_exist()
    with _opened(wanted, rebuild=rebuild) as found:
        for note in found.notes:
            click.echo(f"siteproof: {note}", err=True)
        for name in wanted.systems or found.systems:
            for line in map(full, found.clock_findings(name)):
                click.echo(f"siteproof: {name}: {line}", err=True)
        wanted.must_be_known(found)
        if query is not None:
            with interruptible(found.connection):
                _answer(found, query, as_csv, as_json)
        elif file:
            count = extract.export(found, file, wanted)
            click.echo(f"{file}: {count:,} samples")
        else:
            _summary(found, wanted, as_json)
        if query is not None or file:
            _refused(found.refused, err=True)
        raise SystemExit(ExitCode.INCOMPLETE if found.refused else ExitCode.PASS)


def _nodes(text: str) -> list[str]:
    from siteproof import nodesets  # with all of the sites' schema, which takes its time

    if not text:
        return []
    try:
        return list(nodesets.parse(text))
    except ValueError as error:
        raise UserError("--node", str(error), "a node set such as n[001-010]") from None


def _since(text: str) -> datetime | None:
    if not text:
        return None
    return campaign.since(text, datetime.now(UTC)).astimezone(UTC).replace(tzinfo=None)


def _summary(found: History, wanted: Wanted, as_json: bool) -> None:
    rows = found.sql(SUMMARY.format(where=wanted.sql))
    if as_json:
        click.echo(
            json.dumps(
                {
                    "systems": [dict(zip(NAMES, row, strict=True)) for row in rows],
                    "refused": found.refused,
                    "store": str(found.folder) if found.folder else None,
                },
                indent=1,
            )
        )
        return
    if rows:
        _table(NAMES, rows)
    _refused(found.refused)
    samples, count = (sum(row[place] for row in rows) for place in (3, 2))
    click.echo(
        f"history: {samples:,} samples in {count:,} files, "
        f"{len(found.refused)} refused; {_store(found)}"
    )


def _store(found: History) -> str:
    if found.folder is None:
        return "in memory"
    if not found.folder.is_dir():
        return "no store yet"
    size = sum(map(_size, found.folder.iterdir()))
    return f"store: {found.folder} ({size / 1e6:.1f} MB)"


def _size(path: Path) -> int:
    """Bytes; none of a file that another process has just removed or renamed."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _refused(lines: Sequence[str], err: bool = False) -> None:
    for line in lines[:MOST]:
        click.echo(f"refused: {line}", err=err)
    if len(lines) > MOST:
        click.echo(
            f"refused: {len(lines) - MOST} more; 'siteproof history --json' has all", err=err
        )


def _answer(found: History, query: str, as_csv: bool, as_json: bool) -> None:
    names, rows = extract.ask(found, query)
    if as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow([extract.cell(name) for name in names])
        writer.writerows([extract.cell(value) for value in row] for row in rows)
    elif as_json:
        _print_json(names, rows)
    else:
        shown = list(itertools.islice(rows, LONGEST))
        _table(names, shown)
        more = sum(1 for _ in rows)
        click.echo(
            f"{len(shown) + more:,} rows"
            + (f", {more:,} of them not shown; --csv and --json have all" if more else "")
        )


def _print_json(names: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A list of objects, one a line. Raises UserError where one name is that of two columns."""
    if twice := [name for name in names if names.count(name) > 1]:
        raise UserError(
            "--json",
            f"two columns are named {twice[0]}",
            hint="Rename one of them in the query, with AS",
        )
    sys.stdout.write("[")
    for count, row in enumerate(rows):
        record = {name: _plain(value) for name, value in zip(names, row, strict=True)}
        sys.stdout.write(("," if count else "") + "\n" + json.dumps(record, default=str))
    sys.stdout.write("\n]\n")


def _plain(value: object) -> object:
    """A value as JSON has it, which knows no infinity."""
    is_strange = isinstance(value, float) and not math.isfinite(value)
    return str(value) if is_strange else value


def _table(names: Iterable[str], rows: Iterable[Sequence[object]]) -> None:
    from rich.console import Console  # for people only: programs need not wait for it
    from rich.table import Table
    from rich.text import Text

    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH)
    table = Table()
    for name in names:
        table.add_column(Text(harmless(name)), overflow="fold")
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row))
    console.print(table)


def _cell(value: object) -> str:
    if value is None:
        return ""
    return harmless(f"{value:.10g}" if isinstance(value, float) else str(value))


def _opened(wanted: Wanted, *, rebuild: bool) -> History:
    with bar("history") as told:
        found = open_history(files.perflogs(), wanted.systems, rebuild=rebuild, told=told)
    if not any("trusted_owners" in line for line in found.refused):
        return found
    from siteproof import sites  # which a mere question needs not

    sites.trust()
    found.close()
    return open_history(files.perflogs(), wanted.systems)


def _print_columns() -> None:
    for view, held in views.VIEWS.items():
        click.echo(f"{view}, {'one row a value' if view == 'samples' else 'one row a job'}:")
        for column in held:
            click.echo(f"  {column.name:<12} {column.kind:<10} {column.says}")
