"""Slurm: what its users rely on, proved by small jobs of one's own."""

import reframe as rfm
from reframe.core.builtins import parameter, run_after

from siteproof.checks import ServiceCheck, per_node
from siteproof.parsers import service
from siteproof.record.samples import TOOL_MISSING, Sample
from siteproof.units import count

JOBS = {"acceptance": 1000}  # of `throughput`, where the site states no number
OTHERS = 25  # jobs of all other cases, at most


@rfm.simple_test
class Scheduler(ServiceCheck):
    """Each service of kind slurm: limits, arrays, dependencies, and so on, a step a case."""

    descr = "What users rely on of Slurm, and its accounting"
    tags = {"system"}
    script = "../service/service.sh"
    parsers = {"service": service}
    metrics = ("failures", "seconds")
    headline = ("failures",)

    of_kind = " of kind slurm"
    service = parameter(per_node.names(of_slurm=True))

    @run_after("init")
    def count_jobs(self) -> None:
        """For the plan."""
        if self.service:
            self.cost = count(self.number() + OTHERS, "small job")

    def number(self) -> int:
        """How many jobs `throughput` submits."""
        return JOBS.get(self.mode, 0) if self.entry.jobs is None else self.entry.jobs

    def of_run(self) -> dict[str, object]:
        """That number, which may depend on the mode."""
        return {"jobs": self.number()}

    def without_value(self) -> list[Sample]:
        """A case for which Slurm is not configured is no failure of the others."""
        failed = super().without_value()
        return [s for s in failed if s.status != TOOL_MISSING or not s.metric.endswith(".seconds")]
