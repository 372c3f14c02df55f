"""The small drawing of a criterion: every value is counted, and no text becomes markup."""

import re
from xml.etree import ElementTree

import pytest
from rows import rows

from siteproof.report.figure import marked
from siteproof.report.figure.marked import Mark

HOSTILE = '"><script>&'


def bars(drawn):
    return [int(n) for n in re.findall(r"<title>(\d+) at ", drawn)]


def test_every_value_is_in_one_bar():
    values = {"ok": [100.0 + n for n in range(50)], "bad": [10.0, 11.0]}
    drawn = marked.spread("t", "MB/s", values, [])
    assert sum(bars(drawn)) == 52
    assert drawn.count('class="bad"') in (1, 2)


@rows("values", [[5.0], [5.0] * 9, [0.0, 0.0], [-1.0, -1.0]])
def test_values_that_are_all_equal_are_one_bar(values):
    assert bars(marked.spread("t", "s", {"ok": values}, [])) == [len(values)]


def test_values_of_two_looks_at_one_place_stand_upon_each_other():
    drawn = marked.spread("t", "s", {"ok": [1.0, 1.0], "slow": [1.0]}, [])
    heights = {
        look: (float(y), float(high))
        for look, y, high in re.findall(
            r'class="(\w+)" x="\d+" y="([\d.]+)" width="4.8" height="([\d.]+)"', drawn
        )
    }
    assert heights["slow"][0] + heights["slow"][1] == pytest.approx(heights["ok"][0], abs=0.11)


def test_a_limit_that_would_leave_the_values_no_room_is_not_drawn():
    near, far = Mark("bound", 9.0, "limit 9 s"), Mark("bound", 900.0, "limit 900 s")
    drawn = marked.spread("t", "s", {"ok": [8.0, 10.0]}, [near, far])
    assert "limit 9 s" in drawn and "limit 900 s" not in drawn


def test_texts_are_no_markup():
    drawn = marked.spread(HOSTILE, HOSTILE, {"ok": [1.0, 2.0]}, [Mark("bound", 2.0, HOSTILE)])
    assert ElementTree.fromstring(drawn).get("aria-label") == HOSTILE
    assert "<script" not in drawn
