"""Programs over growing numbers of nodes of a real Slurm: the curve, and what follows from it."""

import shutil

import pytest
from bed_suite import Suite

pytestmark = [
    pytest.mark.testbed,
    pytest.mark.long,
    pytest.mark.tool("ReFrame", "Slurm", "LAMMPS"),
    pytest.mark.skipif(not shutil.which("lmp"), reason="NOT TESTED: no lmp; setup/packages apps"),
]
SCALING = """
scaling:
  melt: {program: lammps, nodes: [1, 2], tasks_per_node: 1, scaling: weak}
  whole: {program: hpl, nodes: [1, 2], tasks_per_node: 1, scaling: weak, memory_share: 0.1 %}
  count:
    command: |
      launch sh -c 'echo "rank ${PMIX_RANK:-?} of $PARTS"; echo "mean 0.5"'
      echo all done
    answer: all done
    result: 'mean #'
    nodes: [1, 2]
    tasks_per_node: 1
    scaling: strong

partitions:
"""


@pytest.fixture
def suite(testbed, tmp_path):
    suite = Suite(testbed, tmp_path)
    suite.edit("system.yaml", ("\npartitions:\n", SCALING), ("[hpcc,", "[hpcc, lammps,"))
    yield suite
    suite.end()


def test_each_number_of_nodes_is_a_point_with_a_rate_and_no_energy_of_zero(suite):
    done = suite.reframe("-S", "mode=quick", "-n", "^Scaling")
    assert done.returncode == 0, done.stdout
    found = {(s.conditions["application"], s.metric, s.dims["nodes"]): s for s in suite.samples()}
    for name, metric in (("melt", "rate"), ("whole", "gflops"), ("count", "speed")):
        each = [found[name, f"Scaling.{metric}", nodes] for nodes in ("1", "2")]
        assert all(float(s.value) > 0 for s in each)
        assert each[0].header.provenance["energy"].startswith("none: ")
    assert found["melt", "Scaling.rate", "2"].conditions["atoms"] == "216000"
    assert found["whole", "Scaling.gflops", "2"].conditions["q"] == "2"
    assert "Scaling.energy" not in {metric for _, metric, _ in found}
