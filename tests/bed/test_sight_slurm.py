"""Nodes that cannot see the data folder: one line before anything is submitted, on a real Slurm."""

from contextlib import contextmanager

import pytest
from test_run_slurm import NODES, Suite, suite  # noqa: F401

pytest_plugins = ["testbed_fixture"]
pytestmark = [pytest.mark.testbed, pytest.mark.tool("ReFrame", "Slurm")]


@contextmanager
def hidden(suite, *nodes, options="mode=1777"):  # noqa: F811
    """An empty file system over the data folder of these nodes."""
    for node in nodes:
        mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", suite.data]
        assert suite.testbed.run(mount, node=node).returncode == 0
    try:
        yield
    finally:
        for node in nodes:
            suite.testbed.run(["umount", "-l", suite.data], node=node)


def told(done):
    """What Siteproof says in lines of its own."""
    return [line for line in (done.stdout + done.stderr).splitlines() if line[:10] == "siteproof:"]


def test_a_data_folder_that_no_node_sees_is_one_line_and_nothing_is_submitted(suite):  # noqa: F811
    with hidden(suite, *NODES):
        done = suite.reframe("-n", "HostParameters|SystemDescription|Stream")
    assert done.returncode == 2, done.stdout + done.stderr
    assert told(done) == [
        f"siteproof: {suite.data}: not seen by node[001-008]. SITEPROOF_DATA must name a "
        "folder that all nodes mount and root may write."
    ]
    assert "RUN " not in done.stdout
    assert not suite.samples() and not list(suite.data.glob("stage/*/*"))
    assert suite.jobs() == []


def test_a_folder_that_only_the_login_node_has_is_told_so_too(suite, tmp_path_factory):  # noqa: F811
    suite.data = type(suite.data)("/dev/shm") / f"siteproof-{suite.folder.name}"
    try:
        done = suite.reframe("-n", "HostParameters")
    finally:
        suite.testbed.run(["rm", "-rf", str(suite.data)])
    assert done.returncode == 2, done.stdout + done.stderr
    assert "not seen by node[001-008]" in told(done)[0] and len(told(done)) == 1


def test_nodes_that_may_not_write_there_are_told_so(suite):  # noqa: F811
    for node in NODES:
        for words in (["--bind"], ["-o", "remount,bind,ro"]):
            suite.testbed.run(["mount", *words, suite.data, suite.data], node=node)
    try:
        done = suite.reframe("-n", "HostParameters")
    finally:
        for node in NODES:
            suite.testbed.run(["umount", "-l", suite.data], node=node)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "not writable on node[001-008]" in told(done)[0] and len(told(done)) == 1


def test_some_nodes_that_cannot_see_it_are_named_and_the_others_measured(suite):  # noqa: F811
    blind = ["node003", "node005"]
    with hidden(suite, *blind):
        done = suite.reframe("-n", "HostParameters|SystemDescription")
    assert done.returncode == 1, done.stdout + done.stderr
    assert told(done) == [
        f"siteproof: {suite.data}: not seen by node[003,005]; these nodes are not measured"
    ]
    assert suite.measured("HostParameters.mismatches") == [n for n in NODES if n not in blind]
    lost = {node: f"node_lost: {suite.data} not seen by {node}" for node in blind}
    assert suite.lost() == lost
    assert "node003" in suite.siteproof("verdict").stdout


def test_nodes_that_are_not_asked_for_need_not_see_it(suite):  # noqa: F811
    with hidden(suite, *NODES[4:]):
        done = suite.reframe("-n", "HostParameters", "-S", "nodes=node[001-004]")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not told(done)


def test_busy_nodes_are_waited_for_by_the_check_and_not_asked(suite):  # noqa: F811
    busy = ["sbatch", "--exclusive", "--nodes=8", "--wrap=sleep 20", "--output=/dev/null"]
    assert suite.testbed.run(busy).returncode == 0
    suite.wait_for(lambda: any("RUNNING" in job for job in suite.jobs()))
    done = suite.reframe("-n", "HostParameters")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not told(done)
    assert suite.measured("HostParameters.mismatches") == NODES


def test_nodes_that_were_busy_are_asked_when_they_have_left_no_result(suite):  # noqa: F811
    busy = ["sbatch", "--exclusive", "--nodes=8", "--wrap=sleep 20", "--output=/dev/null"]
    assert suite.testbed.run(busy).returncode == 0
    suite.wait_for(lambda: any("RUNNING" in job for job in suite.jobs()))
    with hidden(suite, "node002"):
        done = suite.reframe("-n", "HostParameters")
    assert done.returncode == 1, done.stdout + done.stderr
    assert suite.lost() == {"node002": f"node_lost: {suite.data} not seen by node002"}


def test_one_step_asks_all_nodes_and_leaves_nothing_behind(suite):  # noqa: F811
    names = ["sacct", "-X", "-n", "-P", "-o", "JobName,NNodes", "--name=siteproof-sight"]

    def steps():  # over all nodes; slurmdbd may hear late of others
        return suite.testbed.run(names).stdout.split().count("siteproof-sight|8")

    before = steps()
    done = suite.reframe("-n", "HostParameters|SystemDescription")
    assert done.returncode == 0, done.stdout + done.stderr
    suite.wait_for(lambda: steps() > before)
    assert steps() == before + 1
    assert not [path for path in suite.data.rglob(".sight*")]
    assert "sight" not in suite.testbed.run(["squeue", "-h", "-o", "%j"]).stdout
