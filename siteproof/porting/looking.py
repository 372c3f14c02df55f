"""One node of each role, looked at through Slurm: a short job that runs description.sh."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from siteproof import nodesets
from siteproof.errors import UserError, harmless
from siteproof.porting import one_node
from siteproof.porting.grouping import NewRole
from siteproof.porting.one_node import OneNode
from siteproof.sites.catalogue import Feature
from siteproof.slurm import client

END = "end description"
_REFUSED = re.compile(r"Invalid (?:account|qos)[\w /]*", re.IGNORECASE)  # of every job alike


def through_slurm(
    roles: Iterable[NewRole], features: Mapping[str, Feature], options: Iterable[str]
) -> tuple[dict[str, OneNode], dict[str, str]]:
    """An idle node of each kind of hardware; and of which none could be looked at, with why."""
    found: dict[str, OneNode] = {}
    why: dict[str, str] = {}
    script = ["sh", "-c", one_node.script(features.values())]
    states = client.node_states()
    for role in roles:
        if role.hardware in found:
            continue
        idle = [n for n in role.nodes if n in states and states[n].state.idle]
        if not idle:
            why[role.hardware] = "no idle node"
            continue
        words = [f"--partition={role.partition}", *options]
        done = client.on_each(nodesets.of(idle[:1]), words, script, lambda text: text.count(END))
        try:
            found[role.hardware] = one_node.read(idle[0], done.stdout)
        except UserError as error:
            printed = " ".join(harmless(done.stderr).split())[:200]
            if refused := _REFUSED.search(printed):
                hint = "'sacctmgr show associations user=$USER' lists yours"
                raise UserError("--describe", f"Slurm refuses: '{refused[0]}'", hint=hint) from None
            why[role.hardware] = f"{idle[0]}: {printed or error.what}"
    return found, why
