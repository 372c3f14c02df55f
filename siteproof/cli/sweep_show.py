"""How `siteproof sweep` shows its reports: list, tables, sentences, rows for programs, pictures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from siteproof import figure, sweep_pictures, sweep_runs, sweep_words
from siteproof.analysis.curves import At, Beyond
from siteproof.errors import UserError
from siteproof.samples import Sample, write_whole
from siteproof.sweep_report import SweepReport
from siteproof.sweep_tables import ALL, Curve, Row
from siteproof.sweeps.files import SweepFile, camel_case

WIDTH = 132  # columns where nobody looks at a terminal
NAMED = 8  # points that are named of each kind
COLUMNS = (
    "system", "session", "partition", "environment", "place", "metric", "unit", "panel", "line",
    "axis", "at", "tasks", "tasks_per_node", "median", "low", "high", "repetitions", "per_task",
    "slowest_of_fastest", "bound", "bound_by",
)


def names(known: Mapping[str, SweepFile], history: Sequence[Sample]) -> None:
    """The sweeps, and of each the newest session that has results."""
    console = _console()
    runs = {run.name: run for run in sweep_runs.collect(history)}
    table = Table()
    for column in ("sweep", "points", "newest run", "what it shows"):
        table.add_column(column, overflow="fold")
    for name in sorted({*known, *runs}):
        file, run = known.get(name), runs.get(name)
        table.add_row(*map(Text, (
            name, str(len(file.points)) if file else "-",
            run.sessions[-1] if run else "none",
            file.sweep.description if file else "its file is gone")))
    console.print(table)
    _line(console, f"{len(known)} sweeps; 'siteproof sweep NAME' tells of one")


def tell(name: str, reports: Sequence[SweepReport], beside: Sequence[SweepReport]) -> None:
    """Tables and progress of each run, then the sentences of all."""
    console = _console()
    for run in _by_run((*reports, *beside)):
        for report in run:
            for lines in report.groups:
                _table(console, report, lines)
        for text in _progress(run[0]):
            _line(console, text)
    for run in _by_run((*reports, *beside)):
        _line(console, f"{name}, {run[0].run}:")
        for text in [t for report in run for t in sweep_words.headlines(report)] or ["no figure"]:
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
    with_lines, ranks = len(shown) > 1 or shown[0].line, any(
        row.fair is not None for curve in shown for row in curve.rows)
    tasks = len({row.tasks for curve in shown for row in curve.rows}) > 1
    title = ", ".join(filter(None, (first.metric, first.panel)))
    table = Table(title=Text(f"{report.run}: {title}, {first.unit}"), title_justify="left")
    heads = [report.axis.lines] * bool(with_lines) + [
        report.axis.name, "median", "low", "high", "n"] + ["a task"] * tasks + [
        "slowest rank"] * ranks + ["of the bound"]
    for head in heads:
        table.add_column(head, justify="right")
    for curve in shown:
        for row in curve.rows:
            cells = [_value(curve.line)] * bool(with_lines) + _cells(report, row)
            cells += [sweep_words.number(row.per_task)] * tasks
            cells += ["-" if row.fair is None else sweep_words.per_cent(row.fair)] * ranks
            limits = report.bounds_of(curve, row)
            cells.append(sweep_words.per_cent(limits[0].share) if limits else "-")
            table.add_row(*map(Text, cells))
    console.print(table)


def _value(line: str) -> str:
    return line.partition(" ")[2]


def _cells(report: SweepReport, row: Row) -> list[str]:
    point = row.point
    place = sweep_pictures.place_label(report.axis, row)
    return [place.partition(" (")[0], *map(sweep_words.number, (
        point.median, point.low, point.high)), str(len(point.values))]


def _progress(report: SweepReport) -> Iterator[str]:
    """How far it came, and by name what failed and what is missing."""
    found = report.progress
    if found.planned is None:
        yield (f"{report.run}: {found.done} points; its sweep file is gone or has changed since, "
               "so nobody knows whether any is missing")
    else:
        yield f"{report.run}: {found.done} of {found.planned} points"
    for sample in found.failed[:NAMED]:
        yield f"failed: {_point(sample)}: {sample.status}: {sample.why}"
    for sample in found.untried[:NAMED]:
        yield f"not measured: {_point(sample)}: {sample.status}: {sample.why}"
    for point in found.missing[:NAMED]:
        yield f"missing: {point}"
    for kind, count in (("failed", len(found.failed)), ("not measured", len(found.untried)),
                        ("missing", len(found.missing))):
        if count > NAMED:
            yield f"and {count - NAMED} more {kind}"
    if found.missing or found.untried:
        test = camel_case(report.run.name)
        yield f"to go on: reframe -c sweeps/ -n {test} -r -S resume={report.run.sessions[-1]}"
    if found.too_large:
        most = max(point.nodes for point in found.too_large)
        yield (f"left out: {len(found.too_large)} points that need up to {most} nodes, more than "
               f"partition {report.run.partition} has")


def _point(sample: Sample) -> str:
    told = " ".join(f"{k}={v}" for k, v in sample.dims.items())
    told += f" trial={sample.trial}" if sample.trial else ""
    return told or f"job {sample.header.job}"


def draw(path: Path, reports: Sequence[SweepReport]) -> None:
    """Write the figure, whole or not at all. Raises UserError where there is nothing to draw."""
    named = [(_label(report, reports), report) for report in reports]
    found = sweep_pictures.pictures(named)
    if not found:
        raise UserError("--figure", "no point has a figure, so there is nothing to draw")
    if path.suffix == ".svg":
        write_whole(path, figure.svg(found).encode())
    else:
        write_whole(path, figure.png(found))


def _label(report: SweepReport, reports: Sequence[SweepReport]) -> str:
    """The shortest name that tells a run from the others."""
    run = report.run
    told = {
        "system": run.system, "session": run.sessions[-1], "partition": run.partition,
        "environment": run.environment, "place": run.place,
    }
    differs = [
        key for key, value in told.items()
        if any(value != (r.run.sessions[-1] if key == "session" else getattr(r.run, key))
               for r in reports)
    ]
    return " ".join(told[key] for key in differs) or run.sessions[-1]


def cells(reports: Sequence[SweepReport]) -> Iterator[Sequence[object]]:
    """A line a point, below the columns' names."""
    yield COLUMNS
    for report in reports:
        run = report.run
        head = (run.system, run.sessions[-1], run.partition, run.environment, run.place)
        for lines in report.groups:
            for curve in lines if lines else ():
                if curve.line == ALL:
                    continue
                for row in curve.rows:
                    limits = report.bounds_of(curve, row)
                    yield (
                        *head, curve.metric, curve.unit, curve.panel, curve.line,
                        report.axis.name, row.label, row.tasks, row.tasks_per_node,
                        row.point.median, row.point.low, row.point.high, len(row.point.values),
                        row.per_task, "" if row.fair is None else row.fair,
                        limits[0].limit if limits else "", limits[0].what if limits else "")


def record(name: str, reports: Sequence[SweepReport], code: int) -> dict[str, Any]:
    """One object for programs; a plateau that was not reached is a text such as >166."""
    return {"sweep": name, "exit_code": int(code), "runs": [_run(r) for r in reports]}


def _run(report: SweepReport) -> dict[str, Any]:
    run, found = report.run, report.progress
    return {
        "system": run.system, "partition": run.partition, "environment": run.environment,
        "place": run.place, "sessions": list(run.sessions), "axis": report.axis.name,
        "points": {
            "done": found.done, "planned": found.planned,
            "missing": [str(point) for point in found.missing],
            "failed": [f"{_point(s)}: {s.status}: {s.why}" for s in found.failed],
            "not_measured": [f"{_point(s)}: {s.status}: {s.why}" for s in found.untried],
            "too_large": [str(point) for point in found.too_large],
        },
        "curves": [_curve(report, curve) for lines in report.groups for curve in lines],
        "tasks_per_node": {
            key: {"most": p.most, "compared_at": p.compared_at} for key, p in
            report.packings.items()},
        "told": sweep_words.headlines(report),
    }


def _curve(report: SweepReport, curve: Curve) -> dict[str, Any]:
    found = curve.finding
    told: dict[str, Any] = {
        "metric": curve.metric, "unit": curve.unit, "panel": curve.panel, "line": curve.line,
        "best": curve.best.point.median, "best_at": curve.best.label,
        "rows": [
            {"at": r.label, "tasks": r.tasks, "tasks_per_node": r.tasks_per_node,
             "values": r.point.values, "median": r.point.median, "per_task": r.per_task,
             "slowest_of_fastest": r.fair,
             "bounds": [{"by": b.what, "limit": b.limit} for b in report.bounds_of(curve, r)]}
            for r in curve.rows],
    }
    if found:
        reached = isinstance(found.plateau, At)
        told |= {
            "plateau": found.plateau.x if isinstance(found.plateau, At) else str(found.plateau),
            "plateau_reached": False if isinstance(found.plateau, Beyond) else reached or None,
            "fit": found.fit.x if found.fit else None,
            "decline": found.decline.x if isinstance(found.decline, At) else str(found.decline),
            "noise": found.noise, "last_doubling": found.gain,
        }
    return told


def _console() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=WIDTH)


def _line(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)
