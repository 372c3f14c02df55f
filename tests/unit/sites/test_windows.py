"""windows.csv: times with zones, daylight saving, and what each window covers."""

import shutil
from datetime import UTC, datetime

from clone import SITES
from rows import rows

from siteproof.sites import load, site_tables
from siteproof.sites.site import examine
from siteproof.sites.site_tables import PlannedWindow, seconds

HEAD = "system,begin,end,nodes,services,announced,by,why\n"
ROW = "example,{},{},all,,2026-01-01T00:00Z,me,Update\n"


def utc(*parts):
    return int(datetime(*parts, tzinfo=UTC).timestamp())


def read(path):
    return site_tables.read(path, PlannedWindow)


def mistakes(tmp_path, text, head=HEAD):
    path = tmp_path / "windows.csv"
    path.write_text(head + text)
    return [error.message for error in read(path)[0].sorted_mistakes()]


@rows(
    "text, expected",
    [
        ("2026-11-21T18:00+01:00", utc(2026, 11, 21, 17)),
        ("2026-11-21T17:00Z", utc(2026, 11, 21, 17)),
        ("2026-11-21T18:00 Europe/Berlin", utc(2026, 11, 21, 17)),
        ("2026-07-21T18:00 Europe/Berlin", utc(2026, 7, 21, 16)),
        ("2026-11-21T17:00 UTC", utc(2026, 11, 21, 17)),
        ("2026-11-21T12:00 America/Indiana/Indianapolis", utc(2026, 11, 21, 17)),
        ("2026-10-25T02:30+02:00", utc(2026, 10, 25, 0, 30)),
        ("2026-10-25T02:30+01:00", utc(2026, 10, 25, 1, 30)),
    ],
)
def test_a_time_has_an_offset_or_a_zone(text, expected):
    assert seconds(text) == expected


@rows(
    "begin, what",
    [
        ("2026-11-21T18:00", "has no offset and no zone"),
        ("2026-11-21", "has no offset and no zone"),
        ("2026-10-25T02:30 Europe/Berlin", "occurs twice when clocks change"),
        ("2026-03-29T02:30 Europe/Berlin", "is skipped when clocks change"),
        ("2026-11-21T18:00 Europe/Berlim", "is not a time zone that this machine knows"),
        ("2026-11-21T18:00 Europe", "is not a time zone that this machine knows"),
        ("2026-11-21T18:00 ../../etc/passwd", "is not a valid time"),
        ("2026-11-21T18:00 /etc/localtime", "is not a valid time"),
        ("2026-11-21T18:00+01:00 Europe/Berlin", "has an offset and a zone"),
        ("0001-01-01T00:00+12:00", "is too early or too late"),
        ("yesterday", "is not a valid time"),
        ("2026-12-31T00:00Z", "the window ends before it begins"),
    ],
)
def test_a_time_that_leaves_a_doubt_is_a_mistake(begin, what, tmp_path):
    (told,) = mistakes(tmp_path, ROW.format(begin, "2026-12-01T00:00Z"))
    assert what in told


def test_a_window_over_the_change_of_clocks_is_as_long_as_it_is(tmp_path):
    path = tmp_path / "windows.csv"
    row = ROW.format("2026-10-25T00:00 Europe/Berlin", "2026-10-25T06:00 Europe/Berlin")
    path.write_text(HEAD + row)
    begin, end = read(path)[1][2].span
    assert end - begin == 7 * 3600


def test_a_window_must_cover_something_and_name_who_announced_it(tmp_path):
    row = "example,2026-11-21T18:00Z,2026-11-21T19:00Z,,,2026-01-01T00:00Z,{},Update\n"
    assert "no nodes and no services" in mistakes(tmp_path, row.format("me"))[0]
    assert "missing key 'by'" in mistakes(tmp_path, row.format(""))[0]


def test_what_was_announced_when_it_began_is_not_planned(tmp_path):
    path = tmp_path / "windows.csv"
    row = "example,2026-11-21T18:00Z,2026-11-21T20:00Z,all,,2026-11-21T{}Z,me,Update\n"
    path.write_text(HEAD + row.format("17:59") + row.format("18:00") + row.format("18:30"))
    assert [window.planned for window in read(path)[1].values()] == [True, False, False]


def test_nodes_and_services_must_be_those_of_the_system(tmp_path, monkeypatch):
    site = shutil.copytree(SITES / "fullest", tmp_path / "fullest")
    row = "{},2026-11-21T18:00Z,2026-11-21T20:00Z,{},{},2026-11-20T18:00Z,me,Update\n"
    (site / "windows.csv").write_text(
        HEAD
        + row.format("fullest", "iu-c[001-999]", "")
        + row.format("fullest", "", "web; portal")
        + row.format("fullest", "iu-c[001", "")
        + row.format("sister", "all", "all")
    )
    document = next(d for d in examine("fullest", site)[1] if d.path.name == "windows.csv")
    told = [str(error).rpartition("/")[2] for error in document.sorted_mistakes()]
    assert ["not in any role" in told[0], "unknown service 'portal'" in told[1]] == [True, True]
    assert ["bad node set" in told[2], "windows of 'sister'" in told[3]] == [True, True]
    assert len(told) == 4


def test_the_windows_of_the_fullest_site(monkeypatch):
    monkeypatch.setenv("SITEPROOF_SITES", str(SITES))
    windows = load("fullest").windows
    assert [window.planned for window in windows] == [True] * 3
    assert [window.covers_service("web") for window in windows] == [True, False, True]
    assert windows[0].span == (utc(2026, 11, 21, 17), utc(2026, 11, 22, 1))
