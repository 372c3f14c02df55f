"""Sweeps: the curves of this system, the newest run of each with its earlier ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import compress
from typing import NamedTuple

from siteproof.analysis.plateau import At, Beyond
from siteproof.compare.published import table_cells
from siteproof.curves import run_findings, sweep_runs, whole_sweep
from siteproof.curves.measured import Curve
from siteproof.curves.run_findings import SweepReport
from siteproof.curves.sweep_runs import SweepRun
from siteproof.record.grouped import grouped
from siteproof.record.samples import SWEEP, Sample
from siteproof.report import promised, sweep_figures
from siteproof.report.figure import line_plot as drawn
from siteproof.report.figure.line_plot import Line, LinePlot
from siteproof.report.material import Material
from siteproof.report.sections import Figure, Section, Table, day, few
from siteproof.report.sweep_figures import Named, ShownRun
from siteproof.sweeps import reading
from siteproof.units import count, with_unit
from siteproof.wording import amounts, sweep_results

MAX_RUNS = 4  # of one sweep in one figure
MAX_NAMES = 4  # runs in a sentence
MAX_FIGURES = 8


class _Landmark(NamedTuple):
    """What is published of one curve."""

    name: str
    most: Sample
    tasks: Sample
    plateau: Sample | None


COLUMNS = ("curve", "points", "best", "at", "plateau", "of the bound")


def chapter(material: Material) -> Section | None:
    """A figure for each metric of each sweep; none where this system has no sweep."""
    found = sweep_runs.collect(material.sessions.of(lambda head: SWEEP in head.conditions))
    figures, reports, points = list[Figure](), list[SweepReport](), list[str]()
    headlines = list[str]()
    seen: dict[str, int] = {}
    for name in dict.fromkeys(run.name for run in reversed(found)):
        runs = _newest(found, name)
        points += [f"{name}: not drawn: {run.system} {_campaign(run)}" for run in runs[MAX_RUNS:]]
        file = reading.examine()[0].get(name)
        named = [
            (_label(run, runs[:MAX_RUNS]), report)
            for run in runs[:MAX_RUNS]
            for report in run_findings.reports(material.site, run, file)
        ]
        reports += [report for _, report in named]
        figures += _drawn(named, seen)
        headlines += _headlines(name, named)
    published = list(_landmarks(material))
    if not figures and not published:
        return None
    points += [f"Not drawn: {figure.title}" for figure in figures[MAX_FIGURES:]]
    shown = [*figures[:MAX_FIGURES], *published]
    return Section("sweeps", "Sweeps", _lead(reports), figures=shown, points=[*headlines, *points])


def _headlines(name: str, named: Named) -> Iterator[str]:
    """What the runs of a sweep found, each with its name."""
    for label, report in named:
        yield from (f"{name}, {label}: {text}" for text in sweep_results.headlines(report))


def _lead(reports: Sequence[SweepReport]) -> str:
    if not reports:
        return "No sweep of this system was run; what others have published of one is drawn."
    names = few(list(dict.fromkeys(report.run.name for report in reports)), MAX_NAMES)
    runs_drawn = count(len({id(report.run) for report in reports}), "run")
    return f"{runs_drawn} of sweeps of this system ({names})."


def _landmarks(material: Material) -> Iterator[Figure]:
    """Of reads and of writes what others have published of a curve: its maximum and its plateau."""
    by_run = grouped((s.header.session, s) for s in material.published if s.status == "ok")
    for way in ("read", "write"):
        found = [mark for run in by_run.values() for mark in _marks(run, way)]
        if found:
            yield _published(way, found)


def _marks(run: Sequence[Sample], way: str) -> Iterator[_Landmark]:
    """The maximum of each check of a run that has its place, and the plateau if it is published."""
    of = {s.metric.partition(".")[2]: s for s in run}
    most, tasks = of.get(f"{way}_max"), of.get(f"{way}_max_tasks")
    if most and tasks:
        name = most.header.campaign or day(most.header.time)
        yield _Landmark(name, most, tasks, of.get(f"{way}_plateau"))


def _published(way: str, found: Sequence[_Landmark]) -> Figure:
    """Points without a curve; a line up marks where a plateau begins."""
    lines, rows, metric = list[Line](), [], found[0].most.metric
    unit = found[0].most.unit
    for one in found:
        at, value = (
            float(one.tasks.number),
            promised.converted(one.most.number, one.most.unit, unit),
        )
        lines.append(Line(f"{one.name}, maximum at {table_cells.shown(one.tasks)}", [at], [value]))
        plateau = table_cells.shown(one.plateau) if one.plateau else "-"
        if one.plateau:
            begins = float(one.plateau.number)
            lines.append(Line(f"{one.name}, plateau from {plateau}", [begins] * 2, [0.0, value]))
        shown = table_cells.shown(one.most), table_cells.shown(one.tasks)
        rows.append((one.name, *shown, plateau, table_cells.when(one.most)))
    title = f"{metric} against tasks, as published"
    plot = LinePlot(title, "tasks", f"{metric}, {unit}", lines, from_one=True)
    caption = f"{count(len(found), 'maximum', 'maxima')} of curves whose points are not published."
    table = Table(("run", "maximum", "at", "plateau from", "date"), rows, numeric=("maximum",))
    return Figure(f"sweep-published-{way}", title, drawn.draw(plot), caption, table, [metric])


def _newest(found: Sequence[SweepRun], name: str) -> list[SweepRun]:
    """The newest run of each campaign and place, the newest first; one without a campaign."""
    newest: dict[tuple[str, ...], SweepRun] = {}
    for run in reversed(found):
        if run.name == name:
            key = (run.partition, run.environment, run.place, run.newest.header.campaign)
            newest.setdefault(key, run)
    return list(newest.values())


def _campaign(run: SweepRun) -> str:
    return run.newest.header.campaign or day(run.newest.header.time)


def _label(run: SweepRun, runs: Sequence[SweepRun]) -> str:
    """System, and what differs between its runs."""
    own, *others = (
        (one.partition, one.environment, one.place, _campaign(one)) for one in (run, *runs)
    )
    differ = (len(set(values)) > 1 for values in zip(*others, strict=True))
    return " ".join([run.system, *compress(own, differ)])


def _drawn(named: Named, seen: dict[str, int]) -> Iterator[Figure]:
    several = len({label for label, _ in named}) > 1
    for shown in sweep_figures.by_figure(named):
        first, sweep = shown[0].lines[0], shown[0].report.run.name
        plot = sweep_figures.plot(shown, several)
        base = f"sweep-{promised.slug(sweep)}-{promised.slug(first.metric)}"
        name, title = promised.own_name(base, seen), f"{plot.title}, {first.unit}"
        caption, table = _caption(plot, first.unit), _table(shown, several)
        # With the metric what is derived from its curve, such as the highest value.
        derived = [m for m in whole_sweep.METRICS if m.startswith(f"{first.metric}_")]
        yield Figure(name, title, drawn.draw(plot), caption, table, [first.metric, *derived])


def _caption(plot: LinePlot, unit: str) -> str:
    places = len(plot.labels) or len({x for line in plot.lines for x in line.xs})
    text = f"{count(len(plot.lines), 'curve')} over {count(places, 'place')}"
    value, name = max((max(line.values), line.name) for line in plot.lines)
    text += f", highest {amounts.number(value)} {unit}"
    return f"{text} of {name}." if len(plot.lines) > 1 else f"{text}."


def _table(shown: Sequence[ShownRun], several: bool) -> Table:
    """A row for each curve."""
    rows = [_row(one, curve, several) for one in shown for curve in one.curves]
    return Table(COLUMNS, rows, "Best is a median of a place.", numeric=COLUMNS[1:3])


def _row(shown: ShownRun, curve: Curve, several: bool) -> tuple[str, ...]:
    best, axis = curve.best, shown.report.axis
    limits = shown.report.bounds_of(curve, best)
    plateau = curve.shape.plateau if curve.shape else None
    where = "-"
    if isinstance(plateau, At):
        where = amounts.at(axis.name, plateau.x)
    elif isinstance(plateau, Beyond):
        where = f"> {amounts.at(axis.name, plateau.last)}"
    return (
        sweep_figures.curve_name(shown, curve, several),
        str(len(curve.rows)),
        with_unit(amounts.number(best.point.median), curve.unit),
        amounts.at(axis.name, best.label),
        where,
        sweep_results.of_bound(limits[0].share) if limits else "-",
    )
