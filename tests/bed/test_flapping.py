"""A node whose slurmd restarts again and again is named, and nobody is once it is mended."""

import json
import time

import pytest
from bed_suite import NODES
from testbed_fixture import until


@pytest.mark.testbed
@pytest.mark.long
def test_a_flapping_node_is_named_and_nobody_is_once_it_is_mended(suite):
    def said():
        done = suite.siteproof("nodes", "--json")
        return {
            n["node"]: (n["state"], " ".join(n["reasons"]))
            for n in json.loads(done.stdout)["nodes"]
        }

    suite.testbed.fault("flapping", "node003", value="2s")
    try:
        suite.reframe("-n", "HostParameters|Health", "-S", "time_limit=60s")
    finally:
        suite.testbed.mend("node003")
    found = said()
    assert [n for n in NODES if found[n][0] == "FAILED"] == ["node003"], found
    assert "slurmd" in found["node003"][1] or "did not answer" in found["node003"][1]
    mended = time.time()
    until(lambda: time.time() > mended + 1, "a session that begins later than any slurmd")
    assert suite.reframe("-n", "HostParameters|Health").returncode == 0
    assert {state for state, _ in said().values()} == {"UNTESTED"}, "Hpl and Stream did not run"
