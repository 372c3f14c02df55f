"""A job that slurmctld has lost, on a test bed of its own, as Slurm then gives its number again."""

import pytest
from bed_suite import NODES, Suite, waits
from clone import PATIENCE
from testbed_fixture import Testbed, until

pytestmark = [pytest.mark.testbed, pytest.mark.long, pytest.mark.tool("ReFrame", "Slurm")]


@pytest.fixture
def suite(tmp_path):
    bed = Testbed("-lost")
    try:
        bed.up("8", "--share", tmp_path)
        yield Suite(bed, tmp_path)
    finally:
        if bed.state.exists():
            bed.down()


def test_a_job_that_slurmctld_has_lost_does_not_hold_the_session(suite):
    """Killed before it had saved the job or told accounting about it."""
    bed, go = suite.testbed, suite.folder / "go"
    suite.polls = ""  # a job of which accounting gives three times no answer is given up
    suite.likwid(waits(go))
    bed.run(["pkill", "-STOP", "slurmdbd"])
    process = suite.start("-n", "Stream")
    begun = "stage/*/testbed/*/*/*/raw/.node*"
    until(lambda: len([*suite.data.glob(begun)]) == len(NODES), "all nodes to begin", suite.jobs)
    bed.run(["pkill", "-KILL", "slurmctld"])
    go.touch()
    for kept in (bed.path.parent / "slurmctld").glob("job_state*"):
        kept.unlink()
    bed.run(["pkill", "-CONT", "slurmdbd"])
    bed.restart_slurmctld()
    out, _ = process.communicate(timeout=4 * PATIENCE)
    assert "lost by Slurm" in out, out
    assert not [n for n in NODES if n not in {*suite.measured("Stream.triad"), *suite.lost()}]
