"""A login node that limits the memory of a process (ulimit -v): one line, and never a crash."""

import subprocess
from unittest import mock

import duckdb
import pytest
import record
from clone import PROGRAMS

from siteproof import cli

TOO_LITTLE = (300, 600, 1000)  # MB


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return record.World("campaign", tmp_path_factory.mktemp("memory"))


def limited(world, megabytes, words):
    env = world.environment() | {"PATH": f"{PROGRAMS}:/usr/bin:/bin"}
    script = f"ulimit -v {megabytes}000; exec siteproof {words} --system testbed"
    return subprocess.run(["sh", "-c", script], env=env, capture_output=True, text=True)


@pytest.mark.parametrize("words", ["trend", "calibrate", "history"])
def test_a_command_that_needs_more_says_how_much_in_one_line(world, words):
    for megabytes in TOO_LITTLE:
        done = limited(world, megabytes, words)
        assert done.returncode == 2, done
        assert done.stderr.startswith("siteproof: ulimit -v: ") and "1500 MiB" in done.stderr
        assert done.stderr.count("\n") == 1 and not done.stdout


def test_a_verdict_takes_memory_for_what_it_reads_only(world):
    done = limited(world, 400, "verdict --campaign after")
    assert done.returncode == 1, done.stderr
    assert "verdict on testbed: 1 FAIL, 1 ERROR, 3 INCOMPLETE" in done.stdout


@pytest.mark.parametrize("error", [MemoryError(), duckdb.OutOfMemoryException("failed to pin")])
def test_what_runs_out_of_memory_later_is_one_line_too(error, capsys):
    with mock.patch.object(cli, "_run", side_effect=error), pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2
    told = capsys.readouterr().err
    assert told.startswith("siteproof: memory: ") and told.count("\n") == 1
    assert "a small system needs some 1500 MiB" in told
