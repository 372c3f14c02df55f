"""Sweeps: curves of this system with its earlier ones, those of others, and published landmarks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from siteproof import sites
from siteproof.analysis.plateau import At, Beyond
from siteproof.curves import run_findings, sweep_runs, whole_sweep
from siteproof.curves.measured import TASKS, Curve
from siteproof.curves.run_findings import SweepReport
from siteproof.curves.sweep_runs import SweepRun
from siteproof.errors import UserError, UserErrors
from siteproof.figure import line_plot as drawn
from siteproof.figure.line_plot import LinePlot
from siteproof.record.samples import PUBLISHED, SWEEP
from siteproof.record.sessions import Sessions
from siteproof.report import promised, published_sweeps, sweep_figures
from siteproof.report.material import Material
from siteproof.report.phrases import day, few
from siteproof.report.published_sweeps import PublishedCurve
from siteproof.report.sections import Figure, Section, Table
from siteproof.report.sweep_figures import Shown
from siteproof.sites import Site
from siteproof.sweeps import reading
from siteproof.units import count, with_unit
from siteproof.wording import amounts, sweep_results

MAX_RUNS = 4  # of one sweep in one figure
MAX_NAMES = 4  # runs or systems in a sentence
MAX_FIGURES = 8
NEAR = 6.0  # times the highest value of a curve: a landmark farther up would press it flat
COLUMNS = ("curve", "points", "best", "at", "plateau", "of the bound")


@dataclass(frozen=True)
class _System:
    """A system with its runs of sweeps, the oldest first, and published landmarks."""

    site: Site
    runs: Sequence[SweepRun]
    published: Sequence[PublishedCurve]

    def newest(self, sweep: str) -> list[tuple[Site, SweepRun]]:
        """The newest run of each campaign and place, the newest first; one without a campaign."""
        found: dict[tuple[str, ...], SweepRun] = {}
        for run in reversed(self.runs):
            if run.name == sweep:
                key = (run.partition, run.environment, run.place, run.newest.header.campaign)
                found.setdefault(key, run)
        return [(self.site, run) for run in found.values()]


@dataclass(frozen=True)
class _Figures:
    """The figures of a sweep. several: runs are named, as there is more than one."""

    panels: Sequence[Sequence[Shown]]
    several: bool
    reports: Sequence[SweepReport]


def chapter(material: Material) -> Section | None:
    """A figure for each metric of each sweep; none where this system has no sweep."""
    own = _system(material.site, material.sessions)
    if not own.runs:
        return None
    others, points = _other_systems(material)
    sweeps = []
    for name in dict.fromkeys(run.name for run in reversed(own.runs)):
        runs = own.newest(name)
        for other in others:
            runs += other.newest(name)[:1]
        points += _not_drawn(name, runs[MAX_RUNS:])
        sweeps.append(_of_sweep(name, runs[:MAX_RUNS]))
    published = [curve for system in (own, *others) for curve in system.published]
    figures = list(_drawn(sweeps, published))
    if not figures:
        return None
    points += [f"Not drawn: {figure.title}" for figure in figures[MAX_FIGURES:]]
    reports = [report for sweep in sweeps for report in sweep.reports]
    here = [report for report in reports if report.run.system == material.system]
    shown = sorted({report.run.system for report in reports} - {material.system})
    headlines = [f"{r.run.name}: {text}" for r in here for text in sweep_results.headlines(r)]
    return Section(
        "sweeps",
        "Sweeps",
        _lead(here, shown),
        figures=figures[:MAX_FIGURES],
        points=[*headlines, *points],
    )


def _not_drawn(name: str, runs: Sequence[tuple[Site, SweepRun]]) -> list[str]:
    """A sentence on the runs beyond MAX_RUNS, if there are any."""
    if not runs:
        return []
    texts = [f"{run.system} {_campaign(run)}" for _, run in runs]
    return [f"{name}: {count(len(runs), 'more run')} not drawn: {few(texts, MAX_NAMES)}"]


def _lead(own: Sequence[SweepReport], others: Sequence[str]) -> str:
    names = few(list(dict.fromkeys(report.run.name for report in own)), MAX_NAMES)
    runs = count(len({id(report.run) for report in own}), "run")
    compared = f", compared with {few(others, MAX_NAMES)}" if others else ""
    return f"{runs} of sweeps of this system ({names}){compared}."


def _system(site: Site, sessions: Sessions) -> _System:
    runs = sweep_runs.collect(sessions.of(lambda head: SWEEP in head.conditions))
    stated = sessions.of(lambda head: head.mode == PUBLISHED)
    return _System(site, runs, published_sweeps.of(stated))


def _other_systems(material: Material) -> tuple[list[_System], list[str]]:
    """The other systems of the same perflogs; of those that cannot be read, a sentence each."""
    found, points = [], []
    for folder in sorted(material.perflogs.iterdir()):
        if not folder.is_dir() or folder.name == material.system:
            continue
        try:
            sessions = Sessions(material.perflogs, folder.name)
            found.append(_system(sites.load(folder.name), sessions))
        except (UserError, UserErrors) as error:
            points.append(f"{folder.name} is not compared: {error}")
    return found, points


def _of_sweep(name: str, runs: Sequence[tuple[Site, SweepRun]]) -> _Figures:
    file = reading.examine()[0].get(name)
    named = [
        (_label(run, [other for _, other in runs]), report)
        for site, run in runs
        for report in run_findings.reports(site, run, file)
    ]
    several = len({label for label, _ in named}) > 1
    return _Figures(sweep_figures.by_figure(named), several, [report for _, report in named])


def _campaign(run: SweepRun) -> str:
    return run.newest.header.campaign or day(run.newest.header.time)


def _label(run: SweepRun, runs: Sequence[SweepRun]) -> str:
    """System, and what differs between the runs of this system."""
    same = [_parts(other) for other in runs if other.system == run.system]
    columns = zip(_parts(run), *same, strict=True)
    return " ".join([run.system, *(part for part, *others in columns if len(set(others)) > 1)])


def _parts(run: SweepRun) -> tuple[str, ...]:
    return run.partition, run.environment, run.place, _campaign(run)


def _drawn(found: Sequence[_Figures], published: Sequence[PublishedCurve]) -> Iterator[Figure]:
    seen: dict[str, int] = {}
    for sweep in found:
        for shown in sweep.panels:
            first = shown[0].lines[0]
            plot = sweep_figures.plot(shown, sweep.several)
            base = f"sweep-{promised.slug(shown[0].report.run.name)}-{promised.slug(first.metric)}"
            name = promised.own_name(base, seen)
            over_tasks = plot.x_label == TASKS and not plot.labels
            landmarks = [c for c in published if over_tasks and c.metric == first.metric]
            caption = _caption(plot, first.unit, landmarks)
            plot = _with_landmarks(plot, first.unit, landmarks)
            svg = drawn.draw(plot)
            table = _table(shown, sweep.several, landmarks)
            title = f"{plot.title}, {first.unit}"
            yield Figure(name, title, svg, caption, table, _metrics(first.metric))


def _with_landmarks(plot: LinePlot, unit: str, landmarks: Sequence[PublishedCurve]) -> LinePlot:
    """The published highest values as points, as far as they leave the curves their height."""
    top = max((value for line in plot.lines for value in line.values), default=0.0)
    points = [line for curve in landmarks if (line := curve.line(unit)) is not None]
    near = [point for point in points if point.values[0] <= NEAR * top]
    return replace(plot, lines=[*plot.lines, *near])


def _metrics(metric: str) -> list[str]:
    """The metric and what is derived from its curve, such as the highest value."""
    return [metric, *(m for m in whole_sweep.METRICS if m.startswith(f"{metric}_"))]


def _caption(plot: LinePlot, unit: str, landmarks: Sequence[PublishedCurve]) -> str:
    places = len(plot.labels) or len({x for line in plot.lines for x in line.xs})
    text = f"{count(len(plot.lines), 'curve')} over {count(places, 'place')}"
    value, name = max((max(line.values), line.name) for line in plot.lines)
    text += f", highest {amounts.number(value)} {unit}"
    if len(plot.lines) > 1:
        text += f" of {name}"
    if landmarks:
        text += f"; {count(len(landmarks), 'published landmark')} of curves that are not published"
    return f"{text}."


def _table(shown: Sequence[Shown], several: bool, landmarks: Sequence[PublishedCurve]) -> Table:
    """A row for each curve, then for each landmark."""
    rows = [_row(one, curve, several) for one in shown for curve in one.curves]
    rows += [curve.row() for curve in landmarks]
    better = shown[0].lines[0].better
    note = f"Best is the {'lowest' if better == 'lower' else 'highest'} median of a place."
    return Table(COLUMNS, rows, note, numeric=COLUMNS[1:3])


def _row(shown: Shown, curve: Curve, several: bool) -> tuple[str, ...]:
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
