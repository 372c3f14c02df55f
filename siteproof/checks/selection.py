"""Which nodes `-S nodes` selects, and how many of them one job may have."""

from __future__ import annotations

from collections.abc import Mapping

from ClusterShell.NodeSet import NodeSet

from siteproof import nodesets
from siteproof.errors import UserError
from siteproof.slurm.records import Node

CHUNK = 64  # nodes of one job: what is lost at most with its batch host
MAX_DIGITS = 9  # of a count
OPTION = "-S nodes"


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
    allowed = f"all, idle, missing, a count, or a node set within {inventory}"
    if spec in ("all", nodesets.MISSING):
        return inventory
    if needs_states(spec):
        idle = inventory
        if states:
            idle = nodesets.of(n for n in inventory if n in states and states[n].state.idle)
        return idle if spec == "idle" else _first(count_of(spec), idle, inventory, allowed)
    try:
        wanted = nodesets.parse(spec)
    except ValueError as error:
        raise UserError(OPTION, f"'{spec}' is not a node set ({error})", allowed) from None
    unknown = wanted - inventory
    if unknown or not wanted:
        raise UserError(OPTION, f"{unknown or 'nothing'} is not in the inventory", allowed)
    return wanted


def _first(count: int, idle: NodeSet, inventory: NodeSet, allowed: str) -> NodeSet:
    if not 0 < count <= len(inventory):
        raise UserError(
            OPTION, f"{count} nodes requested, the inventory has {len(inventory)}", allowed
        )
    if count > len(idle):
        raise UserError(OPTION, f"{count} nodes requested, {len(idle)} are idle", allowed)
    return idle[:count]
