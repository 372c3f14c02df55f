"""Pairs of nodes on a real Slurm cluster: a dead server, a slow link, and all pairs together."""

import json
import shutil

import pytest
from clone import PATIENCE, TOP
from test_run_slurm import suite  # noqa: F401

pytest_plugins = ["testbed_fixture"]
pytestmark = [pytest.mark.testbed, pytest.mark.tool("ReFrame", "Slurm", "iperf3")]
RATE = "TcpBandwidth.throughput"
CRITERION = """
TB-TCP:
  description: TCP between two nodes, both ways
  metric: TcpBandwidth.throughput
  subject: pair
  links: [lan]
  at_least: 100 Mb/s  # the machine's processors carry ten times as much, if nothing else runs
  conditions: {mode: [quick, maintenance, acceptance]}
  source: test bed
"""


def good(suite, metric=RATE):  # noqa: F811
    """The pairs with a value of a metric."""
    return {
        (s.node, s.dims["peer"]): s.value
        for s in suite.samples()
        if s.metric == metric and s.status == "ok"
    }


def failed(suite):  # noqa: F811
    """Why others have none: (node, peer) with status and reason."""
    return {
        (s.node, s.dims.get("peer", "")): (s.status, s.why)
        for s in suite.samples()
        if s.status != "ok"
    }


def both(*clients):
    """Both directions of these clients with the server."""
    return {way for c in clients for way in ((c, "node001"), ("node001", c))}


def test_a_server_that_loses_power_costs_its_pairs_and_nobody_waits_for_it(suite, testbed):  # noqa: F811
    process = suite.start("-n", "TcpBandwidth", "-S", "nodes=node[001-005]")
    suite.wait_for(lambda: [*suite.data.glob("stage/**/raw/.00001.1/run.1")])
    testbed.power_off("node001")
    try:
        out, _ = process.communicate(timeout=PATIENCE)
    finally:
        testbed.power_on("node001")
    assert process.returncode == 1, out
    assert set(good(suite)) == both("node002"), out
    lost = failed(suite)
    assert lost.pop(("node001", ""))[0] == "node_lost"
    assert {frozenset(pair) for pair in lost} == {
        frozenset(("node001", f"node00{n}")) for n in (3, 4, 5)
    }
    assert {status for status, _ in lost.values()} == {"interrupted"}
    assert all("node001" in why for _, why in lost.values()), lost
    told = json.loads(suite.siteproof("nodes", "--json", "--since", "1d").stdout)["states"]
    assert told["FAILED"] == "node001"


def test_a_capped_link_breaks_the_contract_of_its_pairs_and_no_other(suite, testbed):  # noqa: F811
    sites = suite.folder / "sites"
    shutil.copytree(TOP / "site-config" / "testbed", sites / "testbed")
    with (sites / "testbed" / "criteria.yaml").open("a") as criteria:
        criteria.write(CRITERION)
    testbed.fault("capped-link", "node003", value="20mbit")
    try:
        done = suite.reframe(
            "-n", "TcpBandwidth", "-S", "nodes=node[001-003]", before=f"SITEPROOF_SITES='{sites}'"
        )
    finally:
        testbed.mend("node003")
    assert set(good(suite)) == both("node002", "node003"), done.stdout
    assert done.returncode == 1, done.stdout
    verdict = testbed.run(
        [
            "sh",
            "-c",
            f"cd '{TOP}' && . ./activate && SITEPROOF_SITES='{sites}' "
            f"SITEPROOF_DATA='{suite.data}' siteproof verdict --json",
        ]
    )
    judged = next(c for c in json.loads(verdict.stdout)["criteria"] if c["id"] == "TB-TCP")
    assert {n["node"] for n in judged["nodes"] if n["verdict"] == "FAIL"} == {
        "node003>node001",
        "node001>node003",
    }
    assert {n["node"] for n in judged["nodes"] if n["verdict"] == "PASS"} == {
        "node002>node001",
        "node001>node002",
    }


def test_pairs_together_have_a_sum_of_the_time_in_which_all_ran(suite):  # noqa: F811
    done = suite.reframe("-n", "TcpBandwidth", "-S", "nodes=3", "-S", "pattern=together")
    assert done.returncode == 0, done.stdout
    pairs = good(suite)
    assert set(pairs) == both("node002", "node003", "node004")
    busiest = good(suite, "TcpBandwidth.busiest_core")
    assert set(busiest) == set(pairs)
    assert all(5 < float(share) <= 100 for share in busiest.values())
    found = {
        (s.metric.partition(".")[2], s.dims["direction"]): float(s.value)
        for s in suite.samples()
        if s.node == ""
    }
    for way, place in (("out", 1), ("in", 0)):
        of_pairs = sum(float(rate) for ends, rate in pairs.items() if ends[place] == "node001")
        assert 0.5 < found["aggregate", way] / of_pairs < 2
        assert found["peak_second", way] >= 0.9 * found["aggregate", way]
        assert 2 <= found["seconds_together", way] <= 6.1  # busy machines begin one by one
        assert 1 / 3 <= found["fairness", way] <= 1
    for command in (
        ["nodes", "--since", "1d"],
        ["describe", "--since", "1d"],
        ["compare", "latest", "latest"],
        ["verdict", "--since", "1d"],
        ["matrix", RATE],
        ["why", "node001"],
        ["gate", "--since", "1d"],
    ):
        told = suite.siteproof(*command)
        assert "Traceback" not in told.stdout + told.stderr, (command, told.stderr)
