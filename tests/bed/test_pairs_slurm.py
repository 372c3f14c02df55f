"""Pairs of nodes on a real Slurm cluster: a dead server, a slow link, and all pairs together."""

import json
import re
import shutil

import pytest
from clone import PATIENCE, TOP
from test_run_slurm import suite  # noqa: F401

from siteproof.parsers import iperf3

pytest_plugins = ["testbed_fixture"]
pytestmark = [pytest.mark.testbed, pytest.mark.tool("ReFrame", "Slurm", "iperf3")]
RATE = "TcpBandwidth.throughput"
CLIENTS = [f"node00{number}" for number in range(2, 6)]  # of node001, in the order of their turns
CRITERION = """
TB-TCP:
  description: TCP between two nodes, both ways
  metric: TcpBandwidth.throughput
  subject: pair
  links: [lan]
  at_least: 40 Mb/s  # twice the cap; a full machine's processors still carry ten times as much
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
    # A busy machine cuts the power some turns later: what is over stays, what is not is lost.
    over = {client for client in CLIENTS if (client, "node001") in good(suite)}
    assert over == set(CLIENTS[: len(over)]) and "node002" in over, out
    assert set(good(suite)) == both(*over), out
    lost = failed(suite)
    assert lost.pop(("node001", ""))[0] == "node_lost"
    assert {frozenset(pair) for pair in lost} == {
        frozenset(("node001", client)) for client in CLIENTS if client not in over
    }
    assert lost, "the power was cut after the last turn"
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


def moved(suite):  # noqa: F811
    """What each pair's client left of each direction: start, length and bits of its intervals."""
    found = {}
    for path in suite.data.glob("stage/**/raw/0*/run.*/stdout"):
        direction = re.search(r"^direction=(\w+)", (path.parent / "dims").read_text(), re.MULTILINE)
        if direction and "cores" not in (path.parent / "dims").read_text():
            found.setdefault(direction[1], []).append(iperf3.intervals(path.read_text()))
    return found


def test_pairs_together_have_a_sum_of_the_time_in_which_all_ran(suite):  # noqa: F811
    # Long runs: on a busy machine the last pair begins seconds after the first.
    words = ("-S", "nodes=3", "-S", "pattern=together", "-S", "TcpBandwidth.duration=16")
    done = suite.reframe("-n", "TcpBandwidth", "--keep-stage-files", *words)
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
    left = moved(suite)
    for way in ("out", "in"):
        assert len(left[way]) == 3
        begin = max(float(rows[0].start) for rows in left[way])
        end = min(float(rows[-1].start + rows[-1].seconds) for rows in left[way])
        # A second at either end does not count, as iperf3 prints the begin in whole seconds.
        assert found["seconds_together", way] == pytest.approx(end - begin - 2, abs=0.01)
        # Whatever the load: all together are no slower than each in its slowest second, nor faster.
        rates = [[float(row.bits / row.seconds) for row in rows] for rows in left[way]]
        least, most = sum(map(min, rates)) * 0.999, sum(map(max, rates)) * 1.001
        assert least <= found["aggregate", way] <= most
        assert 0.5 * found["aggregate", way] <= found["peak_second", way] <= most
        assert 0.333 <= found["fairness", way] <= 1
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
