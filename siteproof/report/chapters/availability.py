"""Availability of the last two weeks, or of the window that a criterion requires."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

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
from siteproof.report.figure import rows as drawn
from siteproof.report.figure.rows import Times
from siteproof.report.material import Material
from siteproof.report.sections import Figure, Section, Table, few, limited_points, when
from siteproof.units import count
from siteproof.wording.findings import warning

PERIOD = timedelta(days=14)  # of most contracts
MAX_GAPS, MAX_POINTS = 6, 12
TITLE = "Availability"


def chapter(material: Material) -> Section | None:
    """The four definitions, and a row for each subject, drawn and as a table."""
    found = material.once(_overview)
    if not (found.whole or found.gateways):
        return None
    states = {name: _states(found, part) for name, part in subjects(found).items()}
    svg = drawn.spans(TITLE, states, _ends(found))
    figure = Figure(
        "availability", TITLE, svg, _caption(found), _table(found), ("Availability.overall",)
    )
    points = limited_points([warning(why) for why in found.findings], MAX_POINTS)
    if missing := _gaps(found):
        points.append(f"Not measured: {missing}")
    tables = [_four(found)] if found.measured_hours() else []
    return Section("availability", TITLE, _lead(found), tables, [figure], points)


def _overview(material: Material) -> Overview:
    end = material.judged.as_of or material.now
    period = (int((end - PERIOD).timestamp()), int(end.timestamp()))
    return overview.read(material.site, material.perflogs, period, int(material.now.timestamp()))


def _lead(found: Overview) -> str:
    share = found.definitions.system_overall
    text = (
        f"Available for {percent(share)} of the measured time" if share is not None else "Unknown"
    )
    return f"{text}; {found.measured_hours():.6g} of {found.period_hours:.6g} h were measured."


def _table(found: Overview) -> Table:
    return Table(COLUMNS, rows(found), numeric=COLUMNS[1:], title=TITLE)


def _four(found: Overview) -> Table:
    note = (
        "overall: up time of the measured time; scheduled: of the measured time without planned "
        "down time. The system is down while a service is, or while all nodes are."
    )
    return Table(FOUR, four_rows(found), note, FOUR[1:])


def _caption(found: Overview) -> str:
    first, last = map(when, _ends(found))
    number = count(len(subjects(found)), "row")
    return f"{number} from {first} to {last}; of nodes only those that were down."


def _ends(found: Overview) -> tuple[datetime, datetime]:
    first, last = found.period
    return datetime.fromtimestamp(first, UTC), datetime.fromtimestamp(last, UTC)


def _states(found: Overview, part: Uptime) -> Mapping[str, Times]:
    return {
        drawn.UP: part.up,
        drawn.DOWN: part.unscheduled,
        drawn.PLANNED: part.scheduled,
        drawn.UNKNOWN: part.missing(found.period),
    }


def _gaps(found: Overview) -> str:
    texts = [
        " to ".join(when(datetime.fromtimestamp(at, UTC)) for at in gap) for gap in found.missing()
    ]
    return few(texts, MAX_GAPS, "; ")
