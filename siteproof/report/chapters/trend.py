"""The fleet's headline metrics over time, and the worst changes of nodes, one figure each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import compress

import numpy as np

from siteproof import trend, units
from siteproof.record import series
from siteproof.record.finding import Kind
from siteproof.record.series import comparable
from siteproof.report import past
from siteproof.report.chapters import changes, distribution
from siteproof.report.chapters.distribution import Fleet
from siteproof.report.figure import marked as drawn
from siteproof.report.figure import style
from siteproof.report.figure.line_plot import Line
from siteproof.report.figure.marked import Mark
from siteproof.report.material import Material
from siteproof.report.past import Past
from siteproof.report.sections import Figure, Section, Table, day
from siteproof.sites import Site
from siteproof.trend import Alert
from siteproof.units import count
from siteproof.wording import trends
from siteproof.wording.findings import change, full, fulls, number, quantity
from siteproof.wording.in_bounds_unit import shown_in
from siteproof.wording.trends import TOO_SHORT

LEAST = 3  # runs that make a course
MAX_FLEETS = 8  # figures of the fleet's headline metrics
MAX_ALERTS = 6  # figures of nodes' changes
MAX_NODES = 3  # of one change, that are drawn
RANGE = (0.05, 0.5, 0.95)  # the median, and most of a fleet
MAX_ROWS = 12
PERIODS = ("from", "to", "runs", "median", "5th to 95th percentile of nodes")


@dataclass(frozen=True)
class Middle:
    """A fleet's runs: when, the median of its nodes, and the range of most of them."""

    one: Fleet
    times: Sequence[datetime]
    values: np.ndarray
    lows: np.ndarray
    highs: np.ndarray
    nodes: int


def chapter(material: Material) -> Section | None:
    """Figures of the fleet, then of nodes that changed."""
    middles, survey = material.once(middles_of), material.survey
    alerts = [a for a in survey.all if a.worse and not a.of_fleet]
    titles = distribution.titles([m.one for m in middles])
    seen: dict[str, int] = {}
    figures = [
        _of_fleet(m, of_series(m.one, [*survey.fleet, *survey.drifts]), title, seen)
        for m, title in zip(middles[:MAX_FLEETS], titles, strict=False)
    ]
    figures += [
        f for n, a in enumerate(alerts[:MAX_ALERTS], 1) if (f := _of_alert(material, middles, a, n))
    ]
    if not figures:
        return None
    points = [f"Not drawn: {title}" for title in titles[MAX_FLEETS:]]
    if len(alerts) > MAX_ALERTS:
        points.append(
            f"Not drawn: {count(len(alerts) - MAX_ALERTS, 'more change')} of nodes for the "
            "worse; the chapter on what changed lists them"
        )
    return Section("trend", "Over time", _lead(material, middles), figures=figures, points=points)


def middles_of(material: Material) -> list[Middle]:
    """The headline metrics of the fleet that have a course."""
    found = material.once(past.read)
    if found is None:
        return []
    made = (_middle(found, one) for one in material.once(distribution.fleets))
    return [middle for middle in made if middle is not None]


def _lead(material: Material, middles: Sequence[Middle]) -> str:
    survey = material.survey
    worse = [a for a in survey.all if a.open]
    found = f"{count(len(worse), 'open change')} for the worse in {survey.series} series"
    if worse:
        found += f", the worst: {trends.sentence(material.site, worse[0])}"
    elif not survey.long_enough:
        found = TOO_SHORT
    return f"{count(len(middles), 'headline metric')} of the fleet over time; {found}."


def _middle(found: Past, one: Fleet) -> Middle | None:
    """The fleet's median and most of its nodes, session by session."""
    rows = np.flatnonzero(found.of_series(one.number, one.key.role))
    if not len(rows):
        return None
    order = rows[np.argsort(found.session[rows], kind="stable")]
    sessions = found.session[order]
    used, starts, counts = np.unique(sessions, return_index=True, return_counts=True)
    whole = counts >= 0.5 * one.measured  # a retest of some nodes does not count
    if whole.sum() < LEAST:
        return None
    runs = compress(np.split(found.value[order], starts[1:]), whole)
    size = float(units.UNITS[one.unit][1])
    low, middle, high = np.array([np.quantile(run, RANGE) for run in runs]).T / size
    times = [found.starts[n] for n in used[whole]]
    return Middle(one, times, middle, low, high, one.measured)


def of_series(one: Fleet, alerts: Sequence[Alert]) -> list[Alert]:
    """The changes of the whole fleet in a series, the oldest first."""
    return sorted(
        (a for a in alerts if a.of_fleet and covers(a, one)), key=lambda a: a.first_after.time
    )


def _of_fleet(middle: Middle, alerts: Sequence[Alert], title: str, seen: dict[str, int]) -> Figure:
    one = middle.one
    base = f"trend-{past.slug(one.key.metric)}-{past.slug(one.key.role)}"
    name = past.own_name(base, seen)
    steps = [a for a in alerts if a.kind == "step"]
    caption = _fleet_caption(middle, alerts)
    median = f"median of {count(middle.nodes, 'node')}, and most of them"
    svg = drawn.over_time(
        f"{title}, {one.unit}",
        one.unit,
        [Line(median, style.days(middle.times), middle.values, middle.lows, middle.highs)],
        [(utc(a), _step(a)) for a in steps],
        [m for m in one.marks if m.kind != "median"],
    )
    table = _periods(middle, steps)
    return Figure(name, title, svg, caption, table, [one.key.metric])


def utc(alert: Alert) -> datetime:
    """The first run after a change."""
    return alert.first_after.time.replace(tzinfo=UTC)


def _step(alert: Alert) -> str:
    text = f"{change(alert.relative)} on {day(utc(alert))}"
    text += " (provisional)" if alert.provisional else ""
    if alert.changed and alert.changed[0].kind is Kind.CHANGED:
        text += f"\n{full(alert.changed[0])}"
    return text


def _fleet_caption(middle: Middle, alerts: Sequence[Alert]) -> str:
    unit = middle.one.unit
    text = (
        f"{count(len(middle.times), 'run')} of {count(middle.nodes, 'node')} from "
        f"{day(middle.times[0])} to {day(middle.times[-1])}: the median was "
        f"{quantity(float(middle.values[0]), unit)} in the first and "
        f"{quantity(float(middle.values[-1]), unit)} in the last run"
    )
    steps = []
    for a in alerts:
        at = f"since {day(a.last_before.time)}" if a.kind == "drift" else f"on {day(utc(a))}"
        steps.append(f"{a.kind} of {change(a.relative)} {at}")
    return f"{text}; {'; '.join(steps) or 'no step of the whole fleet'}."


def _periods(middle: Middle, steps: Sequence[Alert]) -> Table:
    """The runs between two steps; without any step those of a month."""
    keys = [at.year * 12 + at.month for at in middle.times]
    if steps:
        keys = [sum(at >= utc(step) for step in steps) for at in middle.times]
    rows = []
    for key in sorted(set(keys))[-MAX_ROWS:]:
        runs = [n for n, k in enumerate(keys) if k == key]
        value, low, high = (
            number(float(np.median(values[runs])))
            for values in (middle.values, middle.lows, middle.highs)
        )
        first, last = day(middle.times[runs[0]]), day(middle.times[runs[-1]])
        rows.append((first, last, str(len(runs)), value, f"{low} to {high}"))
    of = "between two steps" if steps else "of a month"
    note = f"The newest runs {of}, in {middle.one.unit}; medians of the runs."
    return Table(PERIODS, rows, note, numeric=PERIODS[2:])


def _of_alert(
    material: Material, middles: Sequence[Middle], alert: Alert, number: int
) -> Figure | None:
    """The nodes of a change, with the fleet's median."""
    lines = list(_lines(material, alert))
    if not lines:
        return None
    name, title = f"trend-change-{number}", f"{alert.series_name} of {alert.nodes}"
    unit, factor = shown_in(material.site, alert)
    courses = [replace(line, values=np.asarray(line.values) * factor) for line in lines]
    marks = list[Mark]()
    for middle in [m for m in middles if covers(alert, m.one)][:1]:
        size = past.converted(1, middle.one.unit, unit)
        of_fleet = f"median of {count(middle.nodes, 'node')}"
        courses.append(Line(of_fleet, style.days(middle.times), middle.values * size, quiet=True))
        marks = [m.times(size) for m in middle.one.marks if m.kind != "median"]
    steps = [] if alert.kind == "drift" else [(utc(alert), _step(alert))]  # a drift has no moment
    svg = drawn.over_time(f"{title}, {unit}", unit, courses, steps, marks)
    table = changes.of_alerts(material, [alert])
    return Figure(name, title, svg, _alert_caption(material.site, alert), table)


def _lines(material: Material, alert: Alert) -> Iterator[Line]:
    """The history of the nodes of a change."""
    site, history, survey = material.site, material.history, material.survey
    for node in list(alert.nodes)[:MAX_NODES]:
        for line in trend.history_of(site, history, alert.metric, node, seen=survey):
            if any(a is alert for a in line.changes):
                times = line.times.astype("datetime64[us]").tolist()
                yield Line(node, style.days([t.replace(tzinfo=UTC) for t in times]), line.values)


def covers(alert: Alert, one: Fleet) -> bool:
    """Whether a change is one of a series."""
    key = comparable(one.key)
    return (key.metric, key.role) == (alert.metric, alert.role) and series.alike(
        replace(key, role=alert.series.role), alert.series
    )


def _alert_caption(site: Site, alert: Alert) -> str:
    """What `siteproof trend` has on it."""
    about = (trends.sentence(site, alert), trends.state(alert), alert.confidence)
    parts = [*about, *fulls(alert.changed)]
    return f"{'; '.join(parts)}."
