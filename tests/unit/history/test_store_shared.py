"""The store where several operators, hosts and kinds of file systems meet."""

import errno
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import years
from clone import wait_for

from siteproof import history
from siteproof.history import Refresh, tables

SMALL = {"nodes": 2, "metrics": ("Stream.triad", "Hpl.gflops")}
TOP = Path(__file__).resolve().parents[3]
COUNT = """
import sys
from pathlib import Path
from siteproof import history
with history.open_history(Path(sys.argv[1])) as opened:
    print(opened.sql("SELECT count(*) FROM samples")[0][0], bool(opened.folder))
"""
EXPORT = """
import os, sys
from pathlib import Path
from siteproof import history
from siteproof.history import extract
cache = os.environ["SITEPROOF_CACHE"]
for why in sys.argv[2:]:
    os.environ |= {"WHY": why, "SITEPROOF_CACHE": f"{cache}-{why}"}
    with history.open_history(Path(sys.argv[1])) as opened:
        print(opened.sql("SELECT count(*) FROM samples")[0][0], bool(opened.folder))
        extract.export(opened, Path(f"{why}.csv"), extract.Wanted())
"""
NO_LOCKS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#define LOCKS(name) \\
    int name(int file, int what, ...) { \\
        va_list rest; va_start(rest, what); void *more = va_arg(rest, void *); va_end(rest); \\
        switch (what) { \\
        case F_GETLK: case F_SETLK: case F_SETLKW: \\
        case F_OFD_GETLK: case F_OFD_SETLK: case F_OFD_SETLKW: \\
            errno = atoi(getenv("WHY")); return -1; } \\
        int (*real)(int, int, ...) = dlsym(RTLD_NEXT, #name); return real(file, what, more); }
LOCKS(fcntl)
LOCKS(fcntl64)
int flock(int file, int what) { errno = atoi(getenv("WHY")); return -1; }
"""


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SITEPROOF_CACHE", str(tmp_path / "cache"))
    history.warn.cache_clear()
    return tmp_path / "cache"


@pytest.fixture
def perflogs(tmp_path):
    years.write(tmp_path / "perflogs", runs=6, **SMALL)
    return tmp_path / "perflogs"


def rows(perflogs):
    with history.open_history(perflogs) as opened:
        return opened.sql("SELECT count(*) FROM samples")[0][0]


def started(perflogs):
    return subprocess.Popen(
        [sys.executable, "-c", COUNT, perflogs],
        env=os.environ | {"PYTHONPATH": str(TOP)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def samples_file(cache):
    """The file of the samples that counts."""
    (folder,) = cache.iterdir()
    (part,) = json.loads((folder / "index.json").read_text())["parts"]
    return folder / tables.file_name(part["name"], "samples")


@pytest.mark.deep
@pytest.mark.skipif(not shutil.which("cc"), reason="NOT TESTED: no C compiler")
def test_a_file_system_without_locks_has_a_store_and_exports(perflogs, tmp_path):
    (tmp_path / "no_locks.c").write_text(NO_LOCKS)
    make = ["cc", "-shared", "-fPIC", "-o", "no_locks.so", "no_locks.c", "-ldl"]
    subprocess.run(make, cwd=tmp_path, check=True)
    reasons = [str(why) for why in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)]
    env = {"PYTHONPATH": str(TOP), "LD_PRELOAD": str(tmp_path / "no_locks.so"), "WHY": reasons[0]}
    env |= {key: "" for key in os.environ if key.startswith("COVERAGE_")}  # it has locks, too
    command = [sys.executable, "-c", EXPORT, perflogs, *reasons]
    done = subprocess.run(
        command, env=os.environ | env, cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("24 True\n" * 3, "")
    for why in reasons:
        assert len((tmp_path / f"{why}.csv").read_text().splitlines()) == 25, why


def flip(path):
    """Damage in the middle, which leaves the size, the footer and the time as they were."""
    data, before = bytearray(path.read_bytes()), path.stat()
    for at in range(len(data) // 3, len(data) // 2):
        data[at] ^= 0x55
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


DAMAGES = {
    "within": flip,
    "cut": lambda path: os.truncate(path, path.stat().st_size // 2),
    "garbage": lambda path: path.write_bytes(b"x" * path.stat().st_size),
    "empty": lambda path: path.write_bytes(b""),
    "missing": lambda path: path.unlink(),
}


@pytest.mark.deep
def test_a_damaged_store_is_named_once_and_made_again(perflogs, cache, capsys):
    assert rows(perflogs) == 24
    for what, damage in DAMAGES.items():
        history.warn.cache_clear()
        damage(samples_file(cache))
        assert rows(perflogs) == 24, what
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == 1, what
        assert "made again, because" in lines[0], what
        assert rows(perflogs) == 24, what
        assert capsys.readouterr().err == "", what


def test_a_part_that_another_host_removes_meanwhile_is_read_again(perflogs, cache, capsys):
    assert rows(perflogs) == 24
    gone = samples_file(cache)
    with pytest.MonkeyPatch.context() as patch:
        load = Refresh._load

        def load_and_lose(self):
            found = load(self)
            for path in cache.rglob("*.parquet"):
                path.unlink()
            return found

        patch.setattr(Refresh, "_load", load_and_lose)
        years.write(perflogs, runs=7, first=6, **SMALL)
        assert rows(perflogs) == 28
    assert not gone.exists()
    assert capsys.readouterr().err.count("made again, because") == 1
    assert rows(perflogs) == 28
    assert capsys.readouterr().err == ""


def test_a_host_whose_clock_is_ahead_removes_nothing_that_others_use(perflogs, cache, monkeypatch):
    assert rows(perflogs) == 24
    (folder,) = cache.iterdir()
    draft, unnamed = folder / ".a-1.runs.parquet.tmp", folder / "a-1.samples.parquet"
    for path in (draft, unnamed):
        path.write_bytes(b"of a writer on another host")
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 2 * tables.LEFTOVER)
    years.write(perflogs, runs=7, first=6, **SMALL)
    assert rows(perflogs) == 28
    assert draft.exists()
    assert unnamed.exists()


def test_a_host_whose_clock_is_behind_removes_leftovers(perflogs, cache, monkeypatch):
    assert rows(perflogs) == 24
    (folder,) = cache.iterdir()
    draft = folder / ".a-1.runs.parquet.tmp"
    draft.write_bytes(b"of a writer that was killed")
    old = time.time() - 2 * tables.LEFTOVER
    os.utime(draft, (old, old))
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() - 3 * tables.LEFTOVER)
    years.write(perflogs, runs=7, first=6, **SMALL)
    assert rows(perflogs) == 28
    assert not draft.exists()


def test_a_store_that_cannot_be_used_is_named_by_every_command(perflogs, cache, capsys):
    cache.write_text("a file is in the way")
    assert rows(perflogs) == 24
    assert capsys.readouterr().err.count("in memory") == 1


def test_a_full_disk_is_named_with_its_reason(tmp_path):
    connection = history.connect()
    with (
        Path("/dev/full").open("wb", buffering=0) as stream,
        pytest.raises(OSError, match="No space left"),
    ):
        tables.copy(connection, "SELECT range FROM range(10000000)", stream, "FORMAT parquet")
    connection.close()


@pytest.mark.deep
@pytest.mark.parametrize(
    ("rounds", "readers"), [(1, 3), pytest.param(6, 5, marks=pytest.mark.long)]
)
def test_many_readers_while_samples_arrive_and_one_is_killed(perflogs, cache, rounds, readers):
    """Whoever is killed, at whatever step of its update, the others answer and say nothing."""
    for run in range(6, 6 + rounds):
        years.write(perflogs, runs=run + 1, first=run, **SMALL)
        before = len(list(cache.glob("*/*")))
        children = [started(perflogs) for _ in range(readers)]
        # The later the round, the further its update has come.
        wait_for(
            lambda end=before + run - 6, first=children[0]: (
                len(list(cache.glob("*/*"))) > end or first.poll() is not None
            )
        )
        children[0].kill()
        ends = [child.communicate() for child in children]
        assert [end for end in ends[1:] if end != (f"{4 * (run + 1)} True\n", "")] == []
        assert rows(perflogs) == 4 * (run + 1)
