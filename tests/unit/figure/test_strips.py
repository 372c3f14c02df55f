"""Rows of time: each state is drawn and named, and a short outage can be seen."""

import re
import xml.etree.ElementTree as ElementTree
from datetime import UTC, datetime, timedelta

import pytest

from siteproof.figure import strips
from siteproof.figure.labels import wide
from siteproof.figure.strips import Strips

FIRST = datetime(2026, 11, 1, tzinfo=UTC)
LAST = FIRST + timedelta(days=14)
AT = FIRST.timestamp()
DAY13 = AT + 13 * 86_400
ROWS = {
    "system": {strips.UP: [(AT, DAY13)], strips.DOWN: [(DAY13, LAST.timestamp())]},
    "service <b>": {strips.DOWN: [(AT, AT + 1)], strips.PLANNED: [(AT + 9, AT + 10)]},
}


def drawn(rows=ROWS, **keys):
    return strips.draw("s", "caption", Strips("Availability", rows, FIRST, LAST, **keys))


def texts(svg):
    root = ElementTree.fromstring(svg)
    return [e.text for e in root.iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.deep
def test_every_row_and_every_state_is_named():
    told = texts(drawn())
    for text in ("system", "service <b>", "up", "down", "down, planned", "not measured"):
        assert text in told
    assert "2026-11-01" in told


def test_the_same_rows_give_the_same_bytes_and_other_rows_do_not():
    assert drawn() == drawn()
    assert drawn() != drawn({"system": ROWS["system"]})


def test_a_second_in_two_weeks_is_drawn():
    without = {name: dict(row) for name, row in ROWS.items()}
    without["service <b>"][strips.DOWN] = []
    assert drawn().count(strips.COLOURS[1].lower()) > drawn(without).count(
        strips.COLOURS[1].lower()
    )


def test_nothing_to_draw_is_an_error():
    with pytest.raises(ValueError, match="no row"):
        drawn({})


def test_the_first_day_is_whole_where_names_are_short():
    svg = drawn({"n1": {strips.UP: [(AT, DAY13)]}})
    day = re.search(r'<text style="[^"]*middle"[^>]* x="([\d.]+)"[^>]*>2026-11-01', svg)
    assert day, svg
    assert float(day[1]) - wide("2026-11-01") / 2 >= 0
