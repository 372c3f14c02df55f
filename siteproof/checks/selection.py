"""Which nodes `-S nodes` asks for, and how many of them one job may have."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ClusterShell.NodeSet import NodeSet

from siteproof import nodesets
from siteproof.errors import UserError
from siteproof.slurm.records import Node

CHUNK = 64  # nodes of one job: what is lost at most with its batch host


def select(spec: str, inventory: NodeSet, states: Mapping[str, Node]) -> NodeSet:
    """The nodes that `-S nodes=SPEC` asks for: all, idle, a count, or a node set.

    Of `missing`, all: which of them it is, each check finds (siteproof.checks.missing).

    A count takes the first nodes that are idle. Raises UserError for anything else.
    """
    allowed = f"all, idle, missing, a count, or a node set within {inventory}"
    if spec in ("all", nodesets.MISSING):
        return inventory
    free = [n for n in inventory if not states or n in states and states[n].state.idle]
    idle = nodesets.of(free)
    if spec == "idle":
        return idle
    if re.fullmatch("[0-9]{1,9}", spec):
        if not 0 < int(spec) <= len(inventory):
            raise UserError("-S nodes", f"{spec} of {len(inventory)} nodes", allowed)
        if int(spec) > len(idle):
            raise UserError("-S nodes", f"{spec} nodes asked for, {len(idle)} are idle", allowed)
        return idle[: int(spec)]
    try:
        wanted = nodesets.parse(spec)
    except ValueError as error:
        raise UserError("-S nodes", f"'{spec}' is no node set ({error})", allowed) from None
    if not wanted or not wanted <= inventory:
        strangers = wanted - inventory
        raise UserError("-S nodes", f"{strangers or 'nothing'} is not in the inventory", allowed)
    return wanted
