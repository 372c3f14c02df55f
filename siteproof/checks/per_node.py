"""PerNodeCheck: every node of a partition measures itself, in one job a chunk."""

from __future__ import annotations

import math

from ClusterShell.NodeSet import NodeSet
from reframe.core.builtins import parameter, variable

from siteproof.checks import loading, selection, session
from siteproof.checks.job import JobCheck
from siteproof.checks.selection import CHUNK
from siteproof.errors import UserError
from siteproof.slurm import client


def chunks() -> int:
    """How many jobs a check needs on the largest partition of the active site."""
    site = session.current().site
    sizes = [len(site.expected(p.role)) for p in site.system.partitions.values()]
    return math.ceil(max(sizes, default=1) / CHUNK)


class PerNodeCheck(JobCheck, special=True):
    """One quantity measured by every node on its own."""

    if chunks() > 1:
        chunk = parameter(range(chunks()))
    else:
        chunk = variable(int, value=0)

    runs_on_node = "node.sh"

    def places(self) -> list[str]:
        """Partitions with nodes for this chunk; `-S nodes` that names strangers is refused."""
        site = session.current().site
        sizes, errors = {}, []
        for name, partition in site.system.partitions.items():
            if partition.links_only:
                continue
            try:
                sizes[name] = len(selection.select(self.nodes, site.expected(partition.role), {}))
            except UserError as error:
                errors.append(error)
        if not sizes and errors:
            loading.refuse(errors[0])
        filled = [name for name, size in sizes.items() if size > self.chunk * CHUNK]
        if not filled:
            self.skip("fewer nodes were asked for")
        return filled

    def expected_nodes(self) -> NodeSet:
        """This chunk of what the inventory and `-S nodes` say."""
        inventory = self.site.expected(self.where.role)
        by_state = (
            self.on_slurm
            and not self.is_dry_run()
            and (self.nodes == "idle" or self.nodes.isdigit())
        )
        try:
            # What is idle is decided once: this session's own first job makes the nodes busy.
            looked = client.first_look() if by_state else {}
            selected = selection.select(self.nodes, inventory, looked)
        except UserError as error:  # nodes of another partition, or fewer idle ones than asked for
            self.skip(str(error))
        mine = selected[self.chunk * CHUNK : (self.chunk + 1) * CHUNK]
        if not mine:
            self.skip("no node left for this chunk")
        return mine
