"""A job that waits: nodes that went down or were reserved meanwhile do not hold it for hours."""

import pytest
from ClusterShell.NodeSet import NodeSet

from siteproof.checks import watch
from siteproof.checks.watch import Watcher


@pytest.fixture
def sinfo(tmp_path, monkeypatch):
    """What sinfo prints, line by line; a query is always due."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(watch, "LOOK_EVERY", 0)

    def says(*lines):
        program = tmp_path / "sinfo"
        program.write_text("#!/bin/sh\ncat <<'E'\n" + "\n".join(lines) + "\nE\n")
        program.chmod(0o755)

    return says


def watcher(**how):
    return Watcher(NodeSet("n[1-3]"), 0, 1000, **how)


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
