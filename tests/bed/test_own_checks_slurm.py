"""Plain ReFrame tests on a real Slurm cluster: of one node, of several, and ended by the clock."""

import json

import pytest
from bed_suite import Suite

pytestmark = [pytest.mark.testbed, pytest.mark.tool("ReFrame", "Slurm")]

TESTS = """
import reframe as rfm
import reframe.utility.sanity as sn


class Base(rfm.RunOnlyRegressionTest):
    valid_systems = ["*"]
    valid_prog_environs = ["system"]
    executable = "echo rate 5.5 on"
    executable_opts = ["$SLURMD_NODENAME"]
    time_limit = "1m"

    @sanity_function
    def ran(self):
        return sn.assert_found("rate", self.stdout)

    @performance_function("GB/s")
    def rate(self):
        return sn.extractsingle(r"rate (\\S+)", self.stdout, 1, float)


@rfm.simple_test
class OneNode(Base):
    @run_after("setup")
    def as_eessi_does(self):
        processor = self.current_partition.processor
        self.num_cpus_per_task = processor.num_cpus // processor.num_sockets


@rfm.simple_test
class TwoNodes(Base):
    num_tasks = 2

    @run_before("run")
    def spread(self):
        self.job.options = ["--nodes=2"]


@rfm.simple_test
class Hangs(Base):
    executable = "sleep 600"
    executable_opts = []
"""
CATALOGUE = """
OneNode.rate: {description: d, check: OneNode, file: own.py, unit: MB/s, better: higher}
TwoNodes.rate: {description: d, check: TwoNodes, file: own.py, unit: MB/s, better: higher}
Hangs.rate: {description: d, check: Hangs, file: own.py, unit: MB/s, better: higher}
"""
CRITERIA = """
ONE: {description: d, metric: OneNode.rate, at_least: 5 GB/s, source: s, conditions: {mode: quick}}
TWO: {description: d, metric: TwoNodes.rate, at_least: 5 GB/s, source: s, subject: system,
  scope: system, conditions: {mode: quick}}
HANGS: {description: d, metric: Hangs.rate, at_least: 5 GB/s, source: s, subject: system,
  scope: system, conditions: {mode: quick}}
"""


class Own(Suite):
    """The suite with tests of the site's own."""

    def __init__(self, testbed, folder):
        super().__init__(testbed, folder)
        site = self.own_site()
        self.edit("system.yaml", ("\nlinks:\n", "\nchecks: [own]\nlinks:\n"))
        (site / "criteria.yaml").write_text(CRITERIA)
        (site / "own").mkdir()
        (site / "own/own.py").write_text(TESTS)
        (site / "own/catalogue.yaml").write_text(CATALOGUE)

    def kept(self):
        """Each metric's line and the head of its file."""
        found = {}
        for path in (self.data / "perflogs/testbed/compute").glob("*.jsonl"):
            head, *lines = map(json.loads, path.read_text().splitlines())
            found |= {line["metric"]: (line, head) for line in lines}
        return found

    def verdicts(self):
        judged = json.loads(self.siteproof("verdict", "--json").stdout)
        return {one["id"]: one["verdict"] for one in judged["criteria"]}


@pytest.fixture
def own(testbed, tmp_path):
    made = Own(testbed, tmp_path)
    yield made
    made.end()


def test_plain_tests_of_jobs_are_judged(own):
    done = own.reframe("-n", "OneNode|TwoNodes")
    assert done.returncode == 0, done.stdout + done.stderr
    (one, first), (two, second) = (own.kept()[f"{name}.rate"] for name in ("OneNode", "TwoNodes"))
    assert (one["value"], one["node"]) == ("5.5", first["expected"])
    assert first["conditions"]["num_cpus_per_task"] == "1"  # of the site's hardware
    assert (two["value"], two["node"]) == ("5.5", "")
    assert second["expected"].startswith("node[")
    # One node of eight is measured by a test that takes whichever is free.
    assert own.verdicts() == {"ONE": "INCOMPLETE", "TWO": "PASS", "HANGS": "INCOMPLETE"}
    assert "5.5 GB/s" in own.siteproof("why", "TWO").stdout


@pytest.mark.long
def test_a_plain_test_that_slurm_ends_at_its_limit_is_a_timeout(own):
    done = own.reframe("-n", "Hangs")
    assert done.returncode == 1, done.stdout + done.stderr
    assert own.kept()["Hangs.rate"][0]["status"] == "timeout"
    assert own.verdicts()["HANGS"] == "INCOMPLETE"
