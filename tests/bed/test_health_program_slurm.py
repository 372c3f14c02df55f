"""The health program as a real HealthCheckProgram, and what NodeHealth collects of it."""

import os
import re
import subprocess
import tempfile
from pathlib import Path

import pytest
from bed_suite import Suite
from testbed_fixture import Testbed, until

pytestmark = [pytest.mark.testbed, pytest.mark.tool("ReFrame", "Slurm")]

NAMES = ["node001", "node002", "node003"]
SHAPE = """\
ClusterName=testbed
NodeName=node[001-003] CPUs={0} Sockets=1 CoresPerSocket={0} RealMemory=900 State=UNKNOWN
PartitionName=compute Nodes=ALL Default=YES MaxTime=INFINITE State=UP
HealthCheckProgram={1}
HealthCheckInterval=2
HealthCheckNodeState=ANY
"""
HEALTH = """
health:
  compute: {{drain: {0}, spool: {1}, zombies: 100000, free: {{/tmp: 1 MiB}}}}

file_systems:
"""
WRONG = "/tmp is not mounted as tmpfs"


class WithHealth(Suite):
    """The suite on a cluster whose slurmd run the program, each with a record of its own node."""

    def __init__(self, testbed, folder, spool):
        super().__init__(testbed, folder)
        self.spool = spool
        self.edit(
            "system.yaml",
            ("node[001-008]", "node[001-003]"),
            ("\nfile_systems:\n", HEALTH.format("no", spool)),
        )
        self.install()

    def install(self):
        made, conf = self.folder / "made", self.testbed.state / "etc" / "slurm.conf"
        export = f"#!/bin/sh\nexport SLURM_CONF={conf}\n"  # slurmd does not pass it on
        made.write_text(export + self.siteproof("health").stdout)
        made.chmod(0o755)
        made.replace(self.folder / "health")

    def on(self, node, *words):
        done = self.testbed.run(words, node=node)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def record(self, node):
        done = self.testbed.run(["cat", f"{self.spool}/health"], node=node)
        return [line.partition(" ")[2] for line in done.stdout.splitlines()]

    def state(self, node):
        done = self.testbed.run(["scontrol", "show", "node", node]).stdout
        reason = re.search(r"Reason=(.*?)(?: \[|$)", done, re.MULTILINE)
        return re.search(r"State=(\S+)", done)[1], reason[1] if reason else ""

    def has_recorded(self, *lines):
        until(lambda: self.record("node003") == [*lines], lines, lambda: self.record("node003"))


@pytest.fixture
def folder():
    """Outside of /tmp, which the test takes away from a node, with the program if it were there."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", ignore_cleanup_errors=True) as made:
        yield Path(made)


@pytest.fixture
def suite(folder):
    """Three nodes with a folder of their own at the place of the spool."""
    spool = Path(f"/var/spool/siteproof-test-{os.getpid()}")
    shape = folder / "shape.conf"
    shape.write_text(SHAPE.format(len(os.sched_getaffinity(0)), folder / "health"))
    bed = Testbed("-health")
    made = WithHealth(bed, folder, spool)
    try:
        spool.mkdir()
        bed.up("3", "--slurm", shape, "--share", folder)
        for name in NAMES:
            made.on(name, "mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", spool)
        yield made
    finally:
        if bed.state.exists():
            bed.down()
        subprocess.run(["rm", "-rf", spool], check=True)


def test_a_lost_mount_is_recorded_collected_and_drained_only_where_the_site_says_so(suite):
    suite.has_recorded("OK")
    suite.on("node003", "umount", "-l", "/tmp")
    suite.has_recorded("OK", f"BAD {WRONG}")
    assert suite.state("node003")[0] == "IDLE"
    suite.reframe("-n", "^NodeHealth$")
    assert suite.measured("NodeHealth.findings") == ["node001", "node002"]
    assert suite.lost() == {"node003": f"unhealthy: {WRONG}"}
    assert re.search(f"NodeHealth: .*{WRONG}", suite.siteproof("why", "node003").stdout)

    suite.on("node003", "mount", "-t", "tmpfs", "tmpfs", "/tmp")
    suite.has_recorded("OK", f"BAD {WRONG}", "OK")
    suite.reframe("-n", "^NodeHealth$")
    assert suite.measured("NodeHealth.failures") == NAMES
    newest = {s.metric: s.value for s in suite.samples() if s.node == "node003"}
    assert (newest["NodeHealth.changes"], newest["NodeHealth.failures"]) == (3, 1)
    assert newest["NodeHealth.last_failure"].endswith(WRONG)
    assert WRONG not in suite.siteproof("nodes").stdout

    suite.edit("system.yaml", ("drain: no", "drain: yes"))
    suite.install()
    suite.on("node003", "umount", "-l", "/tmp")
    until(lambda: "DRAIN" in suite.state("node003")[0], "drained", lambda: suite.state("node003"))
    assert suite.state("node003")[1] == "health check: siteproof"
    assert [suite.state(name)[0] for name in NAMES[:2]] == ["IDLE", "IDLE"]
    suite.on("node003", "mount", "-t", "tmpfs", "tmpfs", "/tmp")
    until(lambda: suite.record("node003")[-1] == "OK", "OK", lambda: suite.record("node003"))
    assert "DRAIN" in suite.state("node003")[0]
