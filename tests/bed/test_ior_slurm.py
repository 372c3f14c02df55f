"""IOR and mdtest over the nodes of a real Slurm cluster."""

import shutil
from pathlib import Path

import pytest
from bed_suite import Suite

pytestmark = [
    pytest.mark.testbed,
    pytest.mark.tool("ReFrame", "Slurm"),
    pytest.mark.skipif(
        not (shutil.which("ior") and shutil.which("mdtest")), reason="NOT TESTED: no ior or mdtest"
    ),
]

SMALL = ("-S", "mode=quick", "-S", "nodes=2", "-S", "Ior.block=32", "-S", "Mdtest.files=50")
SCRATCH = "path: /var/tmp, kind: any, shared: true"
MEMORY = "{path: /tmp, kind: tmpfs"


@pytest.fixture
def suite(testbed, tmp_path):
    """A site with ior and mdtest; its shared file system is a folder of the test's."""
    suite = Suite(testbed, tmp_path)
    suite.disk = tmp_path / "disk"
    suite.disk.mkdir()
    suite.edit(
        "system.yaml",
        (SCRATCH, f"path: {suite.disk}, kind: any, shared: true"),
        ("mpi4py]", "mpi4py, ior, mdtest]"),
        ("variables: {", f'variables: {{PATH: "{Path(shutil.which("ior")).parent}:$PATH", '),
    )
    yield suite
    suite.end()


@pytest.mark.tool("IOR", "mdtest")
def test_each_node_reads_what_another_one_wrote_and_nothing_is_left(suite):
    done = suite.reframe(*SMALL, "-S", "nodes=4", "-n", "^(Ior|Mdtest)%.*scratch")
    assert done.returncode == 0, done.stdout
    samples = suite.samples()
    assert {s.status for s in samples} == {"ok"}
    assert {s.dims["tasks"] for s in samples} == {"4"}
    assert {s.conditions["read_by"] for s in samples} == {"another"}
    assert {s.conditions["cached"] for s in samples if s.metric == "Ior.read"} == {"yes"}
    assert {s.conditions["cached"] for s in samples if s.metric == "Mdtest.stat"} == {"no"}
    assert {s.metric for s in samples} == {
        *(f"Ior.{way}{of}" for way in ("read", "write") for of in ("", "_slowest", "_fastest")),
        *(f"Mdtest.{phase}" for phase in ("create", "stat", "read", "remove")),
    }
    assert list(suite.disk.iterdir()) == []


def test_on_file_systems_of_their_own_each_task_has_its_file_there(suite):
    done = suite.reframe(*SMALL, "-n", "^Ior%.*memory")
    assert done.returncode == 0, done.stdout
    assert {
        (s.dims["tasks"], s.dims["layout"], s.conditions["read_by"]) for s in suite.samples()
    } == {("2", "file_a_task", "same")}
    nothing_is_left(suite)


def test_a_file_system_that_is_not_as_shared_as_the_site_says_gives_no_figure(suite):
    """And a rank that does not see the folder writes nowhere else."""
    suite.edit("system.yaml", (MEMORY, "{path: /tmp, kind: tmpfs, shared: true"))
    done = suite.reframe(*SMALL, "-n", "^(Ior|Mdtest)%.*memory")
    assert done.returncode == 1
    assert {s.status for s in suite.samples()} == {"generic"}
    assert "No such file or directory" in done.stdout
    nothing_is_left(suite)


def nothing_is_left(suite):
    for node in ("node001", "node002"):
        left = suite.testbed.run(["ls", "/tmp"], node=node).stdout
        assert "siteproof-test" not in left
        assert "test." not in left
