"""Sweeps on a real Slurm cluster: real ranks, a hung point, a cancelled job, a lost node."""

import json
import shutil
import sys

import pytest
from clone import PATIENCE, TOP
from test_run_slurm import suite  # noqa: F401

from siteproof.record.point import folder_of

pytest_plugins = ["testbed_fixture"]
pytestmark = [pytest.mark.testbed, pytest.mark.tool("ReFrame", "Slurm")]
SWEEP = """\
description: Messages of MPI between two nodes, and within one
tool: messages
axes: {{tasks: [2], tasks_per_node: [{per_node}], size: [64]}}
against: size
order: ascending
repetitions: {repetitions}
point_limit: 15s
"""
PYTHON = sys.executable  # mpi4py is its module


class Swept:
    """A sweep of one's own over the nodes of the test bed."""

    def __init__(self, suite, per_node="1", repetitions=2):  # noqa: F811
        self.suite = suite
        self.folder = suite.folder / "sweeps"
        self.folder.mkdir()
        (self.folder / "my_messages.yaml").write_text(
            SWEEP.format(per_node=per_node, repetitions=repetitions)
        )
        self.words = ("-c", "sweeps/", "-n", "^MyMessages")
        self.before = f"SITEPROOF_SWEEPS='{self.folder}'"

    def python(self, fault):
        """What every rank runs first."""
        self.suite.likwid(f'{fault}\nexec {PYTHON} "$@"', name="python3")

    def run(self, *words):
        return self.suite.reframe(*self.words, *words, before=self.before)

    def start(self):
        return self.suite.start(*self.words, before=self.before)

    def wait_for_point(self, number):
        """Until a point is under way."""
        self.suite.wait_for(
            lambda: [*self.suite.data.glob(f"stage/**/raw/.{folder_of(number)}.1/run.1")]
        )

    def latencies(self):
        """(tasks a node, trial) of the points with figures."""
        return {
            (s.dims["tasks_per_node"], s.trial)
            for s in self.suite.samples()
            if s.metric == "MessageSweep.latency" and s.status == "ok"
        }

    def failed(self):
        return {
            (s.dims["tasks_per_node"], s.trial): (s.status, s.why)
            for s in self.suite.samples()
            if s.status != "ok"
        }


def test_a_hung_point_costs_itself_and_its_ranks_are_gone(suite):  # noqa: F811
    swept = Swept(suite, per_node="1, 2")
    swept.python('[ "$TRIAL,$TASKS_PER_NODE,${3:-}" != 1,1,pingpong ] || sleep 986')
    (swept.folder / "my_messages.yaml").write_text(
        (swept.folder / "my_messages.yaml").read_text().replace("15s", "10s")
    )
    done = swept.run()
    assert done.returncode == 1, done.stdout
    assert "MyMessages: 4 points in 2 jobs, on 2 nodes at most" in done.stdout
    assert swept.latencies() == {("2", 1), ("2", 2), ("1", 2)}
    assert swept.failed()["1", 1][0] == "timeout"
    assert {s.node for s in suite.samples()} == {""}
    assert {s.header.provenance["nodes"] for s in suite.samples()} == {"node001", "node[001-002]"}
    assert "sleep 986" not in suite.testbed.run(["ps", "-eo", "args"], node="node002").stdout
    assert suite.jobs() == []


def test_srun_options_of_the_site_take_effect_in_the_steps_of_a_sweep(suite):  # noqa: F811
    """In those that measure: a task's processors are an option that its step can see."""
    sites = suite.folder / "sites"
    shutil.copytree(TOP / "site-config/testbed", sites / "testbed")
    system = sites / "testbed/system.yaml"
    given = "    scheduler: slurm\n"
    assert given in system.read_text()
    options = f"{given}    srun_options: [--cpus-per-task=1]\n"
    system.write_text(system.read_text().replace(given, options))
    swept = Swept(suite, repetitions=1)
    swept.before += f" SITEPROOF_SITES='{sites}'"
    seen = suite.folder / "seen"
    swept.python(f'echo "${{SLURM_STEP_ID:+step}} ${{SLURM_CPUS_PER_TASK:-}}" >>"{seen}"')
    done = swept.run()
    assert done.returncode == 0, done.stdout
    assert {line for line in seen.read_text().splitlines() if "step" in line} == {"step 1"}


def test_a_cancelled_sweep_keeps_its_points_and_resumes_at_the_rest(suite):  # noqa: F811
    swept = Swept(suite, repetitions=3)
    process = swept.start()
    swept.wait_for_point(2)
    suite.testbed.run(["scancel", "--user=root"])
    out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1, out
    first = swept.latencies()
    assert ("1", 1) in first and ("1", 3) not in first
    assert {status for status, _ in swept.failed().values()} == {"interrupted"}
    done = swept.run("-S", "resume=last")
    assert done.returncode == 0, done.stdout
    assert f"MyMessages: {3 - len(first)} point" in done.stdout
    assert swept.latencies() == {("1", 1), ("1", 2), ("1", 3)}
    files = sorted((suite.data / "perflogs").glob("*/*/*MessageSweep*.jsonl"))
    newest = json.loads(files[-1].read_text().splitlines()[0])
    assert newest["provenance"]["resumes"] == files[0].name.partition(".")[0]


def test_a_node_that_loses_power_is_replaced_for_the_points_that_are_missing(suite, testbed):  # noqa: F811
    swept = Swept(suite)
    swept.python('[ "$TRIAL,$SITEPROOF_ATTEMPT" != 2,1 ] || sleep 3')
    process = swept.start()
    swept.wait_for_point(2)
    testbed.power_off("node002")
    try:
        out, _ = process.communicate(timeout=PATIENCE)
    finally:
        testbed.power_on("node002")
    assert process.returncode == 0, out
    assert "submitting node[001,003] once more" in out
    assert swept.latencies() == {("1", 1), ("1", 2)}
    assert {s.header.provenance["nodes"] for s in suite.samples()} == {
        "node[001-002]; node[001,003]"
    }
