"""siteproof sweep: Show what a sweep found: maximum, plateau, what limits the curve."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from siteproof import files, sites
from siteproof.analysis.plateau import At, Beyond, Decline, Place
from siteproof.cli import shared
from siteproof.cli.shared import (
    forms,
    print_answer,
    print_rows,
    print_table,
    print_text,
    table,
    text_option,
)
from siteproof.curves import run_findings, sweep_runs
from siteproof.curves.measured import ALL, Curve, Row
from siteproof.curves.run_findings import Reached, SweepReport
from siteproof.errors import ExitCode, UserError, UserErrors
from siteproof.export.documents import Answer, dumps, same
from siteproof.record import manifest
from siteproof.record.finding import Finding
from siteproof.record.samples import SWEEP, Sample
from siteproof.record.sessions import Sessions
from siteproof.report.chapters import sweeps
from siteproof.report.figure import line_plot
from siteproof.sweeps import reading
from siteproof.sweeps.reading import SweepFile
from siteproof.units import count, size
from siteproof.wording import findings, sweep_results
from siteproof.wording.findings import bound_name

FIGURES = (".svg", ".png")
Columns = dict[str, Callable[[Curve, Row], str]]
LISTED = ("sweep", "points", "newest run", "what it shows")
COLUMNS = (  # of a point
    *("system", "session", "partition", "environment", "place", "metric", "unit", "panel", "line"),
    *("axis", "at", "tasks", "tasks_per_node", "median", "low", "high", "repetitions", "per_task"),
    *("slowest_of_fastest", "bound", "bound_by"),
)
REACHED = {At: True, Beyond: False}  # any other plateau is unknown


@dataclass(frozen=True)
class Sweeps(Answer):
    """What a sweep found: 'siteproof sweep NAME --json'.

    exit_code: 0 all points have a value; 1 a point failed; 3 points are missing.
    sweep: The name of the sweep.
    runs: Each run: its points, and its curves with rows, plateau and fit. A plateau that was not
        reached is a text such as >166.
    findings: Points without a value, a plateau that was not reached, a rate above its bound.
    """

    sweep: str
    runs: Sequence[Mapping[str, Any]]
    findings: Sequence[Finding]


@click.command()
@click.argument("name", required=False, shell_complete=shared.by_sweep)
@shared.which_system
@text_option("--session", "ID", "Only the run of this session.")
@text_option("--campaign", "NAME", "Only the runs of this campaign.")
@shared.repeated("--with others", "[SYSTEM:]SESSION", "Another run to compare with")
@text_option("--figure", "FILE", "Draw the curves to FILE.svg or FILE.png.")
@forms(Sweeps)
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
    # Mistakes in the files of other sweeps do not matter.
    if broken := [e for d in documents if d.path.stem == name for e in d.sorted_mistakes()]:
        raise UserErrors(broken)
    reports = _reports(name, known, system, session, campaign)
    compared = [r for other in others for r in _compared(name, known, system, other)]
    if not reports:
        click.echo(_not_measured(name))
        raise SystemExit(ExitCode.INCOMPLETE)
    codes = {report.exit_code for report in reports}
    code = next((c for c in (ExitCode.FAIL, ExitCode.INCOMPLETE) if c in codes), ExitCode.PASS)
    if figure:
        draw(Path(figure), [*reports, *compared])
    _print(name, [*reports, *compared], code, form)
    raise SystemExit(code)


def _print(name: str, reports: Sequence[SweepReport], code: ExitCode, form: str) -> None:
    if form == "json":
        chosen = "; ".join(dict.fromkeys(str(report.run) for report in reports))
        answer = (reports[0].run.system, chosen, code, name, list(map(_run, reports)))
        click.echo(dumps(Sweeps(*answer, run_findings.of_reports(reports))))
    elif form:
        print_rows(COLUMNS, _points(reports), form)
    else:
        show(name, reports)


def _not_measured(name: str) -> str:
    """What to do about a sweep without any sample."""
    test = reading.camel_case(name)
    if any(stage.name.startswith(f"{test}_") for stage in manifest.pending(files.stages())):
        return f"{name}: begun, and no point is collected yet: siteproof collect"
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


def names(known: Mapping[str, SweepFile], history: Sequence[Sample]) -> list[tuple[str, ...]]:
    """The sweeps, and of each the newest session that has results."""
    runs = {run.name: run for run in sweep_runs.collect(history)}
    rows: list[tuple[str, ...]] = []
    for name in sorted({*known, *runs}):
        file, run = known.get(name), runs.get(name)
        newest = run.sessions[-1] if run else "none"
        what = "the site's 'scaling'" if run and run.is_scaling else "its file was removed"
        points = "-"
        if file:
            points, what = str(len(file.points)), file.sweep.description
        rows.append((name, points, newest, what))
    return rows


def _print_names(rows: Sequence[tuple[str, ...]], form: str) -> None:
    if form:
        print_rows(LISTED, rows, form)
        return
    print_table(table(LISTED, rows))
    run = [name for name, _, newest, _ in rows if newest != "none"]
    following = f"siteproof sweep {(run or [rows[0][0]])[0]}" if rows else "siteproof sites"
    print_answer(f"{count(len(rows), 'sweep')}, {len(run)} with a run", following)


def show(name: str, reports: Sequence[SweepReport]) -> None:
    """Tables and progress of each run, then the sentences of all."""
    # Several reports are of one run where it has several axes.
    runs = [list(of_run) for _, of_run in groupby(reports, key=lambda report: id(report.run))]
    for of_run in runs:
        print_text(f"{name}, {of_run[0].run}")
        for report in of_run:
            for lines in report.groups:
                print_table(_table(report, lines))
        print_text(*sweep_results.progress(of_run[0]))
    for of_run in runs:
        print_text(f"{name}, {of_run[0].run}:")
        texts = [text for report in of_run for text in sweep_results.headlines(report)]
        print_text(*(texts or ["no point has a value"]), title="  ")


def _table(report: SweepReport, lines: Sequence[Curve]) -> Table:
    """The rows of all curves of one metric and panel, without the best of all."""
    first = lines[0]
    curves = [curve for curve in lines if curve.line != ALL]
    rows = [(curve, row) for curve in curves for row in curve.rows]
    columns: Columns = {}
    if len(curves) > 1 or curves[0].line:
        columns[report.axis.lines] = lambda curve, _: curve.line_name.partition(" ")[2]
    columns[report.axis.name] = lambda _, row: _place(report, row)
    columns["median"] = lambda _, row: findings.number(row.point.median)
    columns["low"] = lambda _, row: findings.number(row.point.low)
    columns["high"] = lambda _, row: findings.number(row.point.high)
    columns["n"] = lambda _, row: str(len(row.point.values))
    if first.better == "higher" and len({row.tasks for _, row in rows}) > 1:
        columns["a task"] = lambda _, row: findings.number(row.per_task)
    columns |= _efficiency(report, first)
    if any(row.fair is not None for _, row in rows):
        columns["slowest rank"] = lambda _, row: _share(row.fair)
    if any(report.bounds_of(curve, row) for curve, row in rows):
        columns["of the bound"] = lambda curve, row: _of_bound(report.bounds_of(curve, row))
    title = ", ".join(filter(None, (first.metric, first.panel_name)))
    cells = [[cell(curve, row) for cell in columns.values()] for curve, row in rows]
    return table(columns, cells, f"{title}, {first.unit}", right=columns)


def _efficiency(report: SweepReport, curve: Curve) -> Columns:
    """The column of a program over growing numbers of nodes."""
    shares = report.efficiency_of(curve)
    return {"efficiency": lambda _, row: findings.per_cent(shares[row.nodes])} if shares else {}


def _place(report: SweepReport, row: Row) -> str:
    is_size = report.axis.kind == "size" and row.label.isdigit()
    return size(int(row.label)) if is_size else row.label


def _share(share: float | None) -> str:
    return "-" if share is None else findings.per_cent(share)


def _of_bound(limits: Sequence[Reached]) -> str:
    return sweep_results.of_bound(limits[0].share) if limits else "-"


def draw(path: Path, reports: Sequence[SweepReport]) -> None:
    """Write the figure, whole or not at all. Raises UserError where there is nothing to draw."""
    named = [(_label(report, reports), report) for report in reports]
    found = sweeps.plots(named)
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


# ---- programs


def _points(reports: Sequence[SweepReport]) -> Iterator[Sequence[object]]:
    """A row of COLUMNS for each point; None where there is none."""
    for report in reports:
        curves = [curve for lines in report.groups for curve in lines if curve.line != ALL]
        for curve, row in ((one, row) for one in curves for row in one.rows):
            values = _row(report, curve, row)
            tightest = values["bounds"][0] if values["bounds"] else {}
            values |= {
                **_names(report),
                **same(curve, "metric", "unit", "panel", "line"),
                **same(row.point, "low", "high"),
                "axis": report.axis.name,
                "repetitions": len(row.point.values),
                "bound": tightest.get("limit"),
                "bound_by": tightest.get("by"),
            }
            yield [values[name] for name in COLUMNS]


def _run(report: SweepReport) -> dict[str, Any]:
    run, found = report.run, report.progress
    return {
        **same(run, "system", "partition", "environment", "place", "sessions"),
        "axis": report.axis.name,
        "points": {
            "done": found.done,
            "planned": found.planned,
            "missing": [str(point) for point in found.missing],
            "failed": list(map(sweep_results.failure, found.failed)),
            "not_measured": list(map(sweep_results.failure, found.untried)),
            "too_large": [str(point) for point in found.too_large],
            "caps": dict(run.caps),
            "above_caps": [str(point) for point in found.above_caps],
        },
        "curves": [_curve(report, curve) for lines in report.groups for curve in lines],
        "tasks_per_node": {
            key: same(p, "most", "compared_at") for key, p in report.packings.items()
        },
        "told": sweep_results.headlines(report),
    }


def _curve(report: SweepReport, curve: Curve) -> dict[str, Any]:
    plain: dict[str, Any] = {
        **same(curve, "metric", "unit", "panel", "line"),
        "best": curve.best.point.median,
        "best_at": curve.best.label,
        "rows": [_row(report, curve, row) for row in curve.rows],
    }
    shape = curve.shape
    if shape is None:
        return plain
    return plain | {
        "plateau": _plateau(shape.plateau),
        "plateau_reached": REACHED.get(type(shape.plateau)),
        "fit": shape.fit,
        "decline": _plateau(shape.decline),
        "noise": shape.noise,
        "last_doubling": shape.gain,
    }


def _plateau(place: Place | Decline) -> float | str:
    return place.x if isinstance(place, At) else sweep_results.place(place)


def _row(report: SweepReport, curve: Curve, row: Row) -> dict[str, Any]:
    limits = [
        {"by": bound_name(one.bound.part, one.bound.count), "limit": one.limit}
        for one in report.bounds_of(curve, row)
    ]
    return {
        **same(row, "tasks", "tasks_per_node", "per_task"),
        **same(row.point, "values", "median"),
        "at": row.label,
        "slowest_of_fastest": row.fair,
        "bounds": limits,
    }
