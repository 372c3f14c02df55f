"""Sessions: a verdict tonight reads what it speaks of, and not the years before it."""

from dataclasses import replace
from itertools import product

import fleets
import pytest
from fleets import header, judged, names, run_of

from siteproof.errors import UserErrors
from siteproof.nodes import states
from siteproof.nodes.speeds import RECENT
from siteproof.record import samples
from siteproof.record.sessions import Sessions


def keep(folder, run, check="Stream", **keys):
    metric = {"Stream": "Stream.triad", "Health": "Health.load"}[check]
    found = run_of(dict.fromkeys(names(2), 100.0 + run), run, metric, **keys)
    return samples.write(folder, found[0].header, found)


def test_only_the_jobs_that_are_wanted_are_read(tmp_path):
    old = keep(tmp_path, 1)
    keep(tmp_path, 2)
    old.write_text(old.read_text() + "{\n")
    sessions = Sessions(tmp_path, "here")
    assert [h.session for h in sessions.headers] == ["s0001", "s0002"]
    assert {s.header.session for s in sessions.of(lambda h: h.session == "s0002")} == {"s0002"}
    with pytest.raises(UserErrors, match=r"s0001\.Stream\.1\.jsonl:4: broken line"):
        sessions.of(lambda _: True)


def test_a_broken_header_leaves_what_the_name_and_the_neighbours_tell(tmp_path):
    keep(tmp_path, 1)
    for run, check in product((2, 3), ("Stream", "Health")):
        keep(tmp_path, run, check)
    for path in tmp_path.rglob("s0002*"):
        path.write_text("{\n")
    sessions = Sessions(tmp_path, "here")
    unread = sorted(sessions.unread, key=lambda header: header.check)
    assert [(h.session, h.check, h.job, h.mode) for h in unread] == [
        ("s0002", "Health", "1", ""),
        ("s0002", "Stream", "1", ""),
    ]
    first, last = sessions.headers[0], sessions.headers[-1]
    assert all(first.order < header.order < last.order for header in unread)
    assert len(sessions.left_out) == 2


def test_an_old_file_that_is_torn_is_left_out_and_told(tmp_path):
    for text in ("", "{", "\0" * 100):
        torn = keep(tmp_path, 1)
        keep(tmp_path, 2)
        torn.write_text(text)
        sessions = Sessions(tmp_path, "here")
        assert [h.session for h in sessions.headers] == ["s0002"], text
        assert len(sessions.of(lambda _: True)) == 2, text
        (error,) = sessions.left_out
        assert str(torn) in error.where, text


def test_a_torn_file_stops_whoever_needs_it_and_nobody_else(tmp_path):
    keep(tmp_path, 1)
    torn = keep(tmp_path, 1, "Health")
    keep(tmp_path, 2)
    torn.write_text(torn.read_text() + "{")
    sessions = Sessions(tmp_path, "here")
    with pytest.raises(UserErrors, match="broken line"):
        sessions.of(lambda h: h.session == "s0001")
    assert len(sessions.of(lambda h: h.session == "s0001", needed=False)) == 2
    assert len(sessions.of(lambda h: h.check == "Stream")) == 4


def test_a_nodes_past_is_that_of_the_newest_sessions_of_checks_that_rank_nodes(
    tmp_path, monkeypatch
):
    site = fleets.load(tmp_path / "sites", monkeypatch, count=2)
    for run in range(1, 41):
        keep(tmp_path, run)
        keep(tmp_path, run, "Health")
    sessions = Sessions(tmp_path, "here")
    now = sessions.of(lambda h: h.session == "s0039")
    told = replace(judged(site, now), sessions=sessions)
    past = states.lately(told)
    assert {kind.header.check for kind in past.kinds} == {"Stream"}
    assert sorted({kind.header.session for kind in past.kinds}) == [
        f"s{run:04}" for run in range(9, 39)
    ]


def test_other_modes_have_a_past_of_their_own(tmp_path, monkeypatch):
    site = fleets.load(tmp_path / "sites", monkeypatch, count=2)
    for run in range(1, 41):
        keep(tmp_path, run, mode="quick" if run > 4 else "maintenance")
    sessions = Sessions(tmp_path, "here")
    told = replace(judged(site, sessions.of(lambda h: h.session == "s0040")), sessions=sessions)
    modes = [kind.header.mode for kind in states.lately(told).kinds]
    assert modes.count("maintenance") == 4
    assert modes.count("quick") == RECENT


def test_header_alone_says_what_the_whole_file_says(tmp_path):
    path = samples.write(tmp_path, header(1), [])
    assert samples.read_header(path) == header(1)
