"""The small drawings of the first screen: every value is counted, and no text becomes markup."""

import re
from xml.etree import ElementTree

import pytest
from rows import rows

from siteproof.report.figure import small
from siteproof.report.figure.marks import Mark

HOSTILE = '"><script>&'


def bars(drawn):
    return [int(n) for n in re.findall(r"<title>(\d+) at ", drawn)]


def test_every_value_is_in_one_bar():
    values = {"ok": [100.0 + n for n in range(50)], "bad": [10.0, 11.0]}
    drawn = small.spread("t", "MB/s", values, [])
    assert sum(bars(drawn)) == 52
    assert drawn.count('class="bad"') in (1, 2)


@rows("values", [[5.0], [5.0] * 9, [0.0, 0.0], [-1.0, -1.0]])
def test_values_that_are_all_equal_are_one_bar(values):
    assert bars(small.spread("t", "s", {"ok": values}, [])) == [len(values)]


def test_values_of_two_looks_at_one_place_stand_upon_each_other():
    drawn = small.spread("t", "s", {"ok": [1.0, 1.0], "slow": [1.0]}, [])
    heights = {
        look: (float(y), float(high))
        for look, y, high in re.findall(
            r'class="(\w+)" x="\d+" y="([\d.]+)" width="4.8" height="([\d.]+)"', drawn
        )
    }
    assert heights["slow"][0] + heights["slow"][1] == pytest.approx(heights["ok"][0], abs=0.11)


def test_a_limit_that_is_far_away_is_an_arrow_at_its_edge():
    near, far = Mark("bound", 9.0, "limit 9 s"), Mark("bound", 900.0, "limit 900 s")
    drawn = small.spread("t", "s", {"ok": [8.0, 10.0]}, [near, far])
    assert re.search(r'class="bound" d="M[\d.]+ 0V32"><title>limit 9 s<', drawn)
    assert re.search(r'class="bound far" d="M213 1L220 6L213 11Z"><title>limit 900 s<', drawn)


def test_noise_is_small_in_a_course_and_its_limit_is_drawn():
    noise = [100 + (-1) ** n for n in range(40)]
    drawn = small.course("t", noise, [Mark("bound", 80.0, "limit")], [20])
    heights = [float(y) for y in re.findall(r",([\d.]+)", re.search(r'points="(.*?)"', drawn)[1])]
    assert max(heights) - min(heights) < 6
    assert 'class="bound"' in drawn and 'class="step"' in drawn


def test_a_long_course_has_few_points():
    drawn = small.course("t", [float(n) for n in range(5000)], [])
    assert drawn.count(",") == small.POINTS


@rows("value", [0.0, 1.0, -3.0])
def test_a_level_course_is_a_line(value):
    drawn = small.course("t", [value] * 5, [])
    heights = set(re.findall(r",([\d.]+)", re.search(r'points="(.*?)"', drawn)[1]))
    assert len(heights) == 1


def test_texts_are_no_markup():
    mark = Mark("bound", 2.0, HOSTILE)
    for drawn in (
        small.spread(HOSTILE, HOSTILE, {"ok": [1.0, 2.0]}, [mark]),
        small.course(HOSTILE, [1.0, 2.0], [mark]),
    ):
        assert ElementTree.fromstring(drawn).get("aria-label") == HOSTILE
        assert "<script" not in drawn


def test_nothing_is_drawn_of_nothing():
    for draw, data in ((small.spread, ("t", "s", {"ok": []}, [])), (small.course, ("t", [], []))):
        with pytest.raises(ValueError, match="no value"):
            draw(*data)
