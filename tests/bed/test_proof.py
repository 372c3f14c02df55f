"""What is broken is named, with its cause, and nobody else; hostile text does nothing."""

import json

import pytest
from test_run_slurm import NODES, suite  # noqa: F401 - the fixture

pytest_plugins = ["testbed_fixture"]
pytestmark = pytest.mark.testbed

CHECKS = "HostParameters|SystemDescription"
BAD = ("FAILED", "SLOW", "ODD", "UNSTABLE")


def states(suite):  # noqa: F811
    """Each node's state and reasons."""
    done = suite.siteproof("nodes", "--json")
    assert done.stdout, done.stderr
    return {
        n["node"]: (n["state"], "\n".join(n["reasons"])) for n in json.loads(done.stdout)["nodes"]
    }


def test_faults_of_configuration_are_named_with_node_and_cause_and_nobody_else_is(suite):  # noqa: F811
    faults = {
        "node002": ("wrong-mtu", "nic.eth0.mtu: expected 9000, found 1500"),
        "node005": ("other-package", "package.munge is 0.0.1-other"),
        "node007": ("wrong-memory", "memory.total is 2097152 kB"),
    }
    try:
        for node, (fault, _) in faults.items():
            suite.testbed.fault(fault, node)
        suite.reframe("-n", CHECKS)
    finally:
        suite.testbed.mend(*faults)
    found = states(suite)
    assert {n for n, (state, _) in found.items() if state in BAD} == set(faults), found
    for node, (_, cause) in faults.items():
        assert cause in found[node][1]


def test_a_node_that_is_down_is_named_with_its_cause_and_nobody_else_is(suite):  # noqa: F811
    # What slurmctld says once it has noticed, without the minute that takes: benchmarks/proof.py
    # kills and hangs nodes for real. A slurmd that runs could register, which would end that.
    reason = "Not responding"
    down = ["scontrol", "update", "NodeName=node004", "State=DOWN", f"Reason={reason}"]
    suite.testbed.fault("killed-slurmd", "node004")
    try:
        suite.testbed.run(down)
        suite.reframe("-n", CHECKS)
    finally:
        suite.testbed.mend("node004")
    found = states(suite)
    assert {n for n, (state, _) in found.items() if state in BAD} == {"node004"}, found
    assert f"did not answer: down: {reason}" in found["node004"][1]


@pytest.fixture
def hostile(suite):  # noqa: F811
    """Node003 is drained with a hostile reason, and was to be measured; what ReFrame printed."""
    trap = suite.folder / "trap"
    reason = f'$(touch {trap}); `touch {trap}` "quoted" [red]x[/red] \x1b[31m 100%s |a|b'
    suite.testbed.run(["scontrol", "update", "NodeName=node003", "State=DRAIN", f"Reason={reason}"])
    try:
        done = suite.reframe("-n", "HostParameters")
        yield done.stdout + done.stderr
    finally:
        suite.testbed.run(["scontrol", "update", "NodeName=node003", "State=RESUME"])
    assert not trap.exists()


def test_a_hostile_reason_is_shown_printable_and_runs_nothing(suite, hostile):  # noqa: F811
    assert suite.measured("HostParameters.mismatches") == [n for n in NODES if n != "node003"]
    assert "$(touch" in suite.lost()["node003"]
    for words in (
        ("verdict",),
        ("nodes",),
        ("gate",),
        ("why", "node003"),
        ("nodes", "--json"),
        ("verdict", "--json"),
    ):
        done = suite.siteproof(*words)
        text = done.stdout + done.stderr
        assert "Traceback" not in text
        # What a user wrote is behind 'why'; lists of nodes have the kind of reason only.
        assert ("$(touch" in text) or words in (("nodes",), ("gate",)), words
        assert all(c.isprintable() or c == "\n" for c in text), (words, text)
    state, why = states(suite)["node003"]
    assert (state, "[red]x[/red]" in why) == ("FAILED", True)


def test_reframe_shows_a_hostile_reason_without_its_control_characters(hostile):
    assert "$(touch" in hostile
    assert "\x1b[31m 100" not in hostile
