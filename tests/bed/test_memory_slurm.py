"""Memory on a real Slurm cluster: who is killed for want of it, and what HPL takes of it."""

import time
from pathlib import Path

import pytest
from clone import wait_for
from test_run_slurm import NODES, RECORDED, suite  # noqa: F401 - the fixture

pytest_plugins = ["testbed_fixture"]
pytestmark = [pytest.mark.testbed, pytest.mark.tool("ReFrame", "Slurm")]

VICTIM = "node003"
HUNGRY = "/usr/bin/python3 -c 'x = bytearray(700 << 20)'"


@pytest.fixture
def little(testbed):
    """A node with 300 MiB; skipped, loudly, where this machine can limit no memory."""
    done = testbed.command("fault", "little-memory", VICTIM, "--value", "300MiB")
    if done.returncode == 2:
        pytest.skip(f"OUT OF MEMORY NOT TESTED: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    yield VICTIM
    testbed.mend(VICTIM)


def greedy(then="exit 1"):
    """A likwid-bench that needs 700 MiB on the victim, and prints a recorded output elsewhere."""
    return (
        f"[ $2 = copy ] || exit 0\n[ $(uname -n) != {VICTIM} ] || {{ {HUNGRY}; exit; }}\n"
        f"{then}\ncat '{RECORDED}'"
    )


def test_a_node_that_runs_out_of_memory_is_told_and_the_others_are_measured(suite, little):  # noqa: F811
    suite.likwid(greedy(then=":"))
    done = suite.reframe("-n", "Stream")
    assert done.returncode == 1
    assert "7 of 8 nodes measured" in done.stdout
    assert suite.measured("Stream.triad") == [n for n in NODES if n != little]
    told = suite.lost()[little]
    assert told.startswith("killed: out of memory: the kernel killed 1 process of the job")


def test_a_node_that_ran_out_of_memory_before_its_job_was_cancelled_is_not_interrupted(
    suite,  # noqa: F811
    testbed,
    little,
):
    suite.likwid(greedy(then="[ $(uname -n) != node005 ] || sleep 1000"))
    process = suite.start("-n", "Stream", "-S", "time_limit=4m")
    stages = suite.data / "stage"
    wait_for(lambda: len(list(stages.glob("*/*/*/*/*/raw/node*"))) == len(NODES) - 1)
    testbed.run(["sh", "-c", "scancel $(squeue -h -o %A)"])
    process.communicate(timeout=300)
    lost = suite.lost()
    assert lost[little].startswith("killed: out of memory")
    assert lost["node005"].startswith("interrupted")


@pytest.mark.long
@pytest.mark.tool("HPCC")
def test_the_default_hpl_fits_eight_nodes_of_one_machine(suite):  # noqa: F811
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
