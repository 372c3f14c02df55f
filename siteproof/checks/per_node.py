"""PerNodeCheck: every node of a partition measures itself, in one job a chunk."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ClusterShell.NodeSet import NodeSet
from reframe.core.builtins import parameter, variable

from siteproof import nodesets
from siteproof.checks import loading, missing, selection, session
from siteproof.checks.job import JobCheck
from siteproof.checks.selection import CHUNK
from siteproof.errors import UserError
from siteproof.sites import Site
from siteproof.slurm import client
from siteproof.slurm.records import Node


def chunks() -> int:
    """How many jobs a check needs on the largest partition of the active site."""
    site = session.current().site
    sizes = [site.size(p.role) for p in site.system.partitions.values()]
    return math.ceil(max(sizes, default=1) / CHUNK)


class PerNodeCheck(JobCheck, special=True):
    """One quantity measured by every node on its own."""

    if chunks() > 1:
        chunk = parameter(range(chunks()))
    else:
        chunk = variable(int, value=0)

    runs_on_node = "node.sh"

    def places(self) -> list[str]:
        """Partitions with nodes for this chunk; `-S nodes` with unknown nodes is refused."""
        site = session.current().site
        sizes, errors = {}, []
        for name, partition in site.system.partitions.items():
            if partition.links_only:
                continue
            try:
                sizes[name] = len(self.select(site, name, {}))
            except UserError as error:
                errors.append(error)
        if not sizes and errors:
            loading.refuse(errors[0])
        filled = [name for name, size in sizes.items() if size > self.chunk * CHUNK]
        if not filled and self.nodes == nodesets.MISSING and not self.chunk:
            return list(sizes)  # it SKIPs: a check that ReFrame does not list would look broken
        if not filled:
            self.skip("fewer nodes are selected")
        return filled

    def select(self, site: Site, partition: str, states: Mapping[str, Node]) -> list[str]:
        """The nodes of a partition that `-S nodes` selects, in order. Raises UserError."""
        role = site.partition(partition).role
        if self.nodes != nodesets.MISSING:
            # Found once a session: 10,000 nodes are 157 chunks of each check.
            known, key = session.current().selected, (partition, self.nodes, bool(states))
            if key not in known:
                known[key] = list(selection.select(self.nodes, site.expected(role), states))
            return known[key]
        if partition not in self.lacking:
            found = site.expected(role) & nodesets.of(missing.nodes(site, role, self.planned()))
            self.lacking = {**self.lacking, partition: str(found)}
        return list(nodesets.parse(self.lacking[partition]))

    def expected_nodes(self) -> NodeSet:
        """This chunk of the nodes that `-S nodes` selects."""
        by_state = self.on_slurm and not self.is_dry_run() and selection.needs_states(self.nodes)
        try:
            # What is idle is decided once: this session's own first job makes the nodes busy.
            looked = client.first_look() if by_state else {}
            selected = self.select(self.site, self.current_partition.name, looked)
        except UserError as error:  # nodes of another partition, or fewer idle ones than requested
            self.skip(str(error))
        chosen = nodesets.of(selected[self.chunk * CHUNK : (self.chunk + 1) * CHUNK])
        if not chosen:
            whole = self.nodes == nodesets.MISSING
            self.skip("nothing is missing" if whole else "no node left for this chunk")
        if session.current().continued:
            left = missing.of_session(self.site, self.where.role, self.planned())
            chosen = chosen & nodesets.of(left) or chosen
        return chosen
