"""The daily matrix: seed 003's classes, categories and averages, and whose day it is."""

from datetime import UTC, date, datetime, timedelta, timezone
from fractions import Fraction

from siteproof.links.transfers import Attempt, Cell, Grade, Grades, category, daily
from siteproof.record.samples import STATUSES

NOON = datetime(2010, 8, 18, 12, tzinfo=UTC)


def tries(*told, time=NOON, pair=("dc", "pople")):
    """A number is a rate, a word the status of a failure."""
    return [
        Attempt(pair, time, None, t)
        if isinstance(t, str)
        else Attempt(pair, time, Fraction(str(t)))
        for t in told
    ]


def cell(*told):
    (only,) = daily(tries(*told))["dc", "pople"].values()
    return only


def test_highest_lowest_and_average_of_a_day():
    found = cell(75, 58.8, 61.5)
    assert (found.highest, found.lowest, found.trials) == (75, Fraction("58.8"), 3)
    assert found.average == Fraction("65.1")
    assert not found.error


def test_a_failure_is_told_and_the_average_is_of_the_successes():
    found = cell(57.7, "generic", 56.9)
    assert (found.error, found.highest, found.average) == (
        "gen",
        Fraction("57.7"),
        Fraction("57.3"),
    )
    assert found.trials == 3


def test_a_day_on_which_all_failed_has_no_average():
    assert cell("generic", "login") == Cell(None, None, None, 2, {"login": 1, "gen": 1})


def test_the_most_severe_category_stands_for_the_day():
    for told, first in (
        (("generic", "checksum", "timeout", "login"), "login"),
        (("generic", "checksum", "timeout"), "timeout"),
        (("parse", "checksum"), "checksum"),
        (("parse",), "gen"),
    ):
        assert cell(50, *told).error == first, (told, first)


def test_every_status_has_one_of_the_four_categories():
    assert {category(s) for s in STATUSES if s != "ok"} == {"login", "timeout", "checksum", "gen"}


def test_trials_with_the_same_figure_are_trials_and_no_duplicates():
    assert cell(40, 40, 70).average == 50


def test_the_grades_of_a_site_are_those_of_its_legend():
    both = Grades(Fraction(50), Fraction(25))
    for grades, value, told in (
        (both, "24.999", "below 25 MB/s"),
        (both, "25", "25 to 50 MB/s"),
        (both, "50", "25 to 50 MB/s"),
        (both, "50.001", "above 50 MB/s"),
        (both, "0", "below 25 MB/s"),
        (Grades(critical=Fraction(25)), "25", "at least 25 MB/s"),
        (Grades(warn=Fraction(50)), "2", "up to 50 MB/s"),
        (Grades(), "2", ""),
    ):
        assert grades.words(grades.grade(Fraction(value))) == told, (value, told)
    assert both.grade(None) is Grade.NONE


def test_a_day_begins_at_midnight_utc():
    east = timezone(timedelta(hours=9))
    found = daily(
        tries(1, time=datetime(2026, 11, 22, 8, 59, tzinfo=east))
        + tries(2, time=datetime(2026, 11, 22, 9, 0, tzinfo=east))
    )["dc", "pople"]
    assert list(found) == [date(2026, 11, 21), date(2026, 11, 22)]


def test_pairs_and_directions_are_kept_apart():
    found = daily(tries(1) + tries(2, pair=("pople", "dc")))
    assert {pair: [c.average for c in days.values()] for pair, days in found.items()} == {
        ("dc", "pople"): [1],
        ("pople", "dc"): [2],
    }
