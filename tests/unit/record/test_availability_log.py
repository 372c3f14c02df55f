"""Lines of probes: written whole by many at once, and read from a hostile file."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteproof import files
from siteproof.errors import UserError
from siteproof.nodesets import of
from siteproof.record import availability_log
from siteproof.record.availability_log import EventRecord, ProbeResult, parse
from siteproof.sites.system import TARGETS

AT = int(datetime(2026, 11, 21, 18, tzinfo=UTC).timestamp())
GOOD = ProbeResult(AT, "login", "login", "ssh", "login1", True, 300, 0.25)
PLAIN = json.loads(GOOD.line())
WRITER = """
import sys
from pathlib import Path
from siteproof.record import availability_log
from siteproof.record.availability_log import ProbeResult
top, name, at = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
for number in range(400):
    why = name * (number % 300)
    one = ProbeResult(at + number, name, name, "ssh", name, False, 60, 1, why)
    availability_log.append(top, "s", one)
"""


def folder(top):
    return top / "s" / availability_log.FOLDER


def read(top, at=AT):
    return availability_log.read(top, "s", at - 3600, at + 3600)


def test_what_was_appended_is_read(tmp_path):
    availability_log.append(tmp_path, "s", GOOD)
    bad = ProbeResult(AT + 1, "web", "web", "http", "http://a/", False, 60, 10.0, "no answer")
    availability_log.append(tmp_path, "s", bad)
    found = read(tmp_path)
    assert found.results == [GOOD, bad]
    assert not found.broken
    (path,) = folder(tmp_path).iterdir()
    assert path.name == f"2026-11-21.{availability_log.host()}.probes"


def test_a_line_of_each_kind_of_probe_is_read(tmp_path):
    told = [replace(GOOD, kind=kind) for kind in TARGETS]
    for result in told:
        availability_log.append(tmp_path, "s", result)
    found = read(tmp_path)
    assert found.results == told
    assert not found.broken


def test_rounds_at_the_same_time_tear_no_line(tmp_path):
    names = ["a" * 1, "b" * 1, "c" * 1, "d" * 1]
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), name, str(AT)])
        for name in names
    ]
    assert [writer.wait(120) for writer in writers] == [0] * 4
    found = read(tmp_path)
    assert not found.broken
    for name in names:
        own = [one for one in found.results if one.probe == name]
        assert [one.at for one in own] == list(range(AT, AT + 400))


def test_a_line_is_short_whatever_a_service_has_answered():
    long = ProbeResult(AT, "web", "web", "http", "ü" * 9999, False, 60, 1.0, "\U0001f600" * 9999)
    line = long.line()
    assert len(line) < availability_log.LONGEST
    assert line.count(b"\n") == 1
    assert parse("x", line.decode().rstrip("\n"))


def test_a_line_break_of_a_service_makes_no_line():
    line = ProbeResult(AT, "web", "web", "tcp", "a\nb", False, 60, 1.0, "x\n\x1b[31m").line()
    assert line.count(b"\n") == 1
    assert parse("x", line.decode().rstrip()).why == "x??[31m"


def test_a_line_that_no_probe_has_written_is_none():
    for change in (
        {"at": "2026-11-21T18:00:00"},
        {"at": "2026-13-41T18:00:00Z"},
        {"at": "9999-11-21T18:00:00Z"},
        {"at": AT},
        {"probe": "../x"},
        {"probe": ""},
        {"service": "a b"},
        {"kind": "icmp"},
        {"ok": 1},
        {"ok": "true"},
        {"interval": 0},
        {"interval": 86_401},
        {"interval": 1e9},
        {"interval": True},
        {"took": -1},
        {"took": "1"},
        {"why": "a\nb"},
        {"why": "x" * 501},
        {"target": None},
        {"more": 1},
    ):
        assert parse("x", json.dumps(PLAIN)) == GOOD, change
        assert parse("x", json.dumps(PLAIN | change)) is None, change


def test_a_key_that_is_missing_makes_no_result():
    for key in PLAIN:
        assert parse("x", json.dumps({k: v for k, v in PLAIN.items() if k != key})) is None


@given(st.text(max_size=400) | st.binary(max_size=200).map(lambda b: b.decode("latin-1")))
def test_no_text_breaks_the_reader(text):
    parse("x", text)
    parse("x", '{"at":' + "[" * 4000)
    parse("x", json.dumps(PLAIN | {"took": 10**400}))


def test_broken_lines_cost_themselves_only(tmp_path):
    availability_log.append(tmp_path, "s", GOOD)
    (path,) = folder(tmp_path).iterdir()
    with path.open("ab") as stream:
        stream.write(b'{"cut":\nnot JSON\n' + b"[" * 3000 + b"\n\xff\xfe\n" + b"x" * 9000)
    availability_log.append(tmp_path, "s", GOOD)
    found = read(tmp_path)
    assert found.results == [GOOD, GOOD], "a cut line is ended before the next one"
    assert found.broken == {path: 5}


def test_a_line_in_the_file_of_another_day_is_broken(tmp_path):
    availability_log.append(tmp_path, "s", GOOD)
    (path,) = folder(tmp_path).iterdir()
    path.rename(path.with_name("2026-11-20.h.probes"))
    found = availability_log.read(tmp_path, "s", AT - 86_400, AT)
    assert (found.results, list(found.broken.values())) == ([], [1])


def test_a_huge_file_is_refused_and_the_other_days_are_read(tmp_path):
    availability_log.append(tmp_path, "s", GOOD)
    (path,) = folder(tmp_path).iterdir()
    huge = path.with_name("2026-11-21.other.probes")
    with huge.open("wb") as stream:
        stream.truncate(availability_log.LARGEST + 1)
    found = read(tmp_path)
    assert found.results == [GOOD]
    assert "too large" in str(found.refused[0])


def test_nothing_is_appended_to_a_link_a_pipe_or_a_file_that_is_full(tmp_path):
    availability_log.append(tmp_path, "s", GOOD)
    (path,) = folder(tmp_path).iterdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("")
    for make in (path.symlink_to, path.hardlink_to):
        path.unlink()
        make(elsewhere)
        with pytest.raises(UserError, match="link"):
            availability_log.append(tmp_path, "s", GOOD)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises((UserError, OSError)):
        availability_log.append(tmp_path, "s", GOOD)
    path.unlink()
    with path.open("wb") as stream:
        stream.truncate(availability_log.LARGEST)
    with pytest.raises(UserError, match="too large"):
        availability_log.append(tmp_path, "s", GOOD)
    assert elsewhere.read_text() == ""


def test_nothing_is_written_through_a_folder_that_is_a_link(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "s").mkdir()
    folder(tmp_path).symlink_to(elsewhere)
    with pytest.raises(UserError, match="link"):
        availability_log.append(tmp_path, "s", GOOD)
    assert list(elsewhere.iterdir()) == []


def test_the_group_may_append_where_it_may_write_to_the_folder(tmp_path):
    availability_log.append(tmp_path, "s", GOOD)
    (path,) = folder(tmp_path).iterdir()
    path.chmod(0o644)
    folder(tmp_path).chmod(0o775)
    availability_log.append(tmp_path, "s", GOOD)
    assert path.stat().st_mode & 0o020


def test_due_probes_look_at_this_day_and_the_day_before(tmp_path):
    availability_log.append(tmp_path, "s", GOOD)
    now = datetime.fromtimestamp(AT + 80_000, UTC)
    found = availability_log.recent(tmp_path, "s", now).results
    assert availability_log.last_times(found) == {"login": AT}


# ---- node events


def record(text="testbed||1|Unknown||0|Cluster Registered TRES\n"):
    return EventRecord(AT - 100, AT, of(["n1", "n2"]), text)


def test_node_events_are_kept_as_they_were_printed(tmp_path):
    path = availability_log.write_events(tmp_path, "s", record("a|b\nü\n"))
    found, refused = availability_log.read_events(tmp_path, "s")
    assert (found[0].begin, found[0].end, str(found[0].nodes)) == (AT - 100, AT, "n[1-2]")
    assert (found[0].text, found[0].name, refused) == ("a|b\nü\n", path.name, [])


def test_a_record_of_events_that_is_broken_is_named(tmp_path):
    for head in (
        "",
        "[]",
        '{"format": 2, "begin": 1, "end": 2, "nodes": "n1"}',
        '{"format": 1, "begin": 2, "end": 1, "nodes": "n1"}',
        '{"format": 1, "begin": 1, "end": 1e99, "nodes": "n1"}',
        '{"format": 1, "begin": 1, "end": 2, "nodes": "n[1-999999999]"}',
        '{"format": 1, "begin": 1, "end": 2, "nodes": "@all"}',
        '{"format": 1, "begin": 1, "end": 2}',
        "[" * 9999,
    ):
        path = availability_log.write_events(tmp_path, "s", record())
        path.write_text(head + "\nx")
        found, refused = availability_log.read_events(tmp_path, "s")
        path.unlink()
        assert (found, len(refused)) == ([], 1), head


def test_more_events_than_a_file_can_hold_are_refused(tmp_path):
    with pytest.raises(UserError, match="too many events"):
        availability_log.write_events(tmp_path, "s", record("x" * files.OUTPUT))
    assert not (tmp_path / "s").exists()
