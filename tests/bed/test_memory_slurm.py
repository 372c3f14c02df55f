"""Memory on a real Slurm cluster: what HPL takes of it. Who is killed: test_run_slurm.py."""

import pytest
from bed_suite import NODES

pytestmark = [pytest.mark.testbed, pytest.mark.tool("ReFrame", "Slurm")]


@pytest.mark.weekly  # HPCC's other tests take half an hour
@pytest.mark.tool("HPCC")
def test_the_default_hpl_fits_eight_nodes_of_one_machine(suite):
    words = suite.command("-n", "Hpl", mode="acceptance")
    done = suite.testbed.run(words, timeout=3600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert suite.measured("Hpl.gflops") == NODES
    shares = {float(s.conditions["memory_share"]) for s in suite.samples()}
    assert all(0.5 <= share < 0.55 for share in shares)
