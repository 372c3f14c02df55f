"""The site's workload over the nodes of a real Slurm cluster, with real programs."""

import shutil

import pytest
from clone import TOP
from test_run_slurm import Suite

pytest_plugins = ["testbed_fixture"]
MISSING = [program for program in ("lmp", "minimap2") if not shutil.which(program)]
pytestmark = [
    pytest.mark.testbed,
    pytest.mark.long,
    pytest.mark.tool("ReFrame", "Slurm", "LAMMPS", "minimap2"),
    pytest.mark.skipif(
        bool(MISSING), reason=f"NOT TESTED: no {', '.join(MISSING)}; setup/packages apps"
    ),
]
SCRATCH = "path: /var/tmp, kind: any, shared: true"
WORKLOAD = """
workload:
  file_systems: [scratch]
  applications:
    melt: {program: lammps, nodes: 1}
    genes: {program: minimap2, nodes: 1}

partitions:
"""


@pytest.fixture
def suite(testbed, tmp_path):
    """A site with a workload; its shared file system is a folder of the test's."""
    suite = Suite(testbed, tmp_path)
    suite.disk = tmp_path / "disk"
    suite.disk.mkdir()
    site = tmp_path / "sites" / "testbed"
    shutil.copytree(TOP / "site-config/testbed", site)
    suite.system = site / "system.yaml"
    text = suite.system.read_text()
    assert SCRATCH in text
    text = text.replace(SCRATCH, f"path: {suite.disk}, kind: any, shared: true")
    suite.system.write_text(text.replace("\npartitions:\n", WORKLOAD))
    yield suite
    testbed.run(["scancel", "--user=root"])
    suite.wait_for(lambda: not suite.jobs())


def reframe(suite, *words):
    before = f"SITEPROOF_SITES='{suite.system.parents[1]}'"
    return suite.reframe("-S", "mode=quick", "-n", "^Workload%.*scratch", *words, before=before)


def test_two_applications_run_alone_and_then_at_the_same_time(suite):
    done = reframe(suite)
    assert done.returncode == 0, done.stdout
    samples = suite.samples()
    assert {s.status for s in samples} == {"ok"}
    found = {(s.metric, s.dims.get("application", "")): float(s.value) for s in samples}
    assert found["Workload.nodes", ""] == 2
    for name in ("melt", "genes"):
        ratio = found["Workload.time_mix", name] / found["Workload.time_alone", name]
        assert found["Workload.slowdown", name] == pytest.approx(ratio, rel=0.01)
    assert found["Workload.peak", ""] >= found["Workload.sustained", ""]
    assert ("Workload.network_moved", "melt") in found  # each node has a network of its own
    assert ("Workload.moved", "melt") not in found  # and all share this machine's disk
    assert {s.conditions["applications"] for s in samples} == {"2"}
    assert list(suite.disk.iterdir()) == []


def test_another_input_of_one_application_makes_all_invalid(suite):
    wrong = suite.system.parents[2] / "bin"
    wrong.mkdir()
    program = wrong / "minimap2"
    real = shutil.which("minimap2")
    shifted = "sed -i -e '2{h;d}' -e '$G' genome.fa"
    program.write_text(f'#!/bin/sh\n{shifted}\nexec {real} "$@"\n')
    program.chmod(0o755)
    text = suite.system.read_text()
    suite.system.write_text(text.replace("variables: {", f'variables: {{PATH: "{wrong}:$PATH", '))
    done = reframe(suite)
    assert done.returncode == 1, done.stdout
    (sample,) = suite.samples()
    assert sample.status == "invalid"
    assert "genes alone" in sample.why
