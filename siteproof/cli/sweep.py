"""`siteproof sweep`: what a parallel sweep found, as tables, sentences and a figure."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path

import click
from rich.table import Table

from siteproof import files, sites
from siteproof.cli import shared
from siteproof.cli.records import print_rows, print_table, table
from siteproof.cli.shared import forms, print_text, text_option
from siteproof.curves import run_findings, sweep_runs
from siteproof.curves.measured import ALL, Curve, Row
from siteproof.curves.run_findings import SweepReport
from siteproof.errors import ExitCode, UserError, UserErrors
from siteproof.export import sweep_rows
from siteproof.export.answer_model import dumps, same
from siteproof.figure import line_plot
from siteproof.record import manifest
from siteproof.record.samples import SWEEP, Sample
from siteproof.record.sessions import Sessions
from siteproof.report import sweep_figures
from siteproof.schema.yamlfile import Document
from siteproof.sweeps import reading
from siteproof.sweeps.reading import SweepFile
from siteproof.units import count, size
from siteproof.wording import amounts, sweep_results

FIGURES = (".svg", ".png")
Columns = dict[str, Callable[[Curve, Row], str]]
LISTED = ("sweep", "points", "newest run", "what it shows")


@click.command()
@click.argument("name", required=False, shell_complete=shared.by_sweep)
@shared.which_system
@text_option("--session", "ID", "Only the run of this session.")
@text_option("--campaign", "NAME", "Only the runs of this campaign.")
@click.option(
    "--with",
    "others",
    multiple=True,
    metavar="[SYSTEM:]SESSION",
    help="Another run to compare with; may be repeated.",
)
@text_option("--figure", "FILE", "Draw the curves to FILE.svg or FILE.png.")
@forms("sweep")
@click.option("--csv", "form", flag_value="csv", help="For programs: one line for each point.")
def sweep(
    name: str | None,
    system: str,
    session: str,
    campaign: str,
    others: tuple[str, ...],
    figure: str,
    form: str,
) -> None:
    """Show what the sweep NAME found: maximum, plateau, decline, and what limits the curve.

    Without NAME, list the sweeps. Exit code 1: a point failed; 3: points are missing.

    \b
    siteproof sweep ior_tasks
    siteproof sweep ior_tasks --figure ior.svg --with 20261120T180000Z-1f2e
    """
    if figure and Path(figure).suffix not in FIGURES:
        raise UserError("--figure", f"'{figure}' is not a figure's file", "FILE.svg, FILE.png")
    known, documents = reading.examine()
    files.must_exist()
    if name is None:
        if any((session, campaign, others, figure, form == "csv")):
            raise UserError("NAME", "no sweep is named", known)
        _print_names(names(known, _history(system)), form)
        return
    _must_be_whole(name, documents)
    reports = _reports(name, known, system, session, campaign)
    compared = [r for other in others for r in _compared(name, known, system, other)]
    if not reports:
        click.echo(_not_measured(name))
        raise SystemExit(ExitCode.INCOMPLETE)
    code = _exit_code(reports)
    if figure:
        draw(Path(figure), [*reports, *compared])
    _print(name, [*reports, *compared], code, form)
    raise SystemExit(code)


def _print(name: str, reports: Sequence[SweepReport], code: ExitCode, form: str) -> None:
    if form == "json":
        click.echo(dumps(sweep_rows.answer(name, reports, code)))
    elif form == "plain":
        print_rows(sweep_rows.COLUMNS, sweep_rows.cells(reports), form)
    elif form == "csv":
        rows = [sweep_rows.COLUMNS, *sweep_rows.cells(reports)]
        csv.writer(sys.stdout, lineterminator="\n").writerows(rows)
    else:
        show(name, reports)


def _must_be_whole(name: str, documents: Iterable[Document]) -> None:
    """Raises UserErrors where the sweep's file has mistakes; those of other files do not matter."""
    broken = [e for d in documents if d.path.stem == name for e in d.sorted_mistakes()]
    if broken:
        raise UserErrors(broken)


def _not_measured(name: str) -> str:
    """What to do about a sweep without any sample."""
    test = reading.camel_case(name)
    if any(stage.name.startswith(f"{test}_") for stage in manifest.pending(files.stages())):
        return (
            f"{name}: begun, and no point is collected yet: 'siteproof collect' collects what "
            "was interrupted"
        )
    return f"{name}: not measured yet: reframe -c sweeps/ -n {test} -r"


def _history(system: str) -> list[Sample]:
    system = system or sites.recognise()
    sites.trust(system)
    sessions = Sessions(files.perflogs(), system)
    return sessions.of(lambda header: SWEEP in header.conditions)


def _reports(
    name: str, known: dict[str, SweepFile], system: str, session: str, campaign: str
) -> list[SweepReport]:
    """The requested runs; none where the sweep was never run. Raises UserError."""
    site = sites.load(system or sites.recognise())
    runs = sweep_runs.collect(_history(site.system.system))
    of_name = [run for run in runs if run.name == name]
    shared.refuse_unknown("NAME", "sweep", [name], sorted({*known, *(run.name for run in runs)}))
    if not of_name and not (session or campaign):
        return []
    chosen = sweep_runs.choose(of_name, session=session, campaign=campaign)
    return [r for run in chosen for r in run_findings.reports(site, run, known.get(name))]


def _compared(name: str, known: dict[str, SweepFile], system: str, text: str) -> list[SweepReport]:
    """A run to compare with, given as SESSION or SYSTEM:SESSION. Raises UserError."""
    other, _, session = text.rpartition(":")
    if not session:
        raise UserError("--with", f"'{text}' names no session", "SESSION, SYSTEM:SESSION")
    try:
        return _reports(name, known, other or system, session, "")
    except UserError as error:
        if error.where != "--session":
            raise
        raise UserError("--with", error.what, error.allowed, error.hint) from None


def _exit_code(reports: Sequence[SweepReport]) -> ExitCode:
    codes = {report.exit_code for report in reports}
    return next((c for c in (ExitCode.FAIL, ExitCode.INCOMPLETE) if c in codes), ExitCode.PASS)


def names(known: Mapping[str, SweepFile], history: Sequence[Sample]) -> list[tuple[str, ...]]:
    """The sweeps, and of each the newest session that has results."""
    runs = {run.name: run for run in sweep_runs.collect(history)}
    rows: list[tuple[str, ...]] = []
    for name in sorted({*known, *runs}):
        file, run = known.get(name), runs.get(name)
        points = str(len(file.points)) if file else "-"
        newest = run.sessions[-1] if run else "none"
        description = file.sweep.description if file else "its file was removed"
        rows.append((name, points, newest, description))
    return rows


def _print_names(rows: Sequence[tuple[str, ...]], form: str) -> None:
    if form:
        print_rows(LISTED, rows, form)
        return
    print_table(table(LISTED, rows))
    run = [name for name, _, newest, _ in rows if newest != "none"]
    following = f"siteproof sweep {(run or [rows[0][0]])[0]}" if rows else "siteproof sites"
    print_text(f"{count(len(rows), 'sweep')}, {len(run)} with a run; next: {following}")


def show(name: str, reports: Sequence[SweepReport]) -> None:
    """Tables and progress of each run, then the sentences of all."""
    # Several reports are of one run where it has several axes.
    runs = [list(of_run) for _, of_run in groupby(reports, key=lambda report: id(report.run))]
    for of_run in runs:
        print_text(f"{name}, {of_run[0].run}")
        for made in _tables(of_run):
            print_table(made)
        for text in sweep_results.progress(of_run[0]):
            print_text(text)
    for of_run in runs:
        print_text(f"{name}, {of_run[0].run}:")
        texts = [text for report in of_run for text in sweep_results.headlines(report)]
        for text in texts or ["no point has a value"]:
            print_text(f"  {text}")


def _tables(reports: Iterable[SweepReport]) -> list[Table]:
    return [_table(report, lines) for report in reports for lines in report.groups]


def _table(report: SweepReport, lines: Sequence[Curve]) -> Table:
    """The rows of all curves of one metric and panel, without the best of all."""
    first = lines[0]
    curves = [curve for curve in lines if curve.line != ALL]
    rows = [(curve, row) for curve in curves for row in curve.rows]
    columns: Columns = {}
    if len(curves) > 1 or curves[0].line:
        columns[report.axis.lines] = lambda curve, _: curve.line_name.partition(" ")[2]
    columns[report.axis.name] = lambda _, row: _place(report, row)
    columns["median"] = lambda _, row: amounts.number(row.point.median)
    columns["low"] = lambda _, row: amounts.number(row.point.low)
    columns["high"] = lambda _, row: amounts.number(row.point.high)
    columns["n"] = lambda _, row: str(len(row.point.values))
    if len({row.tasks for _, row in rows}) > 1:
        columns["a task"] = lambda _, row: amounts.number(row.per_task)
    if any(row.fair is not None for _, row in rows):
        columns["slowest rank"] = lambda _, row: _share(row.fair)
    shares = {id(row): _of_bound(report, curve, row) for curve, row in rows}
    if any(share is not None for share in shares.values()):
        columns["of the bound"] = lambda _, row: _bounded(shares[id(row)])
    title = ", ".join(filter(None, (first.metric, first.panel_name)))
    return table(columns, _cells(columns, rows), f"{title}, {first.unit}", right=columns)


def _cells(columns: Columns, rows: Iterable[tuple[Curve, Row]]) -> list[list[str]]:
    return [[cell(curve, row) for cell in columns.values()] for curve, row in rows]


def _place(report: SweepReport, row: Row) -> str:
    is_size = report.axis.kind == "size" and row.label.isdigit()
    return size(int(row.label)) if is_size else row.label


def _of_bound(report: SweepReport, curve: Curve, row: Row) -> float | None:
    limits = report.bounds_of(curve, row)
    return limits[0].share if limits else None


def _share(share: float | None) -> str:
    return "-" if share is None else amounts.per_cent(share)


def _bounded(share: float | None) -> str:
    return "-" if share is None else sweep_results.of_bound(share)


def draw(path: Path, reports: Sequence[SweepReport]) -> None:
    """Write the figure, whole or not at all. Raises UserError where there is nothing to draw."""
    named = [(_label(report, reports), report) for report in reports]
    found = sweep_figures.plots(named)
    if not found:
        raise UserError("--figure", "no point has a value, so there is nothing to draw")
    shared.write(path, line_plot.file(found, path.suffix[1:]))


def _label(report: SweepReport, reports: Sequence[SweepReport]) -> str:
    """The shortest name that distinguishes a run from the others."""
    names = _names(report)
    others = [_names(other) for other in reports]
    differing = [
        key for key, value in names.items() if any(value != other[key] for other in others)
    ]
    return " ".join(names[key] for key in differing) or names["session"]


def _names(report: SweepReport) -> dict[str, str]:
    run = report.run
    session = {"system": run.system, "session": run.sessions[-1]}
    return {**session, **same(run, "partition", "environment", "place")}
