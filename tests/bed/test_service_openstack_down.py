"""Beds of an OpenStack: interrupted, killed, down, nothing left. The last to run in a process."""

import signal
import subprocess
from pathlib import Path

import pytest
import services_fixture
from services_fixture import PROGRAMS, link_to, network_of, processes_in, until

pytestmark = [pytest.mark.services, pytest.mark.cloud, pytest.mark.tool("OpenStack")]
SOON = 90  # seconds until all of a bed has ended, on a busy machine


@pytest.fixture(scope="module")
def bed(request):
    return services_fixture.shared(request, "openstack", program="cloud")


@pytest.fixture
def other(bed, request):
    """A bed that nothing is in yet. bed: what is kept of its start makes that of this one short."""
    yield from services_fixture.own(request, "cloud")


def left(bed):
    """Mounts and files of a bed."""
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    return [bed.state] * bed.state.exists() + [one for one in mounts if f"{bed.state}/" in one]


def starting(bed):
    argv = [PROGRAMS / "cloud", "up", "openstack"]
    return subprocess.Popen(argv, env=bed.environment, stderr=subprocess.PIPE)


@pytest.mark.parametrize("log", ["mariadb", "glance"])
def test_an_interrupted_start_leaves_nothing(other, log):
    """When the database starts, and when the services above it do."""
    started = starting(other)
    try:
        until((other.state / "openstack/logs" / log).exists, f"{log} has a log")
        network = network_of(other)
        started.terminate()
        _, error = started.communicate(timeout=SOON)
        assert started.returncode == 128 + signal.SIGTERM, error
        assert left(other) == []
        until(lambda: not processes_in(network), "no process in the network of the bed")
    finally:
        started.kill()


def test_a_killed_start_is_cleared_by_down(other):
    started = starting(other)
    try:
        until((other.state / "openstack/logs/mariadb").exists, "mariadb has a log")
        network = network_of(other)
        started.kill()
        started.wait()
        other.must("down")
        assert left(other) == []
        assert processes_in(network) == []
    finally:
        started.kill()


def test_nothing_is_left_after_down(bed):
    """The last, for the bed that all tests of this process share is gone then."""
    address = bed.site["openstack"]["address"].split("/")[2].partition(":")[0]
    network, link = network_of(bed), link_to(address)
    assert processes_in(network)
    bed.must("down")
    assert left(bed) == []
    assert processes_in(network) == []
    assert not Path("/sys/class/net", link).exists()
