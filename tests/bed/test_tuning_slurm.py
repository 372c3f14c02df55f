"""A tuning sweep on a real Slurm cluster: whatever ends it, all is as it was.

What a buffer costs is measured between two sites: a stream moves no more than its buffer in a round
trip; that bound is no figure of this machine.
"""

import re
import signal

import pytest
from bed_suite import Suite, finish
from testbed_fixture import until
from wan_sites import RTT, Sites, joined

pytestmark = [pytest.mark.testbed, pytest.mark.tool("ReFrame", "Slurm", "iperf3")]

MIB = 2**20
FILES = ("/proc/sys/net/ipv4/tcp_rmem", "/proc/sys/net/ipv4/tcp_wmem")
SWEEP = """description: TCP against buffers
tool: tcp
axes: {{buffer: [{buffers}]}}
fixed:
{more}  seconds: {seconds}
  knob.sysctl.net.ipv4.tcp_rmem: '4096 87380 {{buffer}}'
  knob.sysctl.net.ipv4.tcp_wmem: '4096 65536 {{buffer}}'
against: buffer
order: ascending
point_limit: 40s
"""


class Tuning(Suite):
    """Sweeps of the test's own on the bed; `-S TcpSweep.omit=1` makes a point short."""

    link, client, server = "lan", "node002", "node001"  # the first of each end of the link

    def allow(self):
        """The site lets its nodes be tuned."""
        given = "    scheduler: slurm\n"
        self.edit("system.yaml", (given, f"{given}    tuning: true\n"))
        return self

    def sweep(self, buffers, seconds=2, more=""):
        folder = self.folder / "sweeps"
        folder.mkdir(exist_ok=True)
        sizes = ", ".join(f"{b} MiB" for b in buffers)
        text = SWEEP.format(buffers=sizes, seconds=seconds, more=more)
        (folder / "buffers.yaml").write_text(text)
        return ("-n", f"^Buffers.*link={self.link}$", "-S", "omit=1")

    def command(self, *words, **kw):
        where = f"SITEPROOF_SWEEPS='{self.folder}/sweeps'"
        where += f" SITEPROOF_KNOB_RECORDS='{self.folder}/records'"
        return super().command(*words, **{"before": where, "checks": "sweeps/"} | kw)

    def values(self):
        """What is set on both ends."""
        ends = (self.client, self.server)
        return [self.testbed.run(["cat", *FILES], node=node).stdout for node in ends]

    def begun(self, *words):
        """A run whose two nodes have just changed their buffers."""
        before = self.values()
        run = self.start(*words)

        def changed():
            return all(b != v for b, v in zip(before, self.values(), strict=True))

        until(changed, "other buffers on both nodes", self.values)
        return run

    def holder(self, node):
        """The process that holds the values of a node, by the node's own record."""
        return re.search(r"holder ([0-9]+)", (self.folder / "records" / node).read_text())[1]

    def statuses(self):
        return {s.status for s in self.samples()}


class Far(Tuning, Sites):
    """Between two sites."""

    link, client = "wan", "node005"


@pytest.fixture
def suite(testbed, tmp_path):
    suite = Tuning(testbed, tmp_path).allow()
    yield suite
    suite.end()


@pytest.fixture(scope="module")
def far(tmp_path_factory):
    with joined("10gbit", tmp_path_factory.getbasetemp(), "-tuning") as bed:
        yield bed


@pytest.fixture
def sites(far, tmp_path):
    suite = Far(far, tmp_path)
    yield suite
    suite.end()


def test_a_node_without_lustre_is_left_alone_and_told(suite):
    before = suite.values()
    done = suite.reframe(*suite.sweep([1], more="  knob.lustre.osc.*.max_dirty_mb: 64\n"))
    assert "lctl is not installed: no Lustre client" in done.stdout
    assert "1 skipped" in done.stdout
    assert (done.returncode, suite.values()) == (0, before)


def test_what_the_kernel_refuses_is_an_invalid_point(suite):
    before = suite.values()
    done = suite.reframe(*suite.sweep([1], more="  knob.sysctl.net.ipv4.ip_default_ttl: 999\n"))
    assert done.returncode == 1, done.stdout
    assert suite.statuses() == {"invalid"}
    refused = "knob.sysctl.net.ipv4.ip_default_ttl: '999' was refused"
    assert all(s.why.endswith(refused) for s in suite.samples())
    assert suite.values() == before


def test_a_job_that_somebody_ends_restores(suite):
    words, before = suite.sweep([1, 4], seconds=60), suite.values()
    run = suite.begun(*words)
    suite.testbed.run(["scancel", "--user=root"])
    told = finish(run)
    assert run.returncode == 1, told
    assert suite.values() == before
    assert suite.statuses() == {"interrupted"}
    assert "may not be restored" not in told


# ---- longer


@pytest.mark.long
def test_a_partition_without_tuning_is_left_alone(testbed, tmp_path):
    suite = Tuning(testbed, tmp_path)
    done = suite.reframe(*suite.sweep([1]))
    assert done.returncode == 0
    assert "testbed:compute has no 'tuning: true' in system.yaml" in done.stdout
    assert list(suite.samples()) == []


@pytest.mark.long
def test_a_larger_buffer_moves_more_and_the_nodes_are_as_they_were(sites):
    words, before = sites.sweep([1, 4, 16]), sites.values()
    done = sites.reframe(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sites.values() == before
    rates = {int(s.dims["buffer"]): s for s in sites.samples() if s.metric == "TcpSweep.rate"}
    assert sorted(rates) == [MIB, 4 * MIB, 16 * MIB]
    for buffer, sample in rates.items():
        limit = buffer * 8 / RTT
        assert float(sample.value) < 1.05 * limit
        assert sample.conditions["knob.sysctl.net.ipv4.tcp_rmem"] == f"4096 87380 {buffer}"
        assert sample.conditions["congestion"] == "cubic"
    # Measured in turns, so that a busy machine slows them alike; four times as much alone.
    assert float(rates[4 * MIB].value) > 1.5 * float(rates[MIB].value)
    assert not [*(sites.folder / "records").iterdir()]


@pytest.mark.long
def test_a_killed_holder_costs_no_value(suite):
    words, before = suite.sweep([1], seconds=6), suite.values()
    run = suite.begun(*words)
    holder = suite.holder(suite.client)
    suite.testbed.run(["kill", f"-{signal.SIGKILL.value}", holder], node=suite.client)
    told = finish(run)
    assert suite.values() == before, told
    assert run.returncode == 0, told  # what it had set was in force while the point was measured


@pytest.mark.long
@pytest.mark.parametrize("dead", [0, 1], ids=["the client", "the server"])  # the second one walks
def test_a_node_that_loses_power_is_named_and_mended_by_the_next_sweep(suite, dead):
    words, before = suite.sweep([1, 4], seconds=20), suite.values()
    victim = (suite.client, suite.server)[dead]
    run = suite.begun(*words)
    suite.testbed.power_off(victim)
    told = finish(run)
    assert run.returncode == 1, told
    lost = [s for s in suite.samples() if s.node]
    assert [(s.node, s.status) for s in lost] == [(victim, "invalid")]
    assert lost[0].why.startswith("may not be restored (sysctl net/ipv4/tcp_rmem was ")
    assert suite.values()[1 - dead] == before[1 - dead]  # the other one is restored
    suite.testbed.power_on(victim)
    done = suite.reframe(*suite.sweep([1]))
    assert done.returncode == 0, done.stdout
    assert suite.values() == before


@pytest.mark.long
def test_with_its_slurmd_killed_a_node_is_restored(suite):
    words, before = suite.sweep([1], seconds=8), suite.values()
    run = suite.begun(*words)
    suite.testbed.must("kill-slurmd", suite.client)
    finish(run)
    until(lambda: suite.values() == before, "the buffers of before", suite.values)
    suite.testbed.power_on(suite.client)
