"""Files of plain ReFrame become history: copied as they are, once, and told."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import sys

import pytest
from clone import FOREIGN, Done
from test_foreign import HEAD, LINE, OUR_LINE, OUR_NAMES, WITH_A_DELIMITER

from siteproof import cli, history
from siteproof.history.foreign import figures


@pytest.fixture
def siteproof(world, monkeypatch, capsys):
    """The command, in this process."""
    world.data.mkdir()
    for name in ("SITEPROOF_SITES", "SITEPROOF_DATA", "SITEPROOF_SYSTEM"):
        monkeypatch.setenv(name, world.environment()[name])
    monkeypatch.setenv("SITEPROOF_CACHE", str(world.folder / "cache"))

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["siteproof", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return Done(ended.value.code, *capsys.readouterr())

    return run


@pytest.fixture
def nobody(monkeypatch):
    """Settings are read as by somebody who is not root."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)


@pytest.fixture
def bring(siteproof):
    """Imports paths for thishost."""
    return lambda *paths: siteproof("import", *paths, "--system", "thishost", "--apply")


def kept(world):
    top = world.data / "perflogs"
    return {str(p.relative_to(top)): p.read_bytes() for p in top.rglob("*") if p.is_file()}


def write(world, *lines, name="Test.log"):
    path = world.folder / "old" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_a_folder_is_copied_as_it_is_and_told(world, bring):
    done = bring(FOREIGN / "4.10-default")
    assert done.code == 3
    assert kept(world) == {
        f"thishost/imported/{p.name}": p.read_bytes()
        for p in (FOREIGN / "4.10-default").iterdir()
        if p != WITH_A_DELIMITER
    }
    assert "PipeTest.log: no line of it can be read; the first: " in done.out
    assert "new: StreamTest.log.h0: 4 values of 4 series, 2026-11-21 to 2026-11-21" in done.out
    assert "system oldsys of the files is imported as thishost" in done.out
    assert done.out.endswith(
        "14 values of 11 series, 2026-11-21 to 2026-11-21; 0 lines refused; files: 4 new; "
        "next: siteproof history --system thishost\n"
    )


def test_names_below_the_folder_stay_and_what_is_neither_is_told(world, bring):
    write(world, HEAD, LINE, name="sys/part/Test.log")
    write(world, "nothing", name="sys/part/out.txt")
    done = bring(world.folder / "old")
    assert list(kept(world)) == ["thishost/imported/sys/part/Test.log"]
    assert "skipped 1 other file" in done.out


def test_importing_twice_changes_nothing_and_a_grown_file_is_continued(world, bring):
    path = write(world, HEAD, LINE)
    assert bring(path).code == 0
    before = kept(world)
    assert "1 as it was" in bring(path).out
    assert kept(world) == before
    write(world, HEAD, LINE, LINE.replace("24939.4", "25000.1").replace("|7|", "|8|"))
    assert "grown: Test.log: 2 values" in bring(path).out
    assert kept(world)["thishost/imported/Test.log"] == path.read_bytes()


def test_another_content_under_the_name_is_refused_and_changes_nothing(world, bring):
    bring(write(world, HEAD, LINE))
    before = kept(world)
    done = bring(write(world, HEAD, LINE.replace("24939.4", "1.5")))
    assert done.code == 2
    assert "a file of that name and another content is there already" in done.err
    assert kept(world) == before


def test_the_same_runs_under_another_name_or_in_a_report_are_not_counted_twice(world, bring):
    bring(FOREIGN / "4.10-default")
    before = kept(world)
    again = world.folder / "again.log"
    shutil.copy(FOREIGN / "4.10-default" / "StreamTest.log", again)
    done = bring(again, FOREIGN / "reports" / "4.10.json")
    assert done.code == 0
    told = "left out: {}: {} values were imported before, from {}"
    assert told.format("again.log", "4 of its 4", "StreamTest.log") in done.out
    assert told.format("4.10.json", "4 of its 5", "StreamTest.log.h0") in done.out
    assert kept(world) == before


def results_db(path, *reports):
    """As reframe/frontend/reporting/storage.py makes it; the sessions are numbered."""
    with sqlite3.connect(path) as database:
        database.execute(
            "CREATE TABLE IF NOT EXISTS sessions(uuid TEXT PRIMARY KEY, session_start_unix REAL, "
            "session_end_unix REAL, json_blob TEXT, report_file TEXT)"
        )
        for number, report in enumerate(reports):
            row = (f"{number:08}-0586-428a-b985-e412568b3ff3", number, number, report, None)
            database.execute("INSERT OR REPLACE INTO sessions VALUES(?, ?, ?, ?, ?)", row)
    database.close()
    return path


def test_each_session_of_a_results_database_is_a_report_and_comes_in_once(world, bring):
    first, second = ((FOREIGN / "reports" / name).read_text() for name in ("4.10.json", "4.3.json"))
    path = results_db(world.folder / "results.db", first)
    name = "results.db/0000000{}-0586-428a-b985-e412568b3ff3.json"
    assert f"new: {name.format(0)}: " in bring(path).out
    done = bring(results_db(path, first, "{", second))
    assert (done.code, done.out.count("as it was: "), done.out.count("new: ")) == (3, 1, 1)
    assert f"{path}, session 00000001-0586-428a-b985-e412568b3ff3: no run report" in done.out
    assert kept(world) == {
        f"thishost/imported/{name.format(number)}": text.encode()
        for number, text in ((0, first), (2, second))
    }


def test_a_database_that_is_not_reframes_is_refused_with_the_reason(world, bring):
    whole = results_db(world.folder / "whole.db", "x" * 9000)
    strange = results_db(world.folder / "strange.db", "{}")
    with sqlite3.connect(strange) as database:
        database.execute("UPDATE sessions SET uuid = '../../x'")
    database.close()
    other = world.folder / "other.db"
    sqlite3.connect(other).execute("CREATE VIEW sessions AS SELECT 1 AS uuid").connection.close()
    cut = world.folder / "cut.db"
    cut.write_bytes(whole.read_bytes()[:5000])
    for path, why in (
        (strange, "'../../x' is not a session of ReFrame"),
        (other, "a database without the sessions of ReFrame"),
        (cut, "cannot be read: "),
    ):
        assert why in bring(path).refused(), path
    assert kept(world) == {}


def test_a_database_that_would_compute_or_write_when_it_is_read_is_refused(world, bring):
    virtual, wal = world.folder / "virtual.db", world.folder / "wal.db"
    computed = world.folder / "computed.db"
    columns = "uuid, session_start_unix, session_end_unix"
    for path, sql, why in (
        (virtual, f"CREATE VIRTUAL TABLE sessions USING fts5({columns}, json_blob)", "without the"),
        (
            computed,
            f"CREATE TABLE sessions({columns}, json_blob AS (hex(zeroblob(100000000))))",
            "a database without the sessions of ReFrame",
        ),
        (wal, "PRAGMA journal_mode = WAL", "with a write-ahead log"),
    ):
        with sqlite3.connect(path) as database:
            database.execute(sql)
        database.close()
        assert why in bring(path).refused(), path
    assert not [*world.folder.glob("wal.db-*")]
    assert kept(world) == {}


def test_refused_lines_are_told_by_line_twenty_at_most(world, bring):
    done = bring(write(world, HEAD, LINE, *["garbage"] * 30))
    assert done.code == 3
    assert done.out.count("refused: ") == 21
    assert "Test.log:3: 1 columns" in done.out
    assert "refused: 10 more lines" in done.out
    assert "30 lines refused" in done.out


def test_all_refused_lines_count_also_those_that_are_not_named(world, bring, monkeypatch):
    monkeypatch.setattr(figures, "MAX_REFUSED", 3)
    done = bring(write(world, HEAD, LINE, *["garbage"] * 30))
    assert done.out.count("refused: ") == 4
    assert "refused: 27 more lines" in done.out
    assert "30 lines refused" in done.out


def test_a_file_of_a_folder_that_cannot_be_read_is_named_and_the_others_come_in(world, bring):
    write(world, HEAD, LINE, name="logs/Good.log")
    write(world, "2026-01-02|unknown", name="logs/Bad.log")
    write(world, "about these files", name="logs/README")
    done = bring(world.folder / "old" / "logs")
    assert done.code == 3
    assert "logs/Bad.log: no run report of ReFrame" in done.out
    assert "new: Good.log" in done.out
    assert "skipped 1 other file" in done.out


def test_a_file_that_is_none_of_reframes_is_no_mistake_of_a_given_format(world, bring):
    write(world, HEAD, LINE, name="logs/Good.log")
    write(world, "about these files", name="logs/README")
    done = bring(world.folder / "old" / "logs", "--format", "3.x")
    assert done.code == 0
    assert "skipped 1 other file" in done.out


VALUE = "%(check_perf_var)s=%(check_perf_value)s"


@pytest.mark.parametrize(
    ("form", "line", "expected"),
    [
        (
            f"%(check_info)s|{VALUE}|ref=%(check_perf_ref)s|%(check_perf_unit)s",
            "T on c:p using e|bw=5.4| ref=5.4|GB/s",
            ("", "T.bw", "GB/s"),
        ),
        (
            f"%(check_info)s|{VALUE}|ref=%(check_perf_ref)s (u=%(check_perf_upper_thres)s)"
            "%(check_perf_unit)s",
            "T %$nodes=n1 @c:p+e|bw=5.4|ref=5.4 (u=None)GB/s",
            ("n1", "T.bw", "GB/s"),
        ),
        (
            f"{VALUE}|%(check_perf_unit)s|%(check_tags)s",
            "bw=5.4|GB/s|a,nodes=2",
            ("", "Test.bw", "GB/s"),
        ),
    ],
    ids=["a blank before ref", "a node, and no delimiter before the unit", "tags, and no name"],
)
def test_lines_of_published_logs_are_read_by_their_format(form, line, expected, world, bring):
    path = write(world, f"2026-01-02T10:00:00+00:00|{line}")
    form = f"%(check_job_completion_time)s|{form}"
    assert bring(path, "--format", form).code == 0
    sql = "SELECT node, metric, unit FROM samples"
    told = world.inside("history", "--system", "thishost", "--json", "--sql", sql).out
    assert [tuple(row.values()) for row in json.loads(told)] == [expected]


LOGGED = {
    "type": "filelog",
    "format": "%(check_job_completion_time)s|%(check_info)s|%(check_perfvalues)s",
    "format_perfvars": f"{VALUE},%(check_perf_unit)s",
}


def settings(world, name, *handlers):
    """A settings file of a centre: `name` tells its kind."""
    logging = [{"handlers": [], "handlers_perflog": [*handlers]}]
    given = json.dumps({"logging": logging})
    path = world.folder / name
    path.write_text(given if name.endswith("n") else f"site_configuration = {given}\n")
    return path


@pytest.mark.parametrize("name", ["settings.json", "settings.py"])
def test_a_settings_file_of_reframe_has_the_format(name, world, bring, nobody):
    given = settings(world, name, LOGGED, {"type": "syslog", "address": "x", "format": "%(x)s"})
    path = write(world, "2026-01-02T10:00:00+00:00|T on c:p using e|bw=5.4,GB/s")
    assert bring(path, "--format", given).code == 0
    with history.open_history(world.data / "perflogs") as held:
        assert held.sql("SELECT metric, value, unit FROM samples") == [("T.bw", 5.4, "GB/s")]


def test_a_settings_file_without_one_format_is_one_line(world, bring, nobody):
    other = LOGGED | {"format": "%(check_info)s|%(check_perfvalues)s"}
    broken = world.folder / "broken.py"
    broken.write_text("raise SystemExit\n")
    path = write(world, HEAD, LINE)
    for given, why in (
        (settings(world, "none.json"), "0 formats of its own"),
        (settings(world, "two.py", LOGGED, other), "2 formats of its own"),
        (settings(world, "no_time.py", other), "it has no %(check_job_completion_time)s"),
        (broken, "cannot be read: ConfigError"),
        (settings(world, "kind.py", {"format": "x"}), "its 'logging' is not as in the settings"),
        (settings(world, "number.py", LOGGED | {"format": 5}), "its 'logging' is not as in"),
        (world.folder / "not_there.py", "no such file"),
    ):
        done = bring(path, "--format", given)
        assert (done.code, done.err.count("\n")) == (2, 1), (given, done.err)
        assert why in done.err, given
        assert kept(world) == {}, given


def test_root_does_not_run_settings_that_name_the_format(world, bring, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    given = settings(world, "settings.py", LOGGED)
    given.write_text(f"open({str(world.folder / 'ran')!r}, 'w')\n{given.read_text()}")
    path = write(world, HEAD, LINE)
    assert "is a program, which is not run as root" in bring(path, "--format", given).refused()
    assert not (world.folder / "ran").exists()


def test_two_files_of_one_name_are_refused_and_change_nothing(world, bring):
    for folder in ("a", "b"):
        write(world, HEAD, LINE, name=f"{folder}/Test.log")
    done = bring(world.folder / "old" / "a", world.folder / "old" / "b")
    assert done.code == 2
    assert "b/Test.log: another Test.log is to be imported, too" in done.err
    assert kept(world) == {}


def test_a_file_of_which_nothing_can_be_read_changes_nothing(world, bring):
    good = write(world, HEAD, LINE)
    bad = write(world, HEAD, "garbage", name="Bad.log")
    done = bring(good, bad)
    assert done.code == 2
    assert "no line of it can be read; the first: " in done.err
    assert "Bad.log:2: 1 columns" in done.err
    assert kept(world) == {}


def test_without_apply_it_says_the_same_and_does_nothing(world, siteproof):
    path = write(world, HEAD, LINE)
    done = siteproof("import", path, "--system", "thishost")
    assert "new: Test.log: 1 value of 1 series" in done.out
    assert "; nothing was changed\n" in done.out
    assert done.out.endswith(f"\nnext: siteproof import {path} --system thishost --apply\n")
    assert kept(world) == {}


def test_where_nothing_is_new_no_apply_is_next(world, bring, siteproof):
    path, empty = write(world, HEAD, LINE), write(world, HEAD, name="Empty.log")
    assert bring(path).code == 0
    for one in (path, empty):
        done = siteproof("import", one, "--system", "thishost")
        assert (done.code, done.err) == (0, ""), one
        assert done.out.endswith("; there is nothing to change\n"), one


def test_the_options_are_kept_beside_the_file_and_others_are_refused(world, bring):
    path = write(world, HEAD, LINE)
    assert bring(path, "--zone", "Europe/Zurich").code == 0
    options = json.loads(kept(world)["thishost/imported/Test.log.import"])
    assert options == {"zone": "Europe/Zurich", "format": "", "systems": [], "tests": []}
    assert bring(path, "--zone", "Europe/Zurich").code == 0
    done = bring(path)
    assert done.code == 2
    assert "it is there already with --zone 'Europe/Zurich'" in done.err
    with history.open_history(world.data / "perflogs") as held:
        rows = held.sql("SELECT time::VARCHAR, source, file FROM samples")
    assert rows == [("2026-11-21 18:39:48", "reframe", "thishost/imported/Test.log")]


def test_options_that_somebody_has_spoilt_leave_out_their_file(world, bring):
    path = write(world, HEAD, LINE)
    bring(path, "--zone", "Europe/Zurich")
    place = world.data / "perflogs/thishost/imported/Test.log.import"
    good = json.loads(place.read_text())
    for text, why in (
        ("{", "is broken"),
        ("[]", "not the options of an import"),
        (json.dumps(good | {"tests": "T"}), "not the options of an import"),
        (json.dumps(good | {"zone": 3}), "not the options of an import"),
        (json.dumps(good | {"zone": "../../etc/passwd"}), "is not a time zone"),
        (json.dumps(good | {"format": "%(x)s"}), "does not name all columns"),
    ):
        place.write_text(text)
        with history.open_history(world.data / "perflogs") as held:
            assert held.sql("SELECT count(*) FROM samples") == [(0,)], text
            assert len(held.refused) == 1, text
            assert why in held.refused[0] or text == "{", (text, held.refused)


def test_a_perflog_without_names_needs_its_format(world, bring):
    path = FOREIGN / "3.12-default" / "StreamTest_4.log"
    done = bring(path)
    assert done.code == 2
    assert done.err.count("\n") == 1
    assert (
        "no perflog with a line of names, as ReFrame 4 writes it. Allowed: --format 2." in done.err
    )
    done = bring(FOREIGN / "3.12-default")
    assert done.code == 2
    assert "no perflog and no run report of ReFrame to import" in done.err
    assert kept(world) == {}
    done = bring(FOREIGN / "3.12-default", "--format", "3.x")
    assert done.code == 0, done
    assert "files: 4 new" in done.out
    with history.open_history(world.data / "perflogs") as held:
        assert held.sql("SELECT count(*) FROM samples") == [(14,)]
        assert held.refused == []


def test_a_wrong_option_is_one_line(world, siteproof):
    here = ("--system", "thishost")
    for arguments, why in (
        (("--system", "nowhere"), "unknown system 'nowhere'"),
        ((), "required for files of ReFrame"),
        ((*here, "--zone", "Middle/Earth"), "'Middle/Earth' is not a time zone"),
        ((*here, "--zone", "../../etc/passwd"), "is not a time zone"),
        ((*here, "--format", "4.x"), "'4.x' does not name all columns"),
    ):
        done = siteproof("import", write(world, HEAD, LINE), *arguments)
        assert done.code == 2, arguments
        assert why in done.err, arguments
        assert done.err.count("\n") == 1, arguments
        assert kept(world) == {}, arguments


def test_a_name_that_would_be_taken_for_something_else_is_refused(world, bring):
    for name in ("Test.jsonl", "Test.import", "Te\x1bst.log"):
        done = bring(write(world, HEAD, LINE, name=name))
        assert done.code == 2, name
        assert "a name that imported files cannot have" in done.err, name


def test_a_link_in_a_folder_is_left_out_as_latest_json_is(world, bring):
    write(world, HEAD, LINE)
    (world.folder / "old" / "latest.log").symlink_to("Test.log")
    bring(world.folder / "old")
    assert list(kept(world)) == ["thishost/imported/Test.log"]


def test_of_a_perflog_of_our_settings_the_lines_of_plain_tests_are_imported(world, bring):
    lines = [f"{OUR_LINE.format('Stream')}|20261123T1-a", f"{OUR_LINE.format('stream_test')}|null"]
    done = bring(write(world, OUR_NAMES, *lines, lines[0]))
    assert done.code == 0
    assert "new: Test.log: 1 value of 1 series" in done.out
    told = "not imported: 2 lines of Siteproof's runs, whose values are in its samples"
    assert told in done.out.splitlines()
    with history.open_history(world.data / "perflogs") as held:
        assert held.sql("SELECT metric FROM samples") == [("stream_test.rate",)]
        assert held.refused == []


def test_a_perflog_of_our_checks_alone_gives_nothing_and_the_reason(world, bring):
    done = bring(write(world, OUR_NAMES, f"{OUR_LINE.format('Stream')}|20261123T1-a"))
    assert done.code == 0
    assert "not imported: 1 line of Siteproof's runs" in done.out
    assert kept(world) == {}


TWO = (
    HEAD,
    LINE,
    LINE.replace("|old|", "|new|").replace("|7|", "|8|"),
    LINE.replace("Test %n=4", "Other").replace("|7|", "|9|"),
)


def test_a_selection_is_kept_next_to_the_file_and_the_counts_add_up(world, bring):
    path = write(world, *TWO)
    done = bring(path, "--only-system", "old", "--only-test", "T?st")
    assert done.code == 0, done
    assert "new: Test.log: 1 value of 1 series" in done.out
    assert "not imported: 2 lines that --only-system or --only-test leaves out" in done.out
    assert kept(world)["thishost/imported/Test.log"] == path.read_bytes()
    with history.open_history(world.data / "perflogs") as held:
        rows = held.sql("SELECT metric, conditions ->> 'system' FROM samples")
        assert rows == [("Test.copy", "old")]
        assert held.refused == []
    assert "1 as it was" in bring(path, "--only-system", "old", "--only-test", "T?st").out


def test_another_selection_of_a_file_that_is_there_is_refused(world, bring):
    path = write(world, *TWO)
    bring(path, "--only-system", "old")
    for words in ([], ["--only-system", "new"]):
        done = bring(path, *words)
        assert done.code == 2
        assert "it is there already with --only-system 'old'" in done.err


def test_a_system_that_no_file_names_is_refused_with_those_that_they_name(world, bring):
    done = bring(write(world, *TWO), "--only-system", "odl")
    assert done.code == 2
    assert "no file has the system 'odl'. Allowed: new, old" in done.err
    assert kept(world) == {}


def test_a_csv_has_no_tests_to_select(world, siteproof):
    path = world.folder / "values.csv"
    path.write_text("x")
    done = siteproof("import", path, "--only-test", "T*")
    assert done.code == 2
    assert "a CSV file has no tests of ReFrame" in done.err


def test_a_path_that_is_not_there_is_named_with_any_option(bring):
    for options in ((), ("--zone", "UTC")):
        done = bring("gone.log", *options)
        assert (done.code, done.err) == (2, "siteproof: gone.log: no such file or folder\n")


def test_imported_figures_are_rows_of_the_history(world, bring):
    bring(FOREIGN / "4.10-default")
    with history.open_history(world.data / "perflogs", ["thishost"]) as held:
        rows = held.sql(
            "SELECT metric, digits, unit, dims, status FROM samples "
            "WHERE metric LIKE 'StreamTest%' ORDER BY time, job, metric"
        )
        count = held.sql("SELECT count(*) FROM samples")[0][0]
        assert held.refused == []
    assert count == 14
    assert rows[0] == (
        "StreamTest.copy",
        "24939.4",
        "MB/s",
        json.dumps({"threads": "1"}, separators=(",", ":")),
        "ok",
    )


def test_lines_that_cannot_be_read_are_named_by_the_history_too(world, bring):
    bring(write(world, HEAD, LINE, "garbage"))
    with history.open_history(world.data / "perflogs", ["thishost"]) as held:
        (told,) = held.refused
    assert "imported/Test.log:3: 1 columns" in told
