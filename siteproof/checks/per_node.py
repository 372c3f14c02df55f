"""PerNodeCheck: every node of a partition measures itself, in one job a chunk.

ApplicationCheck: a program of users on all cores of each node, whose answer is known.

OnGpus: what checks of GPUs share: on which nodes they run, and that their jobs get all GPUs.

ServiceCheck: a service used as its users do, step by step, from this machine or from a node.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import reframe as rfm
from ClusterShell.NodeSet import NodeSet
from reframe.core.builtins import parameter, run_after, run_before, variable

from siteproof import nodesets
from siteproof.checks import missing, selection, session
from siteproof.checks.job import DERIVED_LIMIT, LOCAL, MARGIN, JobCheck
from siteproof.checks.selection import CHUNK
from siteproof.errors import UserError
from siteproof.record.manifest import OfItsKind
from siteproof.record.samples import Sample
from siteproof.services import runner, steps
from siteproof.sites import Site, job_keys
from siteproof.sites.service_keys import SLURM
from siteproof.slurm import client
from siteproof.slurm.records import Node, unusable

if TYPE_CHECKING:
    from siteproof.checks.job import JobCheck as Base
else:
    Base = rfm.RegressionTestPlugin


def chunks() -> int:
    """How many jobs a check needs on the largest partition of the active site."""
    active = session.current()
    return max((jobs_of(active.measured_on(n)) for n in active.site.system.partitions), default=1)


def jobs_of(roles: Iterable[str]) -> int:
    """How many jobs all nodes of these roles need."""
    site = session.current().site
    return sum(math.ceil(site.size(role) / CHUNK) for role in roles)


class PerNodeCheck(JobCheck, special=True):
    """One quantity measured by every node on its own."""

    if chunks() > 1:
        chunk = parameter(range(chunks()))
    else:
        chunk = variable(int, value=0)

    runs_on_node = "node.sh"

    def places(self) -> list[str]:
        """Partitions with nodes for this chunk; `-S nodes` with unknown nodes is refused."""
        active = session.current()
        here = [name for name in active.site.system.partitions if active.measured_on(name)]
        numbers = self.on_each_partition(lambda name: len(self.select(active.site, name, {})))
        filled = [name for name, number in numbers.items() if number > self.chunk]
        may_skip = self.nodes == nodesets.MISSING or not numbers
        if not filled and may_skip and not self.chunk:
            # It SKIPs with the reason: a check that ReFrame does not list would look broken.
            return list(numbers) or here
        if not filled:
            self.skip("fewer nodes are selected")
        return filled

    def select(self, site: Site, partition: str, states: Mapping[str, Node]) -> list[list[str]]:
        """The nodes of each job on what `-S nodes` selects of a partition. Raises UserError."""
        roles = self.roles_on(partition)
        if self.nodes != nodesets.MISSING:
            # Found once a session: 10,000 nodes are 157 jobs of each check.
            known, key = session.current().selected, (tuple(roles), self.nodes, bool(states))
            if key not in known:
                each = [site.expected(role) for role in roles]
                known[key] = selection.jobs(self.selected(partition, states), each)
            return known[key]
        if partition not in self.lacking:
            found = nodesets.of(missing.nodes(site, roles, self.planned()))
            self.lacking = {**self.lacking, partition: str(found)}
        lacking = nodesets.parse(self.lacking[partition])
        return selection.jobs(lacking, [site.expected(role) for role in roles])

    def nodes_on(self, partition: str) -> int:
        """Those of its chunk."""
        try:
            jobs = self.select(session.current().site, partition, {})
        except UserError:  # of another partition
            return 0
        return len(jobs[self.chunk]) if self.chunk < len(jobs) else 0

    def expected_nodes(self) -> NodeSet:
        """This chunk of the nodes that `-S nodes` selects."""
        by_state = self.on_slurm and not self.is_dry_run() and selection.needs_states(self.nodes)
        try:
            # What is idle is decided once: this session's own first job makes the nodes busy.
            looked = client.first_look() if by_state else {}
            selected = self.select(self.site, self.current_partition.name, looked)
        except UserError as error:  # nodes of another partition, or fewer idle ones than requested
            self.skip(str(error))
        if self.chunk >= len(selected):
            whole = self.nodes == nodesets.MISSING
            self.skip("nothing is missing" if whole else "no node left for this chunk")
        chosen = nodesets.of(selected[self.chunk])
        if session.current().continued:
            roles = self.roles_on(self.current_partition.name)
            left = missing.nodes(self.site, roles, self.planned(), restored=True)
            chosen = chosen & nodesets.of(left) or chosen
        return chosen


class ApplicationCheck(PerNodeCheck, special=True):
    """The rate of an application on one node.

    A check defines, in addition to what PerNodeCheck needs: `problems`, by mode what its script
    reads of the problem's size; `solved`, by mode the conditions that its output must then have;
    `references`, of a metric the known answer and its tolerance, both in the metric's unit.
    """

    derive = "apps.application"
    steering = job_keys.OF_LIBRARIES
    clean = True
    shared_scripts = (*PerNodeCheck.shared_scripts, "mpi.sh", "application.sh")
    time_limit = DERIVED_LIMIT

    minutes: Mapping[str, int] = {"quick": 5, "maintenance": 20, "acceptance": 60}  # of a node
    problems: Mapping[str, Mapping[str, str]] = {}
    solved: Mapping[str, Mapping[str, str]] = {}
    references: Mapping[str, tuple[str, str]] = {}

    @run_after("init")
    def choose_time_limit(self) -> None:
        """By the mode, where the user sets none."""
        if self.derives_limit():
            self.time_limit = f"{self.minutes[self.mode]}m"

    def settings(self) -> dict[str, str]:
        """The size of the problem, and the node's cores where the site knows them."""
        return {**self.problems[self.mode], **self.hardware_variables()}

    def facts(self) -> dict[str, object]:
        """The cores, what must have been solved, and the known answers."""
        return {**self.hardware_facts(), **self.answer(self.mode)}

    @classmethod
    def answer(cls, mode: str) -> dict[str, object]:
        """What must have been solved in a mode, and the known answers."""
        return {
            "solved": dict(cls.solved.get(mode, {})),
            "references": {metric: list(known) for metric, known in cls.known(mode).items()},
        }

    @classmethod
    def known(cls, mode: str) -> Mapping[str, tuple[str, str]]:
        """The known answers, and their tolerances."""
        return cls.references


SCRIPTS = ("gpu.sh", "other_tools.sh")


class OnGpus(Base):
    """Mixed into a check, before its other base class.

    It runs where the hardware states GPUs. This machine alone, which a site may know little of,
    is asked in any case, and SKIPs with its reason.
    """

    no_role = variable(str, value="the site states no GPUs of these nodes")  # for the plan

    def roles_on(self, partition: str) -> list[str]:
        """Those of the roles that have GPUs."""
        site = session.current().site
        here = super().roles_on(partition)
        if site.partition(partition).scheduler == LOCAL:
            return here
        return [role for role in here if site.hardware_of(role).gpus]

    def expected_nodes(self) -> NodeSet:
        """As the other base class has it; without a GPU the test SKIPs."""
        if not self.roles_on(self.current_partition.name):
            self.skip(
                f"no GPU: no hardware of {self.current_partition.fullname} has "
                "'devices: {gpu: {count: …}}' in system.yaml"
            )
        return super().expected_nodes()

    def settings(self) -> dict[str, str]:
        """How many GPUs a node has by the site; 0: it does not state it."""
        return {**super().settings(), "GPUS": str(self.hardware.gpus)}

    def pin(self, nodes: NodeSet) -> None:
        """With all GPUs of the nodes, which Slurm may otherwise keep from the job."""
        self.num_gpus_per_node = self.hardware.gpus or None
        super().pin(nodes)


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
