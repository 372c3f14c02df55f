"""On a real Slurm cluster: sessions that are killed or ended, at once, and a controller that goes.

What somebody else has ended says nothing of a node: no failure, only no figure.
"""

import json

import pytest
from bed_suite import NODES, finish, hangs, waits

pytestmark = [pytest.mark.testbed, pytest.mark.tool("ReFrame", "Slurm")]
TRIAD = "Stream.triad"


@pytest.fixture
def go(suite):
    """The file for which likwid-bench waits on every node."""
    file = suite.folder / "go"
    suite.likwid(waits(file))
    return file


# ---- sessions that go


def test_a_killed_session_loses_no_sample_and_its_job_is_collected_once_it_has_ended(suite, go):
    process = suite.start("-n", "Stream")
    suite.until_job("RUNNING")
    suite.kill_session()
    process.wait()
    said = suite.on_login("collect").stdout
    assert "its job or its session still runs" in said and "still running: 1" in said
    go.touch()
    suite.until_no_job()
    assert suite.samples() == []
    told = suite.on_login("collect")
    assert told.returncode == 0, told.stderr
    assert suite.measured(TRIAD) == NODES
    assert suite.on_login("collect").stdout.strip() == "nothing left to collect"


def test_ctrl_c_cancels_the_job_and_keeps_what_was_measured(suite):
    suite.likwid(hangs("node008"))
    process = suite.start("-n", "Stream")
    suite.until_measured(*NODES[:7])
    suite.kill_session("INT")
    finish(process)
    assert process.returncode != 0
    suite.until_no_job()
    suite.on_login("collect")
    assert suite.measured(TRIAD) == NODES[:7]
    assert list(suite.lost()) == ["node008"]


def test_two_sessions_at_once_keep_apart(suite, go):
    both = [suite.start("-n", "Stream"), suite.start("-n", "Stream")]
    suite.until_job("", count=2)
    go.touch()
    outs = [finish(process) for process in both]
    assert [process.returncode for process in both] == [0, 0], outs
    assert len({s.header.session for s in suite.samples()}) == 2
    assert len(suite.samples()) == 2 * 8 * 2


# ---- what somebody else has ended says nothing of a node


def states(suite):
    done = suite.siteproof("nodes", "--json")
    return {n["node"]: n["state"] for n in json.loads(done.stdout)["nodes"]}


def test_a_session_that_is_killed_with_its_job_accuses_no_node(suite, go):
    process = suite.start("-n", "Stream")
    suite.until_job("RUNNING")
    suite.kill_session()
    suite.testbed.run(["scancel", "--user=root"])
    finish(process)
    suite.until_no_job()
    suite.on_login("collect")
    assert sorted(suite.lost()) == NODES
    assert {why.partition(":")[0] for why in suite.lost().values()} == {"interrupted"}
    assert set(states(suite).values()) == {"UNTESTED"}


def test_a_cancelled_job_accuses_no_node_but_the_one_that_had_run_out_of_memory(suite, testbed):
    """Or it is told as interrupted, where this machine can limit no memory."""
    little, ended = "node003", NODES[4:]
    done = testbed.command("fault", "little-memory", little, "--value", "300MiB")
    if done.returncode == 2:
        pytest.skip(f"OUT OF MEMORY NOT TESTED: {done.stderr.strip()}")
    hungry = "/usr/bin/python3 -c 'x = bytearray(700 << 20)'"
    suite.likwid(
        f"[ $2 = copy ] || exit 0\n[ $(uname -n) != {little} ] || {{ {hungry}; exit; }}\n"
        + hangs(*ended)
    )
    process = suite.start("-n", "Stream", "-S", "time_limit=4m")
    try:
        suite.until_measured(*NODES[:4])
        testbed.run(["scancel", "--user=root"])
        out = finish(process)
    finally:
        testbed.mend(little)
    lost = suite.lost()
    assert lost.pop(little).startswith(
        "killed: out of memory: the kernel killed 1 process of the job"
    )
    assert suite.measured(TRIAD) == [n for n in NODES[:4] if n != little], out
    assert sorted(lost) == ended
    assert {why.partition(":")[0] for why in lost.values()} == {"interrupted"}
    found = states(suite)
    assert found[little] == "FAILED"
    assert {found[node] for node in ended} == {"UNTESTED"}


# ---- a controller that goes


def test_a_restart_of_slurmctld_changes_nothing(suite, testbed, go):
    process = suite.start("-n", "Stream")
    suite.until_job("RUNNING")
    testbed.restart_slurmctld()
    go.touch()
    out = finish(process)
    assert process.returncode == 0, out
    assert suite.measured(TRIAD) == NODES
