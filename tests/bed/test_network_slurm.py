"""Pairs of nodes of the test bed: round trip, path MTU, MPI and UDP, each between two of its own.

All are measured at the same time, as they wait for their turns for most of it. The node whose path
is measured has a smaller MTU than the site says.
"""

import sys
from decimal import Decimal

import pytest
from bed_suite import Suite, all_idle, finish
from clone import before_others

pytestmark = [pytest.mark.testbed, pytest.mark.tool("ReFrame", "Slurm")]
PAIRS = {  # check: client and server
    "Latency": ("node005", "node001"),
    "MpiPingPong": ("node006", "node002"),
    "PathMtu": ("node007", "node003"),
    "UdpBandwidth": ("node008", "node004"),
}
SERVERS, CLIENTS = (
    ("servers: node001", "servers: 'node[001-004]'"),
    ("clients: compute", "clients: 'node[005-008]'"),
)


@pytest.fixture(scope="module")
def measured(testbed, tmp_path_factory):
    """The samples of each check, which are all good."""
    suite = Suite(testbed, tmp_path_factory.mktemp("pairs"))
    suite.edit("system.yaml", SERVERS, CLIENTS)
    # A busy machine would slow each of the thousand messages of MPI.
    suite.likwid(f'exec {" ".join(before_others())} {sys.executable} "$@"', "python3")
    short = PAIRS["PathMtu"][0]
    testbed.fault("wrong-mtu", short, value="1500")
    program = ("-S", "MpiPingPong.program=mpi4py")
    try:
        runs = [
            suite.start("-n", f"^{check}", "-S", f"{check}.nodes={client}", *program)
            for check, (client, _) in PAIRS.items()
        ]
        told = [finish(run) for run in runs]
    finally:
        testbed.mend(short)
    assert [run.returncode for run in runs] == [0] * len(runs), told  # no criterion is on an MTU
    found = {check: [] for check in PAIRS}
    for sample in suite.samples():
        found[sample.metric.partition(".")[0]].append(sample)
    yield found
    all_idle(testbed)


@pytest.fixture
def found(measured):
    """The figures of the client by metric; those of each size as metric[size]."""
    ways = {check: {(s.node, s.dims["peer"]) for s in of} for check, of in measured.items()}
    ways.pop("UdpBandwidth")
    assert ways == {check: {PAIRS[check]} for check in ways}
    every = [s for of_check in measured.values() for s in of_check]
    assert [s.why for s in every if s.status != "ok"] == []
    return {s.metric + (f"[{s.dims['size']}]" if "size" in s.dims else ""): s for s in every}


@pytest.mark.tool("ping", "qperf")
def test_a_round_trip_is_that_of_ping_and_tcp_has_its_own(found):
    trip = found["Latency.round_trip"]
    assert (trip.unit, found["Latency.tcp"].unit) == ("us", "us")
    assert found["Latency.min"].value <= trip.value <= found["Latency.max"].value
    assert 1 < trip.value < 1_000_000
    told = {key: trip.conditions.get(key) for key in ("program", "size", "packets", "link")}
    assert told == {"program": "ping", "size": "56", "packets": "10", "link": "lan"}


@pytest.mark.tool("ping")
def test_a_node_with_a_smaller_mtu_is_seen_and_told(found):
    assert (found["PathMtu.mtu"].value, found["PathMtu.device"].value) == (1500, 1500)
    warning = "the client's own MTU is 1500, expected 9000"
    assert found["PathMtu.mtu"].conditions["device_warning"] == warning


@pytest.mark.tool("mpi4py.bench")
def test_mpi_runs_between_the_two_nodes_with_every_size(found):
    sizes = {2**power for power in range(3, 21)}
    assert {f"MpiPingPong.latency_by_size[{size}]" for size in sizes} <= set(found)
    smallest, largest = found["MpiPingPong.latency"], found["MpiPingPong.bandwidth"]
    assert smallest.value == found["MpiPingPong.latency_by_size[8]"].value
    assert largest.value == found["MpiPingPong.bandwidth_by_size[1048576]"].value
    assert smallest.conditions["program"] == "mpi4py"
    assert smallest.conditions["mpi"].startswith("Open MPI")


def test_pairs_bear_the_credentials_of_both_ends(found):
    assert {s.header.provenance["origin"] for s in found.values()} == {"munge"}


@pytest.mark.tool("nuttcp")
def test_udp_is_measured_both_ways_and_says_with_what(measured):
    client, server = PAIRS["UdpBandwidth"]

    def by_way(metric):
        of_it = [s for s in measured["UdpBandwidth"] if s.metric == f"UdpBandwidth.{metric}"]
        assert [s.why for s in of_it if s.status != "ok"] == []
        found = {(s.node, s.dims["peer"]): s for s in of_it}
        assert set(found) == {(client, server), (server, client)}
        return found

    sent, lost = by_way("sent"), by_way("loss")
    for way, sample in by_way("throughput").items():
        arrived = sent[way].value * (1 - lost[way].value / 100)
        assert sample.value > 0
        assert abs(arrived / sample.value - 1) < Decimal("0.05")  # the same datagrams, two clocks
        told = {key: sample.conditions[key] for key in ("program", "datagram", "mtu", "link")}
        assert told == {"program": "nuttcp", "datagram": "8972", "mtu": "9000", "link": "lan"}
