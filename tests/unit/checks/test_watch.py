"""A job that waits or that Slurm has lost does not hold the session for hours."""

import time

import pytest
from ClusterShell.NodeSet import NodeSet
from rows import rows

from siteproof.checks import progress
from siteproof.checks.progress import Watcher


@pytest.fixture
def sinfo(tmp_path, monkeypatch):
    """What sinfo prints, line by line; a query is always due."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(progress, "LOOK_EVERY", 0)

    def says(*lines):
        program = tmp_path / "sinfo"
        program.write_text("#!/bin/sh\ncat <<'E'\n" + "\n".join(lines) + "\nE\n")
        program.chmod(0o755)

    return says


def watcher(**how):
    return Watcher(NodeSet("n[1-3]"), 1000, **how)


def test_a_job_outside_reservations_does_not_wait_for_a_node_that_was_reserved(sinfo):
    sinfo("n1|idle|none", "n2|reserved|none", "n3|idle|none")
    waiting = watcher(outside=True)
    assert waiting.cannot_start()
    assert str(waiting.worth_another_job(set(), "")) == "n[1,3]"
    assert "in a reservation" in waiting.lost({"n1", "n3"})["n2"]
    assert waiting.spared == {"n2"}


def test_a_job_of_a_reservation_begins_on_its_nodes(sinfo):
    sinfo("n1|reserved|none", "n2|reserved|none", "n3|reserved|none")
    assert not watcher().cannot_start()


def test_a_job_that_runs_goes_on_where_its_node_is_reserved(sinfo):
    sinfo("n1|allocated|none", "n2|maint|none", "n3|allocated|none")
    running = watcher(outside=True)
    running.runs("RUNNING")
    assert not running.cannot_start()
    assert not running.only_dead_nodes_left({"n1", "n3"})


def test_a_node_that_died_is_not_spared_because_it_was_reserved_before(sinfo):
    sinfo("n1|idle|none", "n2|reserved|none", "n3|idle|none")
    waiting = watcher(outside=True)
    assert waiting.cannot_start()
    sinfo("n2|down*|Not responding")
    assert waiting.lost({"n1", "n3"})
    assert waiting.spared == set()


@pytest.fixture
def now(monkeypatch):
    """The time of the watcher, in seconds; somebody has set the clock."""
    monkeypatch.setattr(time, "time", lambda: 0.0)
    clock = {"now": 1000.0}
    monkeypatch.setattr(time, "monotonic", lambda: clock["now"])

    def later(seconds):
        clock["now"] += seconds

    return later


def test_a_job_that_slurm_does_not_list_twice_is_lost(now):
    waiting = watcher()
    assert not waiting.lost_by_slurm(False, lambda: False)
    now(61)
    assert not waiting.lost_by_slurm(False, lambda: False)
    assert not waiting.lost_by_slurm(False, lambda: False)
    now(61)
    assert waiting.lost_by_slurm(False, lambda: False)


def test_a_job_that_slurm_lists_again_is_not_lost(now):
    waiting = watcher()
    for listed in (False, True, False):
        now(61)
        assert not waiting.lost_by_slurm(False, lambda listed=listed: listed)


@rows("cancelled, after", [(True, 61), (False, 1061)])
def test_of_a_running_job_slurm_is_asked_when_it_should_have_ended(now, cancelled, after):
    running = watcher()
    running.runs("RUNNING")
    asked = []
    now(after - 2)
    assert not running.lost_by_slurm(cancelled, lambda: asked.append(1))
    assert not asked
    now(2)
    running.lost_by_slurm(cancelled, lambda: asked.append(1))
    assert asked


def test_a_step_of_the_clock_takes_no_time_from_a_job(now):
    running = watcher()
    running.runs("RUNNING")
    now(10)
    assert running.remaining() == 990


def test_while_a_job_waits_each_new_reason_of_slurm_is_told_once(monkeypatch):
    for name in ("LOOK_EVERY", "PATIENCE"):
        monkeypatch.setattr(progress, name, 0)
    reasons = iter(["", "PartitionDown", "PartitionDown", "Resources"])
    waiting = watcher()
    told = [waiting.waits(lambda: next(reasons)) for _ in range(4)]
    assert told == ["", "PartitionDown", "", "Resources"]
    waiting.runs("RUNNING")
    assert waiting.waits(lambda: "never") == ""
