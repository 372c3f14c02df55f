"""ServiceCheck: a service used as its users do, step by step, from this machine or from a node."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from ClusterShell.NodeSet import NodeSet
from reframe.core.builtins import parameter, run_after, run_before, variable

from siteproof import nodesets
from siteproof.checks import session
from siteproof.checks.job import LOCAL, MARGIN, JobCheck
from siteproof.record.manifest import OfItsKind
from siteproof.record.samples import Sample
from siteproof.services import runner, steps
from siteproof.sites.service_keys import SLURM
from siteproof.slurm import client
from siteproof.slurm.records import unusable

HERE = "here"  # the machine on which ReFrame runs, in the raw files; no node of the site


def names(*, of_slurm: bool = False) -> list[str]:
    """The site's services, or those of kind slurm.

    One without a name stands for none, and SKIPs.
    """
    known = session.current().site.system.services.items()
    return [name for name, one in known if (one.kind == SLURM) == of_slurm] or [""]


def settings(stage: str) -> dict[str, str]:
    """The Python that has Siteproof, and where the test is written down."""
    return {"SITEPROOF_PYTHON": sys.executable, "SITEPROOF_STAGE": stage}


def run_here(check: JobCheck, nodes: Callable[[], NodeSet]) -> None:
    """Let a check run on this machine, whose scheduler is not used. nodes: what stands for it."""
    check.on_slurm = check.in_batch = False
    check.allocated = None
    check.role = ""
    check.usable = nodes()
    check.plan = check.make_plan(check.usable, {})


class ServiceCheck(JobCheck, special=True):
    """One service of the site, for each entry of `services` in its system.yaml.

    How a kind of service is used is a module of siteproof.services.
    """

    of_kind = ""
    service = parameter(names())
    unfit = variable(str, value="")  # why this service is not tested, for the plan
    written = variable(float, value=0.0)  # gigabytes at the far end, for the plan
    cost = variable(str, value="")  # what a test costs, for the plan
    time_limit = "1s"  # follows from the steps

    runs_on_node = "node.sh"
    exclusive_access = False

    def places(self) -> list[str]:
        """The service's partition; without one the first, whose scheduler is not used."""
        site = session.current().site
        if not self.service:
            self.unfit = f"the site names no services{self.of_kind}"
            return list(site.system.partitions)
        self.entry = site.system.services[self.service]
        self.unfit = self.entry.refusal or runner.lacking(self.entry.kind)
        self.local = self.entry.partition is None
        self.answered = self.is_answered()
        self.written = self.entry.bytes_written / 10**9
        self.cost = self.entry.price_of_test
        if self.derives_limit():
            steps_ = self.entry.most_steps
            self.time_limit = f"{int(steps_ * self.entry.timeout.to('s')) + 2 * MARGIN}s"
        return [self.entry.partition or next(iter(site.system.partitions))]

    @run_after("setup")
    def choose_nodes(self) -> None:
        """This machine, or the first node of the partition that can take a job."""
        if self.unfit:
            self.skip(self.unfit)
        if self.answered:
            self.skip("nothing is missing")
        if not self.local and self.where.scheduler != LOCAL:
            super().choose_nodes()
        else:
            run_here(self, lambda: nodesets.of([HERE]))

    def expected_nodes(self) -> NodeSet:
        """The first node that can take a job; the first one of all where none can."""
        known = self.site.nodes_of(self.current_partition.name)
        states = {} if self.is_dry_run() else client.recent_states()
        able = known - nodesets.of(unusable(known, states)) if states else known
        return nodesets.of([(able or known)[0]])

    def where_of(self) -> dict[str, str]:
        """Only criteria on this service are answered."""
        return {"service": self.service}

    def plan_of_its_kind(self) -> OfItsKind:
        """The service, which each sample has as a condition."""
        conditions = {"service": self.service, "kind": self.entry.kind}
        return {"service": self.service, "conditions": conditions}

    def settings(self) -> dict[str, str]:
        """The Python that has Siteproof."""
        return settings(self.stagedir)

    def of_run(self) -> dict[str, object]:
        """Keys of the service's entry that this run decides."""
        return {}

    @run_before("run")
    def write_service(self) -> None:
        """What `python -m siteproof.services` reads."""
        mark = steps.mark(session.current().name, self.service)
        text = runner.written(self.site, self.service, mark, **self.of_run())
        self.place("service.json", [text], mode=0o600)

    def parts_missing(self, failed: Sequence[Sample]) -> str:
        """The first steps that failed, each with its reason."""
        return "; ".join(f"{s.dims.get('step', 'service')}: {s.why} ({s.status})" for s in failed)
