"""`siteproof sweep`: what a parallel sweep found, as tables, sentences and a figure."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from siteproof import figure, files, sites
from siteproof.cli import shared
from siteproof.curves import run_findings, sweep_runs
from siteproof.curves.measured import ALL, Curve, Row
from siteproof.curves.run_findings import SweepReport
from siteproof.errors import ExitCode, UserError, UserErrors
from siteproof.export import sweep_rows
from siteproof.export.sweep_rows import point_of
from siteproof.record import manifest
from siteproof.record.samples import Sample
from siteproof.record.series import SWEEP
from siteproof.record.sessions import Sessions
from siteproof.report import sweep_figures
from siteproof.schema.shapes import hint
from siteproof.sweeps import reading
from siteproof.sweeps.reading import SweepFile, camel_case
from siteproof.wording import sweep_results

FIGURES = (".svg", ".png")


@click.command()
@click.argument("name", required=False)
@shared.which_system
@click.option("--session", default="", metavar="ID", help="Only the run of this session.")
@click.option("--campaign", default="", metavar="NAME", help="Only the runs of this campaign.")
@click.option(
    "--with",
    "others",
    multiple=True,
    metavar="[SYSTEM:]SESSION",
    help="Another run to compare with; may be repeated.",
)
@click.option(
    "--figure", default="", metavar="FILE", help="Draw the curves to FILE.svg or FILE.png."
)
@click.option("--json", "as_json", is_flag=True, help="For programs: one JSON object.")
@click.option("--csv", "as_csv", is_flag=True, help="For programs: one line for each point.")
def sweep(
    name: str | None,
    system: str,
    session: str,
    campaign: str,
    others: tuple[str, ...],
    figure: str,
    as_json: bool,
    as_csv: bool,
) -> None:
    """Show what the sweep NAME found: maximum, plateau, decline, and what limits the curve.

    Without NAME, list the sweeps. Exit code 1: a point failed; 3: points are missing.

    \b
    siteproof sweep ior_tasks
    siteproof sweep ior_tasks --figure ior.svg --with 20261120T180000Z-1f2e
    """
    if figure and Path(figure).suffix not in FIGURES:
        raise UserError("--figure", f"'{figure}' is not a figure's file", "FILE.svg, FILE.png")
    if as_json and as_csv:
        raise UserError("--csv", "beside --json", hint="Use one of the two")
    known, documents = reading.examine()
    files.must_exist()
    if name is None:
        if session or campaign or others or figure or as_csv or as_json:
            raise UserError("NAME", "no sweep is named", known)
        names(known, _history(system))
        return
    broken = [e for d in documents if d.path.stem == name for e in d.sorted_mistakes()]
    if broken:
        raise UserErrors(broken)
    reports = _reports(name, known, system, session, campaign)
    beside = [r for other in others for r in _beside(name, known, system, other)]
    if not reports:
        begun = any(
            stage.name.startswith(f"{reading.camel_case(name)}_")
            for stage in manifest.pending(files.stages())
        )
        click.echo(
            f"{name}: begun, and no point is a sample yet: 'siteproof collect' takes over "
            "what was interrupted"
            if begun
            else f"{name}: not measured yet: reframe -c sweeps/ -n {reading.camel_case(name)} -r"
        )
        raise SystemExit(ExitCode.INCOMPLETE)
    if figure:
        draw(Path(figure), [*reports, *beside])
    code = _exit_code(reports)
    if as_json:
        click.echo(json.dumps(sweep_rows.record(name, [*reports, *beside], code), indent=1))
    elif as_csv:
        csv.writer(sys.stdout, lineterminator="\n").writerows(sweep_rows.cells([*reports, *beside]))
    else:
        tell(name, reports, beside)
    raise SystemExit(code)


def _history(system: str) -> list[Sample]:
    system = system or sites.recognise()
    sites.trust(system)
    sessions = Sessions(files.perflogs(), system)
    return sessions.of(lambda header: SWEEP in header.conditions)


def _reports(
    name: str, known: dict[str, SweepFile], system: str, session: str, campaign: str
) -> list[SweepReport]:
    """The runs that were asked for; none where it was never run. Raises UserError."""
    site = sites.load(system or sites.recognise())
    runs = sweep_runs.collect(_history(site.system.system))
    mine = [run for run in runs if run.name == name]
    if name not in known and not mine:
        names = sorted({*known, *(run.name for run in runs)})
        raise UserError("NAME", f"no sweep '{name}'{hint(name, names)}", names)
    if not mine and not (session or campaign):
        return []
    chosen = sweep_runs.choose(mine, session=session, campaign=campaign)
    return [r for run in chosen for r in run_findings.reports(site, run, known.get(name))]


def _beside(name: str, known: dict[str, SweepFile], system: str, text: str) -> list[SweepReport]:
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


WIDTH = 132  # columns where nobody looks at a terminal
NAMED = 8  # points that are named of each kind


def names(known: Mapping[str, SweepFile], history: Sequence[Sample]) -> None:
    """The sweeps, and of each the newest session that has results."""
    console = _console()
    runs = {run.name: run for run in sweep_runs.collect(history)}
    table = Table()
    for column in ("sweep", "points", "newest run", "what it shows"):
        table.add_column(column, overflow="fold")
    for name in sorted({*known, *runs}):
        file, run = known.get(name), runs.get(name)
        table.add_row(
            *map(
                Text,
                (
                    name,
                    str(len(file.points)) if file else "-",
                    run.sessions[-1] if run else "none",
                    file.sweep.description if file else "its file is gone",
                ),
            )
        )
    console.print(table)
    _line(console, f"{len(known)} sweeps; 'siteproof sweep NAME' tells of one")


def tell(name: str, reports: Sequence[SweepReport], beside: Sequence[SweepReport]) -> None:
    """Tables and progress of each run, then the sentences of all."""
    console = _console()
    for run in _by_run((*reports, *beside)):
        _line(console, f"{name}, {run[0].run}")
        for report in run:
            for lines in report.groups:
                _table(console, report, lines)
        for text in _progress(run[0]):
            _line(console, text)
    for run in _by_run((*reports, *beside)):
        _line(console, f"{name}, {run[0].run}:")
        for text in [t for report in run for t in sweep_results.headlines(report)] or ["no figure"]:
            _line(console, f"  {text}")


def _by_run(reports: Sequence[SweepReport]) -> list[list[SweepReport]]:
    """The reports of a run together: several where it has several axes."""
    held: dict[int, list[SweepReport]] = {}
    for report in reports:
        held.setdefault(id(report.run), []).append(report)
    return list(held.values())


def _table(console: Console, report: SweepReport, lines: Sequence[Curve]) -> None:
    first = lines[0]
    shown = [curve for curve in lines if curve.line != ALL]
    with_lines, ranks = (
        len(shown) > 1 or shown[0].line,
        any(row.fair is not None for curve in shown for row in curve.rows),
    )
    tasks = len({row.tasks for curve in shown for row in curve.rows}) > 1
    title = ", ".join(filter(None, (first.metric, first.told_panel)))
    bounds = any(report.bounds_of(curve, row) for curve in shown for row in curve.rows)
    table = Table(title=Text(f"{title}, {first.unit}"), title_justify="left")
    heads = (
        [report.axis.lines] * bool(with_lines)
        + [report.axis.name, "median", "low", "high", "n"]
        + ["a task"] * tasks
        + ["slowest rank"] * ranks
        + ["of the bound"] * bounds
    )
    for head in heads:
        table.add_column(head, justify="right")
    for curve in shown:
        for row in curve.rows:
            cells = [_value(curve.told_line)] * bool(with_lines) + _cells(report, row)
            cells += [sweep_results.number(row.per_task)] * tasks
            cells += ["-" if row.fair is None else sweep_results.per_cent(row.fair)] * ranks
            limits = report.bounds_of(curve, row)
            cells += [sweep_results.per_cent(limits[0].share) if limits else "-"] * bounds
            table.add_row(*map(Text, cells))
    console.print(table)


def _value(line: str) -> str:
    return line.partition(" ")[2]


def _cells(report: SweepReport, row: Row) -> list[str]:
    point = row.point
    place = sweep_figures.place_label(report.axis, row)
    return [
        place.partition(" (")[0],
        *map(sweep_results.number, (point.median, point.low, point.high)),
        str(len(point.values)),
    ]


def _progress(report: SweepReport) -> Iterator[str]:
    """How far it came, and by name what failed and what is missing."""
    found = report.progress
    if found.planned is None:
        yield (
            f"{report.run}: {found.done} points; its sweep file is gone or has changed since, "
            "so nobody knows whether any is missing"
        )
    else:
        yield f"{report.run}: {found.done} of {found.planned} points"
    for sample in found.failed[:NAMED]:
        yield f"failed: {point_of(sample)}: {sample.status}: {sample.why}"
    for sample in found.untried[:NAMED]:
        yield f"not measured: {point_of(sample)}: {sample.status}: {sample.why}"
    for point in found.missing[:NAMED]:
        yield f"missing: {point}"
    for kind, count in (
        ("failed", len(found.failed)),
        ("not measured", len(found.untried)),
        ("missing", len(found.missing)),
    ):
        if count > NAMED:
            yield f"and {count - NAMED} more {kind}"
    if found.missing or found.untried:
        test, mode = camel_case(report.run.name), report.run.newest.header.mode
        if report.run.place:  # only there, and not on every file system or link
            test = f"'^{test}%.*={re.escape(report.run.place)}$'"
        yield (
            f"to go on: reframe -c sweeps/ -n {test} -r -S resume={report.run.sessions[-1]}"
            + (f" --mode {mode}" if mode else "")
        )
    if found.too_large:
        most = max(point.nodes for point in found.too_large)
        yield (
            f"left out: {len(found.too_large)} points of up to {most} nodes: partition "
            f"{report.run.partition} has fewer, or they do not see each other's files"
        )


def draw(path: Path, reports: Sequence[SweepReport]) -> None:
    """Write the figure, whole or not at all. Raises UserError where there is nothing to draw."""
    named = [(_label(report, reports), report) for report in reports]
    found = sweep_figures.plots(named)
    if not found:
        raise UserError("--figure", "no point has a figure, so there is nothing to draw")
    svg = path.suffix == ".svg"
    shared.write(path, figure.svg(found).encode() if svg else figure.png(found))


def _label(report: SweepReport, reports: Sequence[SweepReport]) -> str:
    """The shortest name that tells a run from the others."""
    run = report.run
    told = {
        "system": run.system,
        "session": run.sessions[-1],
        "partition": run.partition,
        "environment": run.environment,
        "place": run.place,
    }
    differs = [
        key
        for key, value in told.items()
        if any(
            value != (r.run.sessions[-1] if key == "session" else getattr(r.run, key))
            for r in reports
        )
    ]
    return " ".join(told[key] for key in differs) or run.sessions[-1]


def _console() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=WIDTH)


def _line(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)
