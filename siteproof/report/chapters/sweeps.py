"""Sweeps: curves of this system beside its earlier ones and those of others, with landmarks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from siteproof import sites
from siteproof.analysis.plateau import At, Beyond
from siteproof.curves import run_findings, sweep_runs, whole_sweep
from siteproof.curves.measured import ALL, TASKS, Curve
from siteproof.curves.run_findings import SweepReport
from siteproof.curves.sweep_runs import SweepRun
from siteproof.errors import UserError, UserErrors
from siteproof.figure import labels
from siteproof.figure import line_chart as drawn
from siteproof.figure.line_chart import Picture
from siteproof.record.samples import PUBLISHED
from siteproof.record.series import SWEEP
from siteproof.record.sessions import Sessions
from siteproof.report import promised, published_sweeps, sweep_pictures
from siteproof.report.material import Material
from siteproof.report.phrases import count, day, few
from siteproof.report.published_sweeps import Stated
from siteproof.report.sections import Figure, Section, Table
from siteproof.report.sweep_pictures import Together
from siteproof.sites import Site
from siteproof.sweeps import reading
from siteproof.wording import sweep_results

RUNS = 4  # of one sweep in one figure
NAMED = 4  # runs or systems that a sentence names
MOST = 8  # figures
NEAR = 6.0  # times the highest value: landmarks farther away have a figure of their own
COLUMNS = ("curve", "points", "best", "at", "plateau", "of the bound")


@dataclass(frozen=True)
class Found:
    """The pictures of all sweeps. beside: what is not shown, a sentence each."""

    together: Sequence[tuple[Together, bool]]
    stated: Sequence[Stated]
    reports: Sequence[SweepReport]
    beside: Sequence[str]


def chapter(material: Material) -> Section | None:
    """A figure for each figure of each sweep; landmarks alone where there is no curve."""
    found = material.once(_found)
    figures = list(_figures(found))
    if not figures:
        return None
    points = [
        f"{r.run.name}: {text}"
        for r in found.reports
        if r.run.system == material.system
        for text in sweep_results.headlines(r)
    ]
    points += found.beside
    points += [f"Not drawn: {title}" for title in (f.title for f in figures[MOST:])]
    own = [r for r in found.reports if r.run.system == material.system]
    runs = {id(r.run) for r in own}
    names = few(list(dict.fromkeys(r.run.name for r in own)), NAMED)
    lead = (
        f"{count(len(runs), 'run')} of sweeps of this system ({names})"
        if own
        else "No sweep of this system was measured; others publish landmarks of theirs"
    )
    beside = sorted({r.run.system for r in found.reports} - {material.system})
    lead += f", beside {few(beside, NAMED)}." if beside else "."
    return Section("sweeps", "Sweeps", lead, figures=figures[:MOST], points=points)


def _found(material: Material) -> Found:
    known, beside = reading.examine()[0], []
    mine = _runs(material.sessions)
    names = list(dict.fromkeys(run.name for run in reversed(mine)))
    chosen: dict[str, list[tuple[Site, SweepRun]]] = {
        name: [(material.site, run) for run in _newest([r for r in mine if r.name == name])]
        for name in names
    }
    stated = published_sweeps.of(material.sessions.of(_published))
    for other in _others(material):
        sessions = Sessions(material.perflogs, other)
        try:
            stated += published_sweeps.of(sessions.of(_published)) if mine or stated else []
            site = sites.load(other)
            runs = _runs(sessions)
        except (UserError, UserErrors) as error:
            beside.append(f"{other} is not shown beside it: {error}")
            continue
        for name in names:
            theirs = _newest([r for r in runs if r.name == name])[:1]
            chosen[name] += [(site, run) for run in theirs]
    together, reports = [], []
    for name, all_of in chosen.items():
        held = all_of[:RUNS]
        if rest := [
            f"{run.system} {run.newest.header.campaign or day(run.newest.header.time)}"
            for _, run in all_of[RUNS:]
        ]:
            beside.append(f"{name}: {count(len(rest), 'more run')} not drawn: {few(rest, NAMED)}")
        own = [
            (_label(run, [r for _, r in held]), report)
            for site, run in held
            for report in run_findings.reports(site, run, known.get(name))
        ]
        together += [
            (one, len({label for label, _ in own}) > 1) for one in sweep_pictures.together(own)
        ]
        reports += [report for _, report in own]
    return Found(together, stated, reports, beside)


def _published(header: object) -> bool:
    return getattr(header, "mode", "") == PUBLISHED


def _others(material: Material) -> list[str]:
    """The other systems of the same perflogs."""
    if not material.perflogs.is_dir():
        return []  # nothing was ever measured
    return sorted(
        p.name for p in material.perflogs.iterdir() if p.is_dir() and p.name != material.system
    )


def _runs(sessions: Sessions) -> list[SweepRun]:
    return sweep_runs.collect(sessions.of(lambda head: SWEEP in head.conditions))


def _newest(runs: Sequence[SweepRun]) -> list[SweepRun]:
    """The newest run of each campaign and place, the newest first; of no campaign the newest."""
    found: dict[tuple[str, ...], SweepRun] = {}
    for run in reversed(runs):
        key = (run.partition, run.environment, run.place, run.newest.header.campaign)
        found.setdefault(key, run)
    return list(found.values())


def _label(run: SweepRun, runs: Sequence[SweepRun]) -> str:
    """System, and what tells a run from the others of its system."""
    same = [r for r in runs if r.system == run.system]
    told = {
        "partition": run.partition,
        "environment": run.environment,
        "place": run.place,
        "campaign": run.newest.header.campaign or day(run.newest.header.time),
    }
    held = {
        "partition": {r.partition for r in same},
        "environment": {r.environment for r in same},
        "place": {r.place for r in same},
        "campaign": {r.newest.header.campaign or day(r.newest.header.time) for r in same},
    }
    return " ".join([run.system, *(told[key] for key, values in held.items() if len(values) > 1)])


def _figures(found: Found) -> Iterator[Figure]:
    used: set[str] = set()
    seen: dict[str, int] = {}
    for together, several in found.together:
        picture = sweep_pictures.picture(together, several)
        first = together[0][2][0]
        mine = _fitting(found.stated, first.metric, together[0][1].axis.name, picture)
        if mine:
            used.add(first.metric)
            marks = [s.drawn(first.unit) for s in mine]
            picture = replace(picture, landmarks=marks)
        name = promised.own_name(
            f"sweep-{promised.slug(together[0][1].run.name)}-{promised.slug(first.metric)}", seen
        )
        says = _says(picture, mine)
        yield Figure(
            name,
            f"{picture.title}, {first.unit}",
            drawn.draw(name, says, picture),
            says,
            _table(together, several, mine),
            _metrics(first.metric),
        )
    rest: dict[str, list[Stated]] = {}
    for one in found.stated:
        if one.metric not in used and (one.highest and one.at or one.plateau):
            rest.setdefault(one.metric, []).append(one)
    for metric, stated in sorted(rest.items(), key=lambda item: item[0], reverse=True):
        yield _alone(metric, stated)


def _fitting(stated: Sequence[Stated], metric: str, axis: str, picture: Picture) -> list[Stated]:
    """The landmarks of a metric against tasks, unless they would press the curves down."""
    mine = [
        s
        for s in stated
        if s.metric == metric
        and axis == TASKS
        and not picture.labels
        and (s.highest and s.at or s.plateau)
    ]
    top = max((v for line in picture.lines for v in line.values), default=0.0)
    unit = picture.y_label.rpartition(", ")[2]
    values = [m.highest[1] for s in mine if (m := s.drawn(unit)).highest]
    return mine if values and max(values) <= NEAR * top and NEAR * min(values) >= top else []


def _alone(metric: str, stated: Sequence[Stated]) -> Figure:
    """Landmarks of curves that nobody has measured here."""
    name = f"landmarks-{promised.slug(metric)}"
    unit = next((s.unit for s in stated if s.unit), "")
    marks = [s.drawn(unit) for s in stated]
    picture = Picture(
        f"{metric} against {TASKS}: published landmarks",
        TASKS,
        f"{metric}, {unit}",
        (),
        landmarks=marks,
    )
    says = (
        f"{count(len(stated), 'published landmark')} of {metric}, in {unit} as printed: "
        f"{'; '.join(s.says for s in stated)}. The sources print no figures of the curves."
    )
    rows = [_stated_row(s) for s in stated]
    return Figure(
        name,
        f"{picture.title}, {unit}",
        drawn.draw(name, says, picture),
        says,
        Table(COLUMNS[:5], [row[:5] for row in rows], numeric=COLUMNS[2:3]),
        _metrics(metric),
    )


def _metrics(metric: str) -> list[str]:
    """The metric and what is derived from its curve, such as the highest value."""
    return [metric, *(m for m in whole_sweep.METRICS if m.startswith(f"{metric}_"))]


def _stated_row(one: Stated) -> tuple[str, ...]:
    return (f"published landmark: {one.who}", "-", one.value, one.place, one.flat, "-")


def _says(picture: Picture, mine: Sequence[Stated]) -> str:
    xs = [x for line in picture.lines for x in line.xs]
    places = len(picture.labels) or len(set(xs))
    told = f"{count(len(picture.lines), 'curve')} over {count(places, 'place')}"
    tops = [(max(line.values), line.name) for line in picture.lines if len(line.values)]
    if tops:
        value, name = max(tops)
        unit = picture.y_label.rpartition(", ")[2]
        told += f", highest {labels.number(value)} {unit}" + (
            f" of {name}" if len(picture.lines) > 1 else ""
        )
    if mine:
        told += f"; {count(len(mine), 'published landmark')}, whose curves nobody printed"
    return told + "."


def _table(together: Together, several: bool, mine: Sequence[Stated]) -> Table:
    """Each curve in a line; then the landmarks."""
    rows = [
        _row(name if several else "", report, curve)
        for name, report, lines in together
        for curve in lines
        if curve.line != ALL
    ]
    rows += [_stated_row(s) for s in mine]
    better = together[0][2][0].better
    note = f"Best is the {'lowest' if better == 'lower' else 'highest'} median of a place."
    return Table(COLUMNS, rows, note, numeric=COLUMNS[1:3])


def _row(name: str, report: SweepReport, curve: Curve) -> tuple[str, ...]:
    best, axis = curve.best, report.axis
    limits = report.bounds_of(curve, best)
    flat = curve.finding.plateau if curve.finding else None
    where = "-"
    if isinstance(flat, At):
        where = sweep_results.at(axis, flat.x)
    elif isinstance(flat, Beyond):
        where = f"> {sweep_results.at(axis, flat.last)}"
    told = ", ".join(filter(None, (name, curve.told_line))) or curve.metric
    return (
        told,
        str(len(curve.rows)),
        f"{sweep_results.number(best.point.median)} {curve.unit}",
        sweep_results.at(axis, best.label),
        where,
        sweep_results.per_cent(limits[0].share) if limits else "-",
    )
