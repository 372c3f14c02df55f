"""Sweeps: the curves of this system, the newest run of each with its earlier ones.

The figures of a sweep, from the reports on its runs, as data for siteproof.report.figure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, groupby
from typing import NamedTuple

from siteproof.analysis.plateau import At, Beyond
from siteproof.compare.published import ratios
from siteproof.curves import run_findings, sweep_runs, whole_sweep
from siteproof.curves.measured import ALL, Curve, Row, ordered
from siteproof.curves.run_findings import Reached, SweepReport
from siteproof.curves.sweep_runs import SweepRun
from siteproof.record.pair_units import grouped
from siteproof.record.samples import SWEEP, Sample
from siteproof.report import past
from siteproof.report.figure import line_plot as drawn
from siteproof.report.figure.line_plot import Line, LinePlot
from siteproof.report.material import Material
from siteproof.report.sections import Figure, Section, Table, day, few
from siteproof.sweeps import reading
from siteproof.units import count, with_unit
from siteproof.wording import findings, sweep_results
from siteproof.wording.findings import at, bound_name, number

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
        if left := [f"{run.system} {_campaign(run)}" for run in runs[MAX_RUNS:]]:
            points.append(f"{name}: not drawn: {few(left, MAX_NAMES)}")
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
        at, value = (float(one.tasks.number), past.converted(one.most.number, one.most.unit, unit))
        lines.append(Line(f"{one.name}, maximum at {ratios.shown(one.tasks)}", [at], [value]))
        plateau = ratios.shown(one.plateau) if one.plateau else "-"
        if one.plateau:
            begins = float(one.plateau.number)
            lines.append(Line(f"{one.name}, plateau from {plateau}", [begins] * 2, [0.0, value]))
        shown = ratios.shown(one.most), ratios.shown(one.tasks)
        rows.append((one.name, *shown, plateau, ratios.when(one.most)))
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
    for shown in by_figure(named):
        first, sweep = shown[0].lines[0], shown[0].report.run.name
        plot = plot_of_run(shown, several)
        base = f"sweep-{past.slug(sweep)}-{past.slug(first.metric)}"
        name, title = past.own_name(base, seen), f"{plot.title}, {first.unit}"
        caption, table = _caption(plot, first.unit), _table(shown, several)
        # With the metric what is derived from its curve, such as the highest value.
        derived = [m for m in whole_sweep.METRICS if m.startswith(f"{first.metric}_")]
        yield Figure(name, title, drawn.draw(plot), caption, table, [first.metric, *derived])


def _caption(plot: LinePlot, unit: str) -> str:
    places = len(plot.labels) or len({x for line in plot.lines for x in line.xs})
    text = f"{count(len(plot.lines), 'curve')} over {count(places, 'place')}"
    value, name = max((max(line.values), line.name) for line in plot.lines)
    text += f", highest {findings.number(value)} {unit}"
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
        where = findings.at(axis.name, plateau.x)
    elif isinstance(plateau, Beyond):
        where = f"> {findings.at(axis.name, plateau.last)}"
    return (
        curve_name(shown, curve, several),
        str(len(curve.rows)),
        with_unit(findings.number(best.point.median), curve.unit),
        findings.at(axis.name, best.label),
        where,
        sweep_results.of_bound(limits[0].share) if limits else "-",
    )


MAX_FIGURES_OF_FILE = 12  # in one file
LOG_SPAN = 30.0  # highest over lowest value, from which on a time has a logarithmic axis

Named = Sequence[tuple[str, SweepReport]]  # each with the unique name of its run


@dataclass(frozen=True)
class ShownRun:
    """What a figure shows of one run. lines: the curves of one metric, with the best of all."""

    run: str
    report: SweepReport
    lines: Sequence[Curve]

    @property
    def curves(self) -> list[Curve]:
        """The curves that are drawn."""
        return [curve for curve in self.lines if curve.line != ALL]


def by_figure(reports: Named) -> list[list[ShownRun]]:
    """The curves of all runs, by what shares a figure: axis, metric and panel."""
    found = grouped(
        ((report.axis.name, lines[0].metric, lines[0].panel), ShownRun(name, report, lines))
        for name, report in reports
        for lines in report.groups
    )
    return list(found.values())


def plots(reports: Named) -> list[LinePlot]:
    """A figure for each axis, metric and panel, with the curves of all runs."""
    several = len({name for name, _ in reports}) > 1
    return [plot_of_run(shown, several) for shown in by_figure(reports)[:MAX_FIGURES_OF_FILE]]


def plot_of_run(shown: Sequence[ShownRun], several: bool) -> LinePlot:
    """One figure. several: it has several runs, which differ by their names."""
    first, axis = shown[0].lines[0], shown[0].report.axis
    labels = _labels(shown)
    medians = [row.point.median for one in shown for curve in one.curves for row in curve.rows]
    what = ", ".join(filter(None, (first.metric, first.panel_name)))
    title = f"{what} against {axis.name}"
    bound = None
    if not several:
        title += f", {shown[0].report.run.system}"
        bound = _bound(shown[0])
    return LinePlot(
        title,
        axis.name,
        f"{first.metric}, {first.unit}",
        [_line(one, curve, several, labels) for one in shown for curve in one.curves],
        labels,
        sizes=axis.kind == "size",
        log_y=first.better == "lower" and 0 < LOG_SPAN * min(medians) < max(medians),
        bound=bound,
    )


def _labels(shown: Sequence[ShownRun]) -> list[str]:
    """The places of an axis of words; empty for an axis of numbers."""
    curves = [curve for one in shown for curve in one.curves]
    if shown[0].report.axis.kind != "word" and all(curve.numeric for curve in curves):
        return []
    return ordered({row.label for curve in curves for row in curve.rows})


def curve_name(shown: ShownRun, curve: Curve, several: bool) -> str:
    """The name of a curve in the legend and in tables."""
    parts = (shown.run if several else "", curve.line_name)
    return ", ".join(filter(None, parts)) or curve.metric


def _line(shown: ShownRun, curve: Curve, several: bool, labels: Sequence[str]) -> Line:
    points = [row.point for row in curve.rows]
    spread = any(len(point.values) > 1 for point in points)
    return Line(
        curve_name(shown, curve, several),
        [float(labels.index(row.label)) if labels else row.point.x for row in curve.rows],
        [point.median for point in points],
        [point.low for point in points if spread],
        [point.high for point in points if spread],
        None if labels else _mark(shown, curve),
    )


def _mark(shown: ShownRun, curve: Curve) -> tuple[float, str] | None:
    """The plateau: that of the best of all lines where there are several, else the curve's own."""
    best = next((line for line in shown.lines if line.line == ALL), curve)
    plateau = best.shape.plateau if best.shape else None
    if not isinstance(plateau, At | Beyond):
        return None
    x, sign = (plateau.x, "") if isinstance(plateau, At) else (plateau.last, ">")
    row = next(row for row in best.rows if row.point.x == x)
    return (x, f"plateau {sign}{at(shown.report.axis.name, x)}") if row in curve.rows else None


def _bound(shown: ShownRun) -> Line | None:
    """The tightest bound at each place of the axis; of several lines that of the best."""
    rows = [(row, curve) for curve in shown.lines if curve.numeric for row in curve.rows]
    limits: dict[float, Reached] = {}
    for _, of_place in groupby(sorted(rows, key=_place), key=_place):
        row, curve = max(of_place, key=lambda one: one[0].point.median)
        for tightest in shown.report.bounds_of(curve, row)[:1]:
            limits[row.point.x] = tightest
    if not limits:
        return None
    last = list(limits.values())[-1]
    limit = with_unit(number(last.limit), shown.lines[0].unit)
    ends = bound_name(last.bound.part, last.bound.count)
    exceeded = any(reached.share > 1 for reached in limits.values())
    name = f"{'exceeded ' if exceeded else ''}bound: at the end {ends}, {limit}"
    return Line(name, list(limits), [float(reached.limit) for reached in limits.values()])


def _place(one: tuple[Row, Curve]) -> float:
    return one[0].point.x
