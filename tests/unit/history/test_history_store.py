"""The store of the history: derived, incremental, and right whatever happens to its writers."""

import json
import multiprocessing
import os
import random
import time

import duckdb
import pytest
import years

from siteproof import history
from siteproof.errors import UserError
from siteproof.history import refresh, tables
from siteproof.record import samples

SMALL = {"nodes": 2, "metrics": ("Stream.triad", "Hpl.gflops")}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SITEPROOF_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def perflogs(tmp_path):
    years.write(tmp_path / "perflogs", runs=6, **SMALL)
    return tmp_path / "perflogs"


def held(opened):
    """Everything in the view that makes rows what they are."""
    return sorted(
        opened.sql(
            "SELECT file, node, metric, digits, base, status, series, conditions, time FROM samples"
        ),
        key=str,
    )


def truth(perflogs):
    """The same from samples.read alone, with the files that it refuses."""
    found, refused = [], []
    for system in sorted(path.name for path in perflogs.iterdir()):
        for path in samples.files(perflogs, system):
            try:
                run, narrow, contexts = tables.of_file(path, str(path.relative_to(perflogs)), 1)
            except UserError as error:
                refused.append(str(error))
                continue
            conditions = {context.key: context.conditions for context in contexts}
            found += [
                (
                    run["file"],
                    r["node"],
                    r["metric"],
                    r["digits"],
                    None if r["value"] is None else r["value"] * r["factor"],
                    r["status"],
                    r["series"],
                    conditions[r["context"]],
                    run["time"],
                )
                for r in narrow
            ]
    return sorted(found, key=str), sorted(refused)


def is_right(perflogs):
    with history.open_history(perflogs) as opened:
        assert (held(opened), sorted(opened.refused)) == truth(perflogs)
        return opened


def told_by(perflogs, **keys):
    """How many files an opening reads."""
    read = [0]
    with history.open_history(perflogs, progress=lambda done, of: read.append(done), **keys):
        return read[-1]


def test_only_what_is_new_has_changed_or_has_gone_is_read_again(perflogs):
    assert told_by(perflogs) == 12
    assert told_by(perflogs) == 0
    years.write(perflogs, runs=7, first=6, **SMALL)
    files = sorted(perflogs.rglob("*.jsonl"))
    files[0].unlink()
    files[1].write_text(files[1].read_text().replace("n001", "n009"))
    assert told_by(perflogs) == 3
    assert told_by(perflogs) == 0
    is_right(perflogs)


def test_another_content_of_the_same_size_and_age_is_read(perflogs):
    told_by(perflogs)
    path = sorted(perflogs.rglob("*.jsonl"))[0]
    moment = path.stat().st_mtime_ns
    path.write_text(path.read_text().replace("n001", "n009"))
    os.utime(path, ns=(moment, moment))
    assert told_by(perflogs) == 1
    is_right(perflogs)


def test_without_refresh_it_is_as_it_was(perflogs):
    told_by(perflogs)
    years.write(perflogs, runs=7, first=6, **SMALL)
    with history.open_history(perflogs, only=()) as opened:
        assert opened.sql("SELECT count(*) FROM runs") == [(12,)]


def test_what_was_refused_is_told_until_it_is_mended(perflogs):
    path = sorted(perflogs.rglob("*.jsonl"))[3]
    good = path.read_text()
    path.write_text(good.replace('"unit":"MB/s"', '"unit":"MBps"'))
    for _ in range(2):
        assert f"{path}:2: unknown unit 'MBps'" in is_right(perflogs).refused[0]
    path.write_text(good)
    assert is_right(perflogs).refused == []


def test_one_system_is_brought_up_to_date_and_shown_without_the_others(perflogs):
    years.write(perflogs, system="there", runs=2, **SMALL)
    (perflogs / "there/compute/x.jsonl").write_text("?\n")
    with history.open_history(perflogs, ["here"]) as opened:
        assert opened.sql("SELECT DISTINCT system FROM samples") == [("here",)]
        assert opened.refused == []
    assert told_by(perflogs, systems=["there"]) == 5
    assert told_by(perflogs) == 0
    is_right(perflogs)


@pytest.mark.deep
def test_a_year_of_daily_additions_leaves_few_parts_and_no_file_beside_them(perflogs, cache):
    for run in range(6, 12):
        years.write(perflogs, runs=run + 1, first=run, **SMALL)
        told_by(perflogs)
    folder = next(cache.iterdir())
    for path in folder.iterdir():
        os.utime(path, (0, 0))  # as if hours had passed
    years.write(perflogs, runs=13, first=12, **SMALL)
    opened = is_right(perflogs)
    parts = json.loads((folder / "index.json").read_text())["parts"]
    assert len(parts) <= 4
    now = {tables.file_name(p["name"], table) for p in parts for table in p["digests"]}
    left = {p.name for p in opened.folder.iterdir()} - now - {"index.json"}
    assert all(time.time() - (folder / name).stat().st_mtime < 60 for name in left)  # merged now


def test_a_store_that_is_mostly_out_of_date_is_written_again(perflogs, monkeypatch):
    monkeypatch.setattr(refresh, "WASTE", 10)
    monkeypatch.setattr(tables, "CLOSED", 1)
    told_by(perflogs)
    for path in sorted(perflogs.rglob("*.jsonl"))[:10]:
        path.unlink()
    told_by(perflogs)
    index = tables.load(tables.folder_of(perflogs))
    assert sum(part.rows for part in index.parts) == len(truth(perflogs)[0])
    is_right(perflogs)


def test_what_needs_more_memory_than_nearly_all_is_read_with_what_there_is(perflogs, monkeypatch):
    monkeypatch.setattr(history, "ENOUGH", "1MB")
    with history.open_history(perflogs) as opened:
        assert held(opened) == truth(perflogs)[0]
        assert opened.sql("SELECT current_setting('memory_limit')") != [("976.5 KiB",)]


def test_nothing_of_a_merge_that_lacks_memory_is_left(perflogs, monkeypatch):
    told_by(perflogs)
    years.write(perflogs, system="there", runs=2, **SMALL)
    monkeypatch.setattr(refresh, "WASTE", -1000)  # merge
    written = tables.write

    def write(connection, folder, queries):
        if "live_turns" not in queries["samples"]:
            return written(connection, folder, queries)
        monkeypatch.setattr(tables, "write", written)
        connection.close()  # as one with a failed statement may be
        raise duckdb.OutOfMemoryException("failed to pin")

    monkeypatch.setattr(tables, "write", write)
    is_right(perflogs)
    assert tables.write is written  # it was merged


def test_a_rebuild_reads_everything_and_leaves_nothing_behind(perflogs):
    told_by(perflogs)
    years.write(perflogs, system="there", runs=2, **SMALL)
    assert told_by(perflogs, rebuild=True) == 16
    index = tables.load(tables.folder_of(perflogs))
    assert sum(part.rows for part in index.parts) == len(truth(perflogs)[0])
    assert told_by(perflogs, systems=["there"], rebuild=True) == 4
    is_right(perflogs)


BREAKS = {
    "no index any more, but its parts": lambda f: (f / "index.json").unlink(),
    "a cut index": lambda f: (f / "index.json").write_bytes((f / "index.json").read_bytes()[:99]),
    "an index of something else": lambda f: (f / "index.json").write_text("[]"),
    "another version": lambda f: (f / "index.json").write_text(
        (f / "index.json").read_text().replace(tables.version(), "0" * 16)
    ),
    "a part is missing": lambda f: _part(f, "samples").unlink(),
    "a part is cut": lambda f: os.truncate(_part(f, "samples"), 100),
    "a part is rubbish": lambda f: _rubbish(_part(f, "runs")),
}


def _part(folder, table):
    """A file that counts; those that count no more lie beside it for a while."""
    (part,) = json.loads((folder / "index.json").read_text())["parts"]
    return folder / tables.file_name(part["name"], table)


def _rubbish(path):
    path.write_bytes(b"x" * path.stat().st_size)


@pytest.mark.deep
def test_a_broken_store_is_made_again_and_that_is_told(perflogs, cache):
    told_by(perflogs)
    for what, damage in BREAKS.items():
        damage(next(cache.iterdir()))
        notes = is_right(perflogs).notes
        assert len(notes) == (0 if what.startswith("no index") else 1), what
        assert all("made again, because" in note for note in notes)
        assert is_right(perflogs).notes == [], what


def test_where_no_store_can_be_written_it_is_in_memory_and_told_once(perflogs, cache):
    cache.write_text("a file is in the way")
    opened = is_right(perflogs)
    assert opened.folder is None
    assert len(opened.notes) == 1
    assert "in memory" in opened.notes[0]


def test_a_full_disk_costs_the_store_and_no_answer(perflogs, cache, monkeypatch):
    told_by(perflogs)
    years.write(perflogs, runs=9, first=6, **SMALL)

    def full(*_):
        raise OSError(28, "No space left on device", str(cache))

    monkeypatch.setattr(tables, "write", full)
    opened = is_right(perflogs)
    assert "No space left on device" in opened.notes[0]
    monkeypatch.undo()
    monkeypatch.setenv("SITEPROOF_CACHE", str(cache))
    assert told_by(perflogs) == 6
    is_right(perflogs)


class Ended(BaseException):
    """The process is gone."""


@pytest.mark.deep
def test_wherever_a_writer_ends_the_store_is_whole(perflogs, monkeypatch):
    """Every rename, write and removal of an update is, in turn, the last thing that happens."""
    place = 0
    while True:
        years.write(perflogs, runs=7 + place, first=6 + place, **SMALL)
        left = [place]

        def step(act, left=left):
            def stepped(*words, **keys):
                left[0] -= 1
                if left[0] < 0:
                    raise Ended
                return act(*words, **keys)

            return stepped

        with monkeypatch.context() as patch:
            for name in ("rename", "replace", "unlink"):
                patch.setattr(tables.Path, name, step(getattr(tables.Path, name)))
            for name in ("fsync", "utime", "unlink", "rename"):
                patch.setattr(os, name, step(getattr(os, name)))
            try:
                told_by(perflogs)
            except Ended:
                pass
            else:
                break
        with history.open_history(perflogs, only=()) as opened:
            files = {row[0] for row in held(opened)}
            assert held(opened) == [row for row in truth(perflogs)[0] if row[0] in files]
            assert opened.notes == []
        place += 1
    assert place >= 8
    is_right(perflogs)


def _open(perflogs, cache):
    os.environ["SITEPROOF_CACHE"] = str(cache)
    with history.open_history(perflogs) as opened:
        opened.sql("SELECT count(*) FROM samples")


@pytest.fixture(scope="module")
def processes():
    """Processes that start at once, because one that knows the history forks them."""
    made = multiprocessing.get_context("forkserver")
    made.set_forkserver_preload(["siteproof.history.refresh", "test_history_store"])
    return made


@pytest.mark.deep
def test_a_kill_at_any_moment_loses_nothing(perflogs, cache, processes):
    chance = random.Random(1)
    for run in range(6, 9):
        years.write(perflogs, runs=run + 1, first=run, **SMALL)
        process = processes.Process(target=_open, args=(perflogs, cache))
        process.start()
        time.sleep(chance.uniform(0.02, 0.4))
        process.kill()  # which may have ended already
        process.join()
        with history.open_history(perflogs, only=()) as opened:
            assert opened.notes == []
            files = {row[0] for row in held(opened)}
            assert held(opened) == [row for row in truth(perflogs)[0] if row[0] in files]
    is_right(perflogs)


@pytest.mark.deep
def test_several_writers_at_once_leave_a_valid_store(perflogs, cache, processes):
    writers = [processes.Process(target=_open, args=(perflogs, cache)) for _ in range(3)]
    for number, process in enumerate(writers):
        process.start()
        years.write(perflogs, runs=7 + number, first=6 + number, **SMALL)
    for process in writers:
        process.join()
        assert process.exitcode == 0
    assert is_right(perflogs).notes == []
