"""From nothing to the first verdict on a cluster with other names and overlapping partitions."""

import os
import re

import pytest
from bed_suite import OFTEN
from clone import TOP
from testbed_fixture import Testbed

pytestmark = [pytest.mark.testbed, pytest.mark.tool("ReFrame", "Slurm")]

NAMES = [*(f"nid{number:06}" for number in range(1, 5)), "cn-a-01", "cn-a-02"]
SHAPE = """\
ClusterName=hydra
NodeName=nid[000001-000004] CPUs={0} Sockets=1 CoresPerSocket={0} ThreadsPerCore=1 RealMemory=900 \
Feature=rome,rack1 State=UNKNOWN
NodeName=cn-a-[01-02] CPUs={0} Sockets=1 CoresPerSocket={0} ThreadsPerCore=1 RealMemory=1800 \
Feature=milan,rack2 State=UNKNOWN
PartitionName=batch Nodes=nid[000001-000004] Default=YES MaxTime=1-0 State=UP
PartitionName=long Nodes=nid[000001-000004] MaxTime=7-0 State=UP
PartitionName=debug Nodes=nid000001,cn-a-01 MaxTime=30 State=UP
PartitionName=all Nodes=ALL MaxTime=1-0 State=UP
"""
COMMANDS = (
    "siteproof sites new hydra --describe --apply",
    "siteproof lint --system hydra",
    "reframe -c checks/ -n SystemDescription -r --mode maintenance",
    "siteproof verdict",
)


@pytest.fixture
def hydra(tmp_path):
    """Six nodes of two kinds in four partitions, and nothing that Siteproof knows of them."""
    shape = tmp_path / "shape.conf"
    shape.write_text(SHAPE.format(len(os.sched_getaffinity(0))))
    bed = Testbed("-hydra")
    try:
        bed.up("--names", ",".join(NAMES), "--slurm", shape, "--share", tmp_path)
        yield bed
    finally:
        if bed.state.exists():
            bed.down()


def test_the_first_verdict_needs_no_edit(hydra, tmp_path):
    for folder in ("sites", "data"):
        (tmp_path / folder).mkdir()
    outputs = []
    for command in COMMANDS:
        line = (
            f"cd '{TOP}' && . ./activate && export SITEPROOF_SITES='{tmp_path}/sites' "
            f"SITEPROOF_DATA='{tmp_path}/data' {OFTEN} && {command}"
        )
        done = hydra.run(["sh", "-c", line])
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        outputs.append(done.stdout)
    made, linted, _, verdict = outputs
    assert "batch  4 nodes, nid[000001-000004], by partition batch; also in long, debug" in made
    assert "all-milan  2 nodes, cn-a-[01-02], by partition all; also in debug" in made
    # Warnings: a new processor's cache may be large for the memory that the nodes of the bed have.
    assert re.search(r"1 site, no mistake,( [12] warnings?,)? 13 gaps", linted)
    warnings = [line for line in linted.splitlines() if "warning:" in line]
    assert all("of the memory of" in line for line in warnings), warnings
    assert "6 passed" in verdict
    last = "verdict on hydra: 1 PASS; next: siteproof report --system hydra"
    assert verdict.splitlines()[-1] == last
