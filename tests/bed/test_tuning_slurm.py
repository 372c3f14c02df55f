"""A tuning sweep between two sites: what a buffer costs; and whatever ends it, all is as it was.

A stream moves no more than its buffer in a round trip; that bound is no figure of this machine.
"""

import re
import signal
import time

import pytest
from clone import PATIENCE
from test_wan_slurm import RTT, Sites
from testbed_fixture import Testbed

pytestmark = [pytest.mark.testbed, pytest.mark.tool("ReFrame", "Slurm", "iperf3")]

MIB = 2**20
CLIENT, SERVER = "node005", "node001"  # the first of each end of the link `wan`
FILES = ("/proc/sys/net/ipv4/tcp_rmem", "/proc/sys/net/ipv4/tcp_wmem")
FIXED = """fixed:
  seconds: {seconds}
  knob.sysctl.net.ipv4.tcp_rmem: '4096 87380 {{buffer}}'
  knob.sysctl.net.ipv4.tcp_wmem: '4096 65536 {{buffer}}'
"""
SWEEP = (
    """description: TCP against buffers
tool: tcp
axes: {{buffer: [{buffers}]}}
"""
    + FIXED
    + """against: buffer
order: ascending
point_limit: 40s
"""
)


class Tuning(Sites):
    """Sweeps of the test's own on the bed; `-S TcpSweep.omit=1` makes a point short."""

    def sweep(self, buffers, seconds=2, more=""):
        folder = self.folder / "sweeps"
        folder.mkdir(exist_ok=True)
        text = SWEEP.format(buffers=", ".join(f"{b} MiB" for b in buffers), seconds=seconds)
        (folder / "buffers.yaml").write_text(text.replace("fixed:\n", f"fixed:\n{more}"))
        self.described += (
            f" SITEPROOF_SWEEPS='{folder}' SITEPROOF_KNOB_RECORDS='{self.folder}/records'"
        )
        return ("-n", "^Buffers.*link=wan$", "-S", "omit=1")

    def command(self, *words, **kw):
        line = super().command(*words, **kw)
        return [
            *line[:-1],
            line[-1]
            .replace("-c checks/", "-c sweeps/")
            .replace(" && exec", " && export SITEPROOF_SWEEPS SITEPROOF_KNOB_RECORDS && exec"),
        ]

    def values(self):
        """What is set on both ends."""
        return [self.testbed.run(["cat", *FILES], node=node).stdout for node in (CLIENT, SERVER)]

    def record(self, node):
        """What the node has noted of its own values."""
        path = self.folder / "records" / node
        return path.read_text() if path.exists() else ""

    def begun(self, *words):
        """A run whose two nodes have just changed their buffers."""
        before = self.values()
        run = self.start(*words)
        self.wait_for(lambda: all(b != v for b, v in zip(before, self.values(), strict=True)))
        return run

    def statuses(self):
        return {s.status for s in self.samples()}


@pytest.fixture(scope="module")
def bed(tmp_path_factory):
    bed = Testbed("-tuning")
    bed.up("8", "--sites", "2", "--wan", "50.5ms,10gbit", "--share", tmp_path_factory.getbasetemp())
    try:
        yield bed
    finally:
        bed.down()


@pytest.fixture
def suite(bed, tmp_path):
    suite = Tuning(bed, tmp_path)
    yield suite
    bed.run(["scancel", "--user=root"])
    suite.wait_for(lambda: not suite.jobs())


@pytest.mark.alone
def test_a_larger_buffer_moves_more_and_the_nodes_are_as_they_were(suite):
    words, before = suite.sweep([1, 4, 16]), suite.values()
    done = suite.reframe(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert suite.values() == before
    rates = {int(s.dims["buffer"]): s for s in suite.samples() if s.metric == "TcpSweep.rate"}
    assert sorted(rates) == [MIB, 4 * MIB, 16 * MIB]
    for buffer, sample in rates.items():
        limit = buffer * 8 / RTT
        assert 0.3 * limit < float(sample.value) < 1.05 * limit
        assert sample.conditions["knob.sysctl.net.ipv4.tcp_rmem"] == f"4096 87380 {buffer}"
        assert sample.conditions["congestion"] == "cubic"
    assert not [*(suite.folder / "records").iterdir()]


def test_a_partition_without_tuning_is_left_alone(suite):
    suite.describe("system.yaml", ("    tuning: true\n", ""))
    done = suite.reframe(*suite.sweep([1]))
    assert done.returncode == 0
    assert "testbed-wan:compute has no 'tuning: true' in system.yaml" in done.stdout
    assert list(suite.samples()) == []


def test_a_node_without_lustre_is_left_alone_and_told(suite):
    before = suite.values()
    done = suite.reframe(*suite.sweep([1], more="  knob.lustre.osc.*.max_dirty_mb: 64\n"))
    assert "lctl is not installed: no Lustre client" in done.stdout
    assert "1 skipped" in done.stdout
    assert (done.returncode, suite.values()) == (0, before)


def test_what_the_kernel_refuses_is_an_invalid_point(suite):
    before = suite.values()
    done = suite.reframe(*suite.sweep([1], more="  knob.sysctl.net.ipv4.ip_default_ttl: 999\n"))
    assert done.returncode == 1
    assert {s.status for s in suite.samples()} == {"invalid"}
    assert all(
        s.why.endswith("knob.sysctl.net.ipv4.ip_default_ttl: '999' was refused")
        for s in suite.samples()
    )
    assert suite.values() == before


@pytest.mark.alone
def test_a_job_that_somebody_ends_restores(suite):
    words, before = suite.sweep([1, 4], seconds=15), suite.values()
    run = suite.begun(*words)
    suite.testbed.run(["scancel", "--user=root"])
    told, _ = run.communicate(timeout=PATIENCE)
    assert run.returncode == 1, told
    assert suite.values() == before
    assert suite.statuses() == {"interrupted"}
    assert "may not be restored" not in told


@pytest.mark.alone
def test_a_killed_holder_costs_no_value(suite):
    words, before = suite.sweep([1], seconds=6), suite.values()
    run = suite.begun(*words)
    holder = re.search(r"holder ([0-9]+)", suite.record(CLIENT))[1]
    suite.testbed.run(["kill", f"-{signal.SIGKILL.value}", holder], node=CLIENT)
    told, _ = run.communicate(timeout=PATIENCE)
    assert suite.values() == before, told
    assert run.returncode == 0, told  # what it had set was in force while the point was measured


@pytest.mark.long
@pytest.mark.parametrize(("dead", "other"), [(CLIENT, 1), (SERVER, 0)])  # the second one walks
def test_a_node_that_loses_power_is_named_and_mended_by_the_next_sweep(suite, dead, other):
    words, before = suite.sweep([1, 4], seconds=20), suite.values()
    run = suite.begun(*words)
    suite.testbed.power_off(dead)
    told, _ = run.communicate(timeout=PATIENCE)
    assert run.returncode == 1, told
    lost = [s for s in suite.samples() if s.node]
    assert [(s.node, s.status) for s in lost] == [(dead, "invalid")]
    assert lost[0].why.startswith("may not be restored (sysctl net/ipv4/tcp_rmem was ")
    assert suite.values()[other] == before[other]  # the other one is restored
    suite.testbed.power_on(dead)
    time.sleep(1)
    done = suite.reframe(*suite.sweep([1]))
    assert done.returncode == 0, done.stdout
    assert suite.values() == before


@pytest.mark.long
def test_with_its_slurmd_killed_a_node_is_restored(suite):
    words, before = suite.sweep([1], seconds=8), suite.values()
    run = suite.begun(*words)
    suite.testbed.must("kill-slurmd", CLIENT)
    told, _ = run.communicate(timeout=PATIENCE)
    assert suite.wait_for(lambda: suite.values() == before), told
    suite.testbed.power_on(CLIENT)
