"""Pairs of nodes on a real Slurm cluster: a slow link, a dead server, and all pairs together."""

import json
import re

import pytest
from bed_suite import Suite, all_idle, finish
from clone import before_others
from testbed_fixture import until

from siteproof.parsers import iperf3

pytestmark = [pytest.mark.testbed, pytest.mark.tool("ReFrame", "Slurm", "iperf3")]
RATE = "TcpBandwidth.throughput"
CLIENTS = [f"node00{number}" for number in range(2, 6)]  # of node001, in the order of their turns
CRITERION = """
TB-TCP:
  description: TCP between two nodes, both ways
  metric: TcpBandwidth.throughput
  subject: pair
  links: [lan]
  at_least: 40 Mb/s  # between the caps
  conditions: {mode: [quick, maintenance, acceptance]}
  source: test bed
"""


def good(suite, metric=RATE):
    """The pairs with a value of a metric."""
    return {
        (s.node, s.dims["peer"]): s.value
        for s in suite.samples()
        if s.metric == metric and s.status == "ok"
    }


def both(*clients):
    """Both directions of these clients with the server."""
    return {way for c in clients for way in ((c, "node001"), ("node001", c))}


@pytest.fixture(scope="module")
def capped(testbed, tmp_path_factory):
    """Two pairs at the same time, one of them over a link that is too slow.

    The other link has a cap, too, and iperf3 runs before others: a busy machine costs nothing.
    """
    suite = Suite(testbed, tmp_path_factory.mktemp("capped"))
    criteria = suite.own_site() / "criteria.yaml"
    criteria.write_text(criteria.read_text() + CRITERION)
    suite.edit("system.yaml", ("servers: node001", "servers: 'node[001-002]'"))
    suite.likwid(f'exec {" ".join(before_others())} /usr/bin/iperf3 "$@"', "iperf3")
    testbed.fault("capped-link", "node003", value="20mbit")
    testbed.fault("capped-link", "node004", value="200mbit")
    try:
        suite.done = suite.reframe("-n", "TcpBandwidth", "-S", "nodes=node[003-004]")
    finally:
        testbed.mend("node003", "node004")
    yield suite
    all_idle(testbed)


def test_a_capped_link_breaks_the_contract_of_its_pairs_and_no_other(capped):
    slow = {("node003", "node001"), ("node001", "node003")}
    other = {("node004", "node002"), ("node002", "node004")}
    assert set(good(capped)) == slow | other, capped.done.stdout
    assert capped.done.returncode == 1, capped.done.stdout
    told = json.loads(capped.siteproof("verdict", "--json").stdout)
    judged = next(c for c in told["criteria"] if c["id"] == "TB-TCP")
    by_verdict = {"FAIL": set(), "PASS": set()}
    for one in judged["nodes"]:
        by_verdict.setdefault(one["verdict"], set()).add(tuple(one["node"].split(">")))
    assert (by_verdict["FAIL"], by_verdict["PASS"]) == (slow, other)


def test_every_command_answers_where_only_pairs_were_measured(capped):
    for command in (
        ["nodes", "--since", "1d"],
        ["describe", "--since", "1d"],
        ["export", "json", "--since", "1d"],
        ["verdict", "--since", "1d"],
        ["matrix", RATE],
        ["why", "node003"],
    ):
        told = capped.siteproof(*command)
        said = told.stdout + told.stderr
        assert said and "Traceback" not in said, (command, said)


@pytest.mark.long
def test_a_server_that_loses_power_costs_its_pairs_and_nobody_waits_for_it(suite, testbed):
    process = suite.start("-n", "TcpBandwidth", "-S", "nodes=node[001-005]")
    begun = "stage/**/raw/.00001.1/run.1"
    until(lambda: [*suite.data.glob(begun)], "the second turn", suite.left_results)
    testbed.power_off("node001")
    try:
        out = finish(process)
    finally:
        testbed.power_on("node001")
    assert process.returncode == 1, out
    # A busy machine cuts the power some turns later: what is over stays, what is not is lost.
    over = {client for client in CLIENTS if (client, "node001") in good(suite)}
    assert over == set(CLIENTS[: len(over)]) and "node002" in over, out
    assert set(good(suite)) == both(*over), out
    failed = [s for s in suite.samples() if s.status != "ok"]
    lost = {(s.node, s.dims.get("peer", "")): (s.status, s.why) for s in failed}
    assert lost.pop(("node001", ""))[0] == "node_lost"
    assert {frozenset(pair) for pair in lost} == {
        frozenset(("node001", client)) for client in CLIENTS if client not in over
    }
    assert lost, "the power was cut after the last turn"
    assert {status for status, _ in lost.values()} == {"interrupted"}
    assert all("node001" in why for _, why in lost.values()), lost
    told = json.loads(suite.siteproof("nodes", "--json", "--since", "1d").stdout)["states"]
    assert told["FAILED"] == "node001"


def moved(suite):
    """What each pair's client left of each direction: start, length and bits of its intervals."""
    found = {}
    for path in suite.data.glob("stage/**/raw/0*/run.*/stdout"):
        direction = re.search(r"^direction=(\w+)", (path.parent / "dims").read_text(), re.MULTILINE)
        if direction and "cores" not in (path.parent / "dims").read_text():
            found.setdefault(direction[1], []).append(iperf3.intervals(path.read_text()))
    return found


@pytest.mark.long
def test_pairs_together_have_a_sum_of_the_time_in_which_all_ran(suite):
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
    told = suite.on_login("gate", "--since", "1d")
    assert told.stdout and "Traceback" not in told.stdout + told.stderr
