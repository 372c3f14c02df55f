"""Which nodes `-S nodes` selects, how many one job may have, and why points are left out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ClusterShell.NodeSet import NodeSet

from siteproof import nodesets
from siteproof.errors import UserError
from siteproof.record.manifest import Point
from siteproof.sites.system import Partition
from siteproof.slurm import client
from siteproof.slurm.records import Node, unusable

CHUNK = 64  # nodes of one job: what is lost at most with its batch host
MAX_DIGITS = 9  # of a count
OPTION = "-S nodes"
ALL = "all"  # the walk of a check that is no sweep: all of its points in one job
TOO_FEW = "because there are too few nodes"
UNSHARED = "because there are too few nodes, or they share no file system"
NO_FILE_SYSTEM = "because the site names no file_systems"


def is_count(spec: str) -> bool:
    """Whether it is a number of nodes."""
    return spec.isascii() and spec.isdigit()


def count_of(spec: str) -> int:
    """The number; of more digits than any system has nodes, their beginning."""
    return int(spec[:MAX_DIGITS])


def needs_states(spec: str) -> bool:
    """Whether it selects idle nodes only."""
    return spec == "idle" or is_count(spec)


def select(spec: str, inventory: NodeSet, states: Mapping[str, Node] | None = None) -> NodeSet:
    """The nodes that `-S nodes=SPEC` selects: all, idle, a count, or a node set.

    `missing` selects all: each check finds out which of them it lacks (siteproof.checks.missing).
    A count takes the first idle nodes; without states, all are idle. Raises UserError for anything
    else.
    """
    if spec in ("all", nodesets.MISSING):
        return inventory
    if needs_states(spec):
        idle = inventory
        if states:
            idle = nodesets.of(n for n in inventory if n in states and states[n].state.idle)
        return idle if spec == "idle" else _first(count_of(spec), idle, inventory)
    try:
        wanted = nodesets.parse(spec)
    except ValueError as error:
        raise _refused(f"'{spec}' is not a node set ({error})", inventory) from None
    unknown = wanted - inventory
    if unknown or not wanted:
        raise _refused(f"{unknown or 'nothing'} is not in the inventory", inventory)
    return wanted


def jobs(nodes: NodeSet, roles: Sequence[NodeSet]) -> list[list[str]]:
    """The nodes of each job, at most CHUNK and of one role: what depends on it is one for a job.

    roles: the nodes of each. A node of two roles is measured as one of the first.
    """
    found = []
    for role in roles:
        here = nodes & role
        nodes = nodes - here
        names = list(here)
        found += [names[begin : begin + CHUNK] for begin in range(0, len(names), CHUNK)]
    return found


def usable(where: Partition, chosen: NodeSet) -> int:
    """How many of the nodes that were chosen of a partition can take a job now.

    If Slurm does not answer, all of them: the run itself will report it.
    """
    if where.scheduler == "local":
        return 1
    try:
        return len(chosen) - len(unusable(chosen, client.first_look()))
    except UserError:
        return len(chosen)


def narrowed(points: Mapping[int, Point], others: Collection[int]) -> dict[int, Point]:
    """Without the points that are the whole of another partition.

    others: how many nodes these have, which are those that a point names, or else its tasks.
    """
    return {
        number: point
        for number, point in points.items()
        if int(point.values.get("nodes", point.tasks)) not in others
    }


def _first(count: int, idle: NodeSet, inventory: NodeSet) -> NodeSet:
    if not 0 < count <= len(inventory):
        what = f"{count} nodes requested, the inventory has {len(inventory)}"
        raise _refused(what, inventory)
    if count > len(idle):
        raise _refused(f"{count} nodes requested, {len(idle)} are idle", inventory)
    return idle[:count]


def _refused(what: str, inventory: NodeSet) -> UserError:
    # The text of a set of 10,000 nodes takes 20 ms: it is made for a mistake only.
    allowed = f"all, idle, missing, a count, or a node set within {inventory}"
    return UserError(OPTION, what, allowed)
