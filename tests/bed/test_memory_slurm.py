"""Memory on a real Slurm cluster: what HPL takes of it. Who is killed: test_run_slurm.py."""

import time
from pathlib import Path

import pytest
from bed_suite import NODES

pytestmark = [pytest.mark.testbed, pytest.mark.tool("ReFrame", "Slurm")]


@pytest.mark.long
@pytest.mark.tool("HPCC")
def test_the_default_hpl_fits_eight_nodes_of_one_machine(suite):
    def kills():
        words = Path("/proc/vmstat").read_text().split()
        return int(words[words.index("oom_kill") + 1])

    before, began = kills(), time.time()
    words = suite.command("-n", "Hpl", mode="acceptance")
    done = suite.testbed.run(words, timeout=3600)  # HPCC's other tests take most of it
    assert done.returncode == 0, done.stdout + done.stderr
    assert suite.measured("Hpl.gflops") == NODES
    shares = {float(s.conditions["memory_share"]) for s in suite.samples()}
    assert all(0.5 <= share < 0.55 for share in shares)
    assert kills() == before, f"the kernel killed within {time.time() - began:.0f} s"
