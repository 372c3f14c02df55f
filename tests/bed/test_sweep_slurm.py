"""Sweeps on a real Slurm cluster: real ranks, a hung point, a cancelled job, a lost node."""

import json
import sys

import pytest
from bed_suite import finish
from clone import before_others
from testbed_fixture import until

from siteproof.record.manifest import folder_of

pytestmark = [pytest.mark.testbed, pytest.mark.tool("ReFrame", "Slurm")]
SWEEP = """\
description: Messages of MPI between two nodes, and within one
tool: messages
axes: {{tasks: [2], tasks_per_node: [{per_node}], size: [64]}}
against: size
order: ascending
repetitions: {repetitions}
point_limit: {limit}
"""
PYTHON = sys.executable  # mpi4py is its module
AT_ONCE = " ".join(before_others())  # a busy machine would slow each message


class Swept:
    """A sweep of one's own over the nodes of the test bed."""

    def __init__(self, suite, per_node="1", repetitions=2, limit="60s"):
        self.suite = suite
        self.folder = suite.folder / "sweeps"
        self.folder.mkdir()
        text = SWEEP.format(per_node=per_node, repetitions=repetitions, limit=limit)
        (self.folder / "my_messages.yaml").write_text(text)
        self.where = {"before": f"SITEPROOF_SWEEPS='{self.folder}'", "checks": "sweeps/"}

    def python(self, fault):
        """What every rank runs first."""
        self.suite.likwid(f'{fault}\nexec {AT_ONCE} {PYTHON} "$@"', name="python3")

    def run(self, *words):
        return self.suite.reframe("-n", "^MyMessages", *words, **self.where)

    def start(self):
        return self.suite.start("-n", "^MyMessages", **self.where)

    def until_point(self, number):
        """Wait until a point is under way."""
        begun = f"stage/**/raw/.{folder_of(number)}.1/run.1"
        until(lambda: [*self.suite.data.glob(begun)], f"point {number}", self.latencies)

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


def test_a_hung_point_costs_itself_and_options_of_the_site_reach_the_steps(suite):
    """Those that measure: a task's processors are an option that its step can see."""
    given = "    scheduler: slurm\n"
    suite.edit("system.yaml", (given, f"{given}    srun_options: [--cpus-per-task=1]\n"))
    swept = Swept(suite, per_node="1, 2", limit="20s")
    seen = suite.folder / "seen"
    swept.python(
        f'echo "${{SLURM_STEP_ID:+step}} ${{SLURM_CPUS_PER_TASK:-}}" >>"{seen}"\n'
        '[ "$TRIAL,$TASKS_PER_NODE,${3:-}" != 1,1,pingpong ] || sleep 986'
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
    assert {line for line in seen.read_text().splitlines() if "step" in line} == {"step 1"}


def test_a_cancelled_sweep_keeps_its_points_and_resumes_at_the_rest(suite):
    swept = Swept(suite, repetitions=3)
    go = suite.folder / "go"
    wait = f"until [ -e '{go}' ]; do sleep 0.1; done"
    swept.python(f'[ "$TRIAL,${{3:-}}" != 2,pingpong ] || {wait}')
    process = swept.start()
    swept.until_point(2)
    suite.testbed.run(["scancel", "--user=root"])
    out = finish(process)
    assert process.returncode == 1, out
    first = swept.latencies()
    assert ("1", 1) in first and ("1", 3) not in first
    assert {status for status, _ in swept.failed().values()} == {"interrupted"}
    go.touch()
    done = swept.run("-S", "resume=last")
    assert done.returncode == 0, done.stdout
    assert f"MyMessages: {3 - len(first)} point" in done.stdout
    assert swept.latencies() == {("1", 1), ("1", 2), ("1", 3)}
    files = sorted((suite.data / "perflogs").glob("*/*/*MessageSweep*.jsonl"))
    newest = json.loads(files[-1].read_text().splitlines()[0])
    assert newest["provenance"]["resumes"] == files[0].name.partition(".")[0]


@pytest.mark.long
def test_a_node_that_loses_power_is_replaced_for_the_points_that_are_missing(suite, testbed):
    swept = Swept(suite, limit="60s")
    swept.python('[ "$TRIAL,$SITEPROOF_ATTEMPT,${3:-}" != 2,1,pingpong ] || sleep 1000')
    process = swept.start()
    swept.until_point(2)
    testbed.power_off("node002")
    try:
        out = finish(process)
    finally:
        testbed.power_on("node002")
    assert process.returncode == 0, out
    assert "submitting node[001,003] once more" in out
    assert swept.latencies() == {("1", 1), ("1", 2)}
    assert {s.header.provenance["nodes"] for s in suite.samples()} == {
        "node[001-002]; node[001,003]"
    }
