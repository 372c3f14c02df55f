"""Round trip, path MTU and MPI between two nodes of the test bed, as a session measures them."""

import pytest
from test_run_slurm import suite  # noqa: F401

pytest_plugins = ["testbed_fixture"]
pytestmark = [pytest.mark.testbed, pytest.mark.tool("ReFrame", "Slurm")]
PAIR = ("-S", "nodes=node[001-002]")


def of_the_pair(suite):  # noqa: F811
    """The figures of node002, which asks node001, by metric; those of each size as metric[size]."""
    assert [s.why for s in suite.samples() if s.status != "ok"] == []
    assert {(s.node, s.dims["peer"]) for s in suite.samples()} == {("node002", "node001")}
    return {
        s.metric + (f"[{s.dims['size']}]" if "size" in s.dims else ""): s for s in suite.samples()
    }


@pytest.mark.tool("ping", "qperf")
def test_a_round_trip_is_that_of_ping_and_tcp_has_its_own(suite):  # noqa: F811
    done = suite.reframe("-n", "Latency", *PAIR)
    assert done.returncode == 0, done.stdout + done.stderr
    found = of_the_pair(suite)
    trip = found["Latency.round_trip"]
    assert (trip.unit, found["Latency.tcp"].unit) == ("us", "us")
    assert found["Latency.min"].value <= trip.value <= found["Latency.max"].value
    assert 1 < trip.value < 1_000_000
    told = {key: trip.conditions.get(key) for key in ("program", "size", "packets", "link")}
    assert told == {"program": "ping", "size": "56", "packets": "10", "link": "lan"}


@pytest.mark.tool("ping")
def test_a_node_with_a_smaller_mtu_is_seen_and_told(suite):  # noqa: F811
    suite.testbed.fault("wrong-mtu", "node002", value="1500")
    try:
        done = suite.reframe("-n", "PathMtu", *PAIR)
    finally:
        suite.testbed.mend("node002")
    assert done.returncode == 0, done.stdout + done.stderr  # no criterion speaks of it here
    found = of_the_pair(suite)
    assert (found["PathMtu.mtu"].value, found["PathMtu.device"].value) == (1500, 1500)
    warning = "the client's own MTU is 1500, expected 9000"
    assert found["PathMtu.mtu"].conditions["device_warning"] == warning


@pytest.mark.tool("mpi4py.bench")
def test_mpi_runs_between_the_two_nodes_with_every_size(suite):  # noqa: F811
    done = suite.reframe("-n", "MpiPingPong", "-S", "MpiPingPong.program=mpi4py", *PAIR)
    assert done.returncode == 0, done.stdout + done.stderr
    found = of_the_pair(suite)
    sizes = {2**power for power in range(3, 21)}
    assert {f"MpiPingPong.latency_by_size[{size}]" for size in sizes} <= set(found)
    smallest, largest = found["MpiPingPong.latency"], found["MpiPingPong.bandwidth"]
    assert smallest.value == found["MpiPingPong.latency_by_size[8]"].value
    assert largest.value == found["MpiPingPong.bandwidth_by_size[1048576]"].value
    assert smallest.conditions["program"] == "mpi4py"
    assert smallest.conditions["mpi"].startswith("Open MPI")
