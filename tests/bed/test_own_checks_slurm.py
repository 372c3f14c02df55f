"""Plain ReFrame tests on a real Slurm cluster: of one node, of several, and ended by the clock."""

import json

import pytest
from clone import TOP

pytest_plugins = ["testbed_fixture"]
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


def test_plain_tests_of_jobs_are_judged(testbed, tmp_path):
    site = tmp_path / "sites/testbed"
    site.mkdir(parents=True)
    text = (TOP / "site-config/testbed/system.yaml").read_text()
    (site / "system.yaml").write_text(f"{text}\nchecks: [own]\n")
    (site / "criteria.yaml").write_text(CRITERIA)
    (site / "baselines.yaml").write_text("system: testbed\n")
    (site / "own").mkdir()
    (site / "own/own.py").write_text(TESTS)
    (site / "own/catalogue.yaml").write_text(CATALOGUE)
    data = tmp_path / "data"
    data.mkdir()

    def run(line):
        where = f"export SITEPROOF_SITES='{tmp_path}/sites' SITEPROOF_DATA='{data}'"
        return testbed.run(["sh", "-c", f"cd '{TOP}' && . ./activate && {where} && {line}"])

    done = run("reframe -c checks/ -r --mode quick -n 'OneNode|TwoNodes|Hangs'")
    assert done.returncode == 1, done.stdout + done.stderr  # the one that hangs
    found = {}
    for path in (data / "perflogs/testbed/compute").glob("*.jsonl"):
        head, *lines = map(json.loads, path.read_text().splitlines())
        found |= {line["metric"]: (line, head) for line in lines}
    (one, first), (two, second), (hangs, _) = (
        found[f"{name}.rate"] for name in ("OneNode", "TwoNodes", "Hangs")
    )
    assert (one["value"], one["node"]) == ("5.5", first["expected"])
    assert first["conditions"]["num_cpus_per_task"] == "1"  # of the site's hardware
    assert (two["value"], two["node"]) == ("5.5", "")
    assert second["expected"].startswith("node[")
    assert hangs["status"] == "timeout"
    judged = json.loads(run("siteproof verdict --json").stdout)
    verdicts = {one["id"]: one["verdict"] for one in judged["criteria"]}
    # One node of eight is measured by a test that takes whichever is free.
    assert verdicts == {"ONE": "INCOMPLETE", "TWO": "PASS", "HANGS": "INCOMPLETE"}
    assert "5.5 GB/s" in run("siteproof why TWO").stdout
