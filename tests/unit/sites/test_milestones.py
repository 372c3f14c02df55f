"""The milestones of an acceptance: read, checked, and told where their order cannot be right."""

import pytest

from siteproof import sites
from siteproof.sites import manual, site_tables

HEAD = "system,date,milestone,needs,source,note\n"


@pytest.fixture
def written(world):
    """The milestones of a site with these lines, and what lint says."""

    def write(*lines, head=HEAD):
        (world.sites / "thishost" / "timeline.csv").write_text(head + "".join(lines))
        return world.inside("lint", "--system", "thishost")

    return write


def site(name, monkeypatch):
    monkeypatch.delenv("SITEPROOF_SITES", raising=False)
    return sites.load(name)


def test_trap_J8_the_performance_pass_of_iu_precedes_what_it_needs(monkeypatch):
    found = site("jetstream-iu", monkeypatch).milestones
    assert site_tables.remarks(found) == [
        "Performance pass (2015-11-30) precedes Functionality pass (2016-01-14), which it needs, "
        "by 45 days",
        "Performance pass (2015-11-30) precedes Whole system powered (2016-01-14), which it needs, "
        "by 45 days",
    ]


def test_tacc_has_all_milestones_in_order(monkeypatch):
    found = site("jetstream-tacc", monkeypatch).milestones
    assert site_tables.remarks(found) == []
    days = {one.milestone: one.date for one in found}
    assert (days["Functionality pass"], days["Performance pass"]) == ("2015-11-05", "2016-02-24")


def test_a_site_without_a_file_has_no_milestone(monkeypatch):
    assert site("magellan", monkeypatch).milestones == []


def test_a_milestone_without_a_date_is_named(world, written, monkeypatch):
    lines = "thishost,,Boot,,A report,\n", "thishost,2016,Pass,Boot,A report,\n"
    assert written(*lines).code == 0
    monkeypatch.setenv("SITEPROOF_SITES", str(world.sites))
    assert site_tables.remarks(sites.load("thishost").milestones) == ["Boot has no date"]


def test_days_that_overlap_are_no_contradiction(world, written, monkeypatch):
    written(
        "thishost,2016-04-06/2016-04-20,Test,,A report,\n",
        "thishost,2016-04-20,Pass,Test,A report,\n",
    )
    monkeypatch.setenv("SITEPROOF_SITES", str(world.sites))
    assert site_tables.remarks(sites.load("thishost").milestones) == []


MISTAKES = [
    (["thishost,2016-13,Boot,,A report,\n"], "2: '2016-13' is not a valid date in date"),
    (["thishost,2016,Boot,Order,A report,\n"], "2: unknown milestone 'Order'"),
    (["thishost,2016,Boot,,A report,\n"] * 2, "3: the same as line 2"),
    (["testbed,2016,Boot,,A report,\n"], "2: milestones of 'testbed' in system"),
    (["thishost,2016,Boot,,,\n"], "2: missing key 'source'"),
]


def test_a_mistake_in_the_file_is_told_by_lint(written):
    for lines, told in MISTAKES:
        done = written(*lines)
        assert (done.code, f"timeline.csv:{told}" in done.out) == (2, True), done.said


def test_a_file_without_dates_is_no_timeline(written):
    done = written("thishost,Boot,A report\n", head="system,milestone,source\n")
    assert (done.code, "timeline.csv:1: no column 'date'" in done.out) == (2, True)


def test_the_fullest_example_has_every_column():
    text = (sites.folder().parent / "tests/unit/sites/sites/fullest/timeline.csv").read_text()
    assert set(text.splitlines()[1].split(",")) == {
        key.place for key in manual.keys("timeline.csv")
    }
