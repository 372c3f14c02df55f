"""Only what failed or is missing is measured again; the verdict is whole afterwards."""

import json

import pytest
from clone import TOP
from test_run_slurm import NODES, suite  # noqa: F401 - the fixture

pytest_plugins = ["testbed_fixture"]
pytestmark = pytest.mark.testbed


def drained(testbed, node, work):
    """Do some work while a node is drained."""
    testbed.run(["scontrol", "update", f"NodeName={node}", "State=DRAIN", "Reason=bad DIMM"])
    try:
        return work()
    finally:
        testbed.run(["scontrol", "update", f"NodeName={node}", "State=RESUME"])


def criterion(suite, *words):  # noqa: F811
    told = json.loads(suite.siteproof("verdict", "--json", *words).stdout)
    return next(c for c in told["criteria"] if c["id"] == "TB-PARAMETERS")


def by_job(suite):  # noqa: F811
    """The nodes of each job, the oldest first."""
    found = {}
    for sample in sorted(suite.samples(), key=lambda s: s.header.order):
        found.setdefault((sample.header.session, sample.header.job), set()).add(sample.node)
    return list(found.items())


def test_a_run_of_what_is_missing_measures_the_lost_node_alone(suite, testbed):  # noqa: F811
    done = drained(testbed, "node005", lambda: suite.reframe("-n", "HostParameters"))
    assert done.returncode == 1
    assert criterion(suite)["verdict"] == "INCOMPLETE"
    last = suite.siteproof("verdict").stdout.splitlines()[-1]
    assert last.endswith("-S nodes=missing")
    planned = suite.siteproof(
        "plan", "--mode", "quick", "-n", "HostParameters", "-S", "nodes=missing"
    )
    assert "1 job on 1 node," in planned.stdout and "node005" in planned.stdout, (
        planned.stdout + planned.stderr
    )
    done = suite.reframe("-n", "HostParameters", "-S", "nodes=missing")
    assert done.returncode == 0, done.stdout
    (first, all_of_them), (second, again) = by_job(suite)
    assert (all_of_them, again) == (set(NODES), {"node005"})
    assert first[0] != second[0]
    whole = criterion(suite)
    assert (whole["verdict"], whole["nodes_ok"]) == ("PASS", 8)
    done = suite.reframe("-n", "HostParameters", "-S", "nodes=missing")
    assert len(by_job(suite)) == 2, done.stdout
    assert "nothing is missing" in done.stdout


def test_a_restored_session_measures_the_lost_node_alone(suite, testbed):  # noqa: F811
    drained(testbed, "node006", lambda: suite.reframe("-n", "HostParameters"))
    line = (
        f"cd '{TOP}' && . ./activate && export SITEPROOF_DATA='{suite.data}' && "
        "exec reframe --restore-session --failed -r --mode quick"
    )
    done = testbed.run(["sh", "-c", line])
    assert done.returncode == 0, done.stdout
    (first, all_of_them), (second, again) = by_job(suite)
    assert (all_of_them, again) == (set(NODES), {"node006"})
    assert first[0] == second[0]
    session = criterion(suite)
    assert (session["verdict"], session["nodes_ok"]) == ("PASS", 8)
