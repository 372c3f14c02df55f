"""PerNodeCheck: every node of a partition measures itself, in one job a chunk.

ApplicationCheck: a program of users on all cores of each node, whose answer is known.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from ClusterShell.NodeSet import NodeSet
from reframe.core.builtins import parameter, run_after, variable

from siteproof import nodesets
from siteproof.checks import missing, selection, session
from siteproof.checks.job import DERIVED_LIMIT, JobCheck
from siteproof.checks.selection import CHUNK
from siteproof.errors import UserError
from siteproof.sites import Site, job_keys
from siteproof.slurm import client
from siteproof.slurm.records import Node


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
