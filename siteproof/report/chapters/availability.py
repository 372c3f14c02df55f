"""Availability of the last two weeks, or of the window that a criterion requires."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from siteproof.availability import overview
from siteproof.availability.definitions import Uptime
from siteproof.availability.overview import (
    COLUMNS,
    FOUR,
    Overview,
    four_rows,
    percent,
    rows,
    subjects,
)
from siteproof.availability.soak import moment
from siteproof.report.figure import rows as drawn
from siteproof.report.figure.rows import Times
from siteproof.report.material import Material
from siteproof.report.sections import Figure, Section, Table, limited_points, when
from siteproof.units import count
from siteproof.wording.findings import warning

PERIOD = timedelta(days=14)  # of most contracts
MAX_POINTS = 12
TITLE = "Availability"
NOTE = (
    "overall: up time of the measured time; scheduled: of the measured time without planned "
    "down time. The system is down while a service is, or while all nodes are."
)


def chapter(material: Material) -> Section | None:
    """The four definitions, and a row for each subject, drawn and as a table."""
    found = material.once(_overview)
    if not (found.whole or found.gateways):
        return None
    states = {name: _states(found, part) for name, part in subjects(found).items()}
    ends = moment(found.period[0]), moment(found.period[1])
    first, last = map(when, ends)
    caption = f"{count(len(states), 'row')} from {first} to {last}; of nodes those that were down."
    svg = drawn.spans(TITLE, states, ends)
    table = Table(COLUMNS, rows(found), numeric=COLUMNS[1:], title=TITLE)
    figure = Figure("availability", TITLE, svg, caption, table, ("Availability.overall",))
    gaps = [" to ".join(when(moment(at)) for at in gap) for gap in found.missing()]
    points = [*map(warning, found.findings), *(f"Not measured: {gap}" for gap in gaps)]
    tables = [Table(FOUR, four_rows(found), NOTE, FOUR[1:])] if found.measured_hours() else []
    share = percent(found.definitions.system_overall)
    hours = f"{found.measured_hours():.6g} of {found.period_hours:.6g} h were measured"
    known = f"Available for {share} of the measured time" if found.measured_hours() else "Unknown"
    return Section(
        "availability",
        TITLE,
        f"{known}; {hours}.",
        tables,
        [figure],
        limited_points(points, MAX_POINTS),
    )


def _overview(material: Material) -> Overview:
    end = material.judged.as_of or material.now
    period = (int((end - PERIOD).timestamp()), int(end.timestamp()))
    return overview.read(material.site, material.perflogs, period, int(material.now.timestamp()))


def _states(found: Overview, part: Uptime) -> Mapping[str, Times]:
    return {
        drawn.UP: part.up,
        drawn.DOWN: part.unscheduled,
        drawn.PLANNED: part.scheduled,
        drawn.UNKNOWN: part.missing(found.period),
    }
