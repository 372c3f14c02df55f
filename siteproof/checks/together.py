"""TogetherCheck: one program of MPI whose ranks run on many nodes at once, a rank a node."""

from __future__ import annotations

from collections.abc import Mapping

from ClusterShell.NodeSet import NodeSet
from reframe.core.builtins import variable

from siteproof.answers import required
from siteproof.checks import session
from siteproof.checks.sweep import SweepCheck
from siteproof.record.manifest import Manifest
from siteproof.record.samples import SWITCHES
from siteproof.slurm import client


class TogetherCheck(SweepCheck, special=True):
    """A check over all nodes of a partition that can take a job.

    A check defines, in addition to what SweepCheck needs: `fewest` nodes that it needs; `growing`,
    whether it also runs on 2, 4, 8, ... of them (and on 1, where that is enough).
    """

    program = variable(str, value="")  # of `parsers`; empty: the first that is installed
    tags = {"network"}
    shared_scripts = (*SweepCheck.shared_scripts, "messages.sh", "mpi_together.py")
    fewest = 2
    growing = False
    seconds_of_point = {"quick": 60, "maintenance": 120, "acceptance": 300}
    iterations_of: Mapping[str, int] = {"quick": 50, "maintenance": 100, "acceptance": 400}

    def standard_points(self) -> list[Mapping[str, str]]:
        """The whole of each partition, the numbers of nodes that criteria name, and 2, 4, 8, ..."""
        counts = self.whole_counts()
        points = required.points(session.current().site, self.planned_job())
        named = {int(values["tasks"]) for values in points if "tasks" in values}
        if self.growing:
            powers = range(self.fewest.bit_length() - 1, max(counts, default=0).bit_length())
            named |= {2**power for power in powers}
        self.whole, self.named = counts, named
        nodes = sorted(counts | named)
        return [{"tasks": str(count)} for count in nodes if count >= self.fewest]

    def make_plan(self, nodes: NodeSet, lost: dict[str, str]) -> Manifest:
        """With the switches of Slurm's topology.conf and their nodes."""
        plan = super().make_plan(nodes, lost)
        there = client.switches() if self.on_slurm and not self.is_dry_run() else {}
        own = {name: below & nodes for name, below in there.items()}
        named = " ".join(f"{name}={below}" for name, below in own.items() if below)
        if named:
            plan.provenance[SWITCHES] = named
        return plan

    def settings(self) -> dict[str, str]:
        """Which program, and how often it repeats."""
        iterations = self.iterations_of[self.mode]
        return {**super().settings(), "PROGRAM": self.program, "ITERATIONS": str(iterations)}
