"""The headline metrics over time, as small drawings: the fleet's level, its limit, what changed."""

from __future__ import annotations

from collections.abc import Sequence

from siteproof.report import summary
from siteproof.report.chapters import distribution, trend
from siteproof.report.chapters.trend import Middle
from siteproof.report.figure import small
from siteproof.report.material import Material
from siteproof.report.phrases import day, few, nodes
from siteproof.report.sections import Link
from siteproof.report.summary import Year
from siteproof.trend import Alert
from siteproof.units import count
from siteproof.wording.amounts import change, number, quantity
from siteproof.wording.findings import fulls

MAX_YEARS = 8
MAX_NOTES = 2
LEAST_RUNS = 5  # fewer show no course


def years(material: Material) -> tuple[str, Sequence[Year]]:
    """The period, and a drawing for each metric of the fleet."""
    found = [m for m in material.once(trend.middles_of) if len(m.times) >= LEAST_RUNS][:MAX_YEARS]
    if not found:
        return "", []
    titles = _titles(found)
    first, last = min(m.times[0] for m in found), max(m.times[-1] for m in found)
    made = [_year(m, title, material.open_changes) for m, title in zip(found, titles, strict=True)]
    return f"{day(first)} to {day(last)}", made


def _titles(found: Sequence[Middle]) -> list[str]:
    """The metrics; with role and conditions where two have the same."""
    short = [m.one.key.name for m in found]
    return short if len(set(short)) == len(short) else distribution.titles([m.one for m in found])


def _year(middle: Middle, title: str, opened: Sequence[Alert]) -> Year:
    one, unit = middle.one, middle.one.unit
    alerts = [a for a in opened if trend.covers(a, one)]
    of_fleet = trend.of_series(one, alerts)
    values = middle.values.tolist()
    marks = [m for m in one.marks if m.kind == "bound"]
    steps = [_place(middle, a) for a in of_fleet if a.kind == "step"]
    ends = f"{number(values[0])} to {quantity(values[-1], unit)}"
    caption = f"{title}: {count(len(values), 'run')}, the median from {ends}"
    drawn = small.course(caption, values, marks, steps)
    change, look = _change(of_fleet)
    notes = [few(fulls(a.changed), MAX_NOTES, "; ") for a in of_fleet if a.changed]
    notes += [_note(a) for a in alerts if not a.of_fleet]
    shown = [note for note in notes if note][:MAX_NOTES]
    lead = Link([(title, f"figure-{trend.name_of(one)}")])
    return Year(lead, unit, drawn, change, look, shown)


def _change(alerts: Sequence[Alert]) -> tuple[str, str]:
    if not alerts:
        return "unchanged", summary.OK
    last = alerts[-1]
    return f"{change(last.relative)} since {day(last.begin.time)}", summary.SLOW


def _note(alert: Alert) -> str:
    return f"{nodes(alert.nodes)} {change(alert.relative)} since {day(alert.begin.time)}"


def _place(middle: Middle, alert: Alert) -> int:
    """The first run after a step."""
    at = trend.utc(alert)
    return next((n for n, time in enumerate(middle.times) if time >= at), len(middle.times) - 1)
