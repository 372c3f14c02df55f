"""Rows of time: each state is drawn and named, and a short outage can be seen."""

import xml.etree.ElementTree as ElementTree
from datetime import UTC, datetime, timedelta

import pytest

from siteproof.report.figure import rows as figures
from siteproof.report.figure.style import COLOURS

FIRST = datetime(2026, 11, 1, tzinfo=UTC)
LAST = FIRST + timedelta(days=14)
AT = FIRST.timestamp()
DAY13 = AT + 13 * 86_400
ROWS = {
    "system": {figures.UP: [(AT, DAY13)], figures.DOWN: [(DAY13, LAST.timestamp())]},
    "service <b>": {figures.DOWN: [(AT, AT + 1)], figures.PLANNED: [(AT + 9, AT + 10)]},
}


def drawn(rows=ROWS):
    return figures.spans("Availability", rows, (FIRST, LAST))


def texts(svg):
    root = ElementTree.fromstring(svg)
    return [e.text for e in root.iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.deep
def test_every_row_and_every_state_is_named():
    told = texts(drawn())
    for text in ("system", "service <b>", "up", "down", "down, planned"):
        assert text in told
    assert "2026-Nov" in told and "not measured" not in told


def test_the_same_rows_give_the_same_bytes_and_other_rows_do_not():
    assert drawn() == drawn()
    assert drawn() != drawn({"system": ROWS["system"]})


def test_a_second_in_two_weeks_is_drawn():
    without = {name: dict(row) for name, row in ROWS.items()}
    without["service <b>"][figures.DOWN] = []
    assert drawn().count(COLOURS[1].lower()) > drawn(without).count(COLOURS[1].lower())
