"""Mistakes in links: nodes that nobody knows, nodes that no job reaches, and no pair at all."""

from __future__ import annotations

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

from siteproof.sites import nodesets
from siteproof.sites.lint import clip_problem, known, reference
from siteproof.sites.model import Link, System
from siteproof.sites.shape import hint
from siteproof.sites.yamlfile import Document, clip


def lint_links(document: Document, system: System) -> None:
    """Check the links of system.yaml, as far as the inventory has no mistake."""
    roles = system.nodes.values() if known(document, "nodes") else ()
    sound = roles and not any(nodesets.problems(role.set) for role in roles)
    for key, link in system.links.items():
        loc = ("links", key, "partition")
        reference(document, loc, link.partition, "partition", known(document, "partitions"))
        partition = system.partitions.get(link.partition)
        if partition and partition.scheduler != "slurm":
            with_jobs = [n for n, p in system.partitions.items() if p.scheduler == "slurm"]
            what = f"partition '{link.partition}' has no jobs, which can run on both ends"
            document.follow_up(loc, what, with_jobs or "a partition with 'scheduler: slurm'")
        if sound:
            _ends(document, system, key, link)


def _ends(document: Document, system: System, key: str, link: Link) -> None:
    """Servers and clients must be nodes of the link's partition, and two at least."""
    ends = [_end(document, system, key, link, end) for end in ("servers", "clients")]
    if ends[0] is None or ends[1] is None:
        return
    if len(ends[0] | ends[1]) < 2:
        what = f"{clip(ends[0])} is both server and client, so there is no pair"
        document.follow_up(("links", key, "clients"), what, "at least two nodes")


def _end(document: Document, system: System, key: str, link: Link, end: str) -> NodeSet | None:
    """The nodes of one end; None if it has a mistake."""
    loc, text = ("links", key, end), getattr(link, end)
    found = [] if text in system.nodes else nodesets.problems(text)
    for problem in found:
        document.follow_up(loc, clip_problem(problem))
    if found or document.spoilt(loc):
        return None
    nodes, inventory = system.members(text), NodeSet(resolver=RESOLVER_NOGROUP)
    for role in system.nodes.values():
        inventory.update(role.nodes)
    if strangers := nodes - inventory:
        what = f"{clip(strangers)} in no role{hint(text, system.nodes)}"
        document.follow_up(loc, what, [*system.nodes, "a set of their nodes"])
        return None
    partition = system.partitions.get(link.partition)
    reached = system.nodes.get(partition.role) if partition else None
    if reached and (strangers := nodes - reached.nodes):
        what = f"{clip(strangers)} not in partition '{link.partition}'"
        document.follow_up(loc, what, clip(reached.nodes))
        return None
    return nodes
