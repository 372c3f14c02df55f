"""The check Scheduler on a real Slurm cluster: what holds, what does not, and nothing is left."""

import pytest

pytestmark = [pytest.mark.testbed, pytest.mark.tool("ReFrame", "Slurm")]
SERVICE = """
services:
  batch: {{kind: slurm, address: compute, timeout: 5 min, jobs: 20, cases: [{}]}}
"""
NO_LIMITS = "Slurm is not configured to enforce limits on memory"
CRITERION = """
TB-SLURM:
  description: Slurm keeps what its users rely on
  metric: Scheduler.failures
  subject: service
  equals: 0 count
  conditions: {service: batch, mode: [quick]}
  source: a test
"""


def test_limits_that_are_not_enforced_fail_and_what_works_does_not(suite):
    cases = "array, dependency, heterogeneous, cores, accounting, memory, throughput"
    for file, more in (("system.yaml", SERVICE.format(cases)), ("criteria.yaml", CRITERION)):
        path = suite.own_site() / file
        path.write_text(path.read_text() + more)
    done = suite.reframe("-n", "Scheduler")
    assert done.returncode == 1, done.stdout + done.stderr
    failed = {s.dims["step"]: s.why for s in suite.samples() if s.status == "invalid"}
    assert failed.keys() == {"cores", "memory"}
    assert failed["memory"].endswith("COMPLETED, not OUT_OF_MEMORY; " + NO_LIMITS)
    (failures,) = [s for s in suite.samples() if s.metric == "Scheduler.failures"]
    assert failures.value == 2
    (rate,) = [s for s in suite.samples() if s.metric == "Scheduler.start_rate"]
    assert rate.value > 0 and rate.conditions["jobs"] == "20"
    assert suite.testbed.run(["squeue", "-h"]).stdout == ""
    verdict = suite.siteproof("verdict")
    assert verdict.returncode == 1 and "TB-SLURM" in verdict.stdout
