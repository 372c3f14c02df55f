"""What Slurm says of the nodes: one client call for all of them."""

from __future__ import annotations

import functools
import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from siteproof.errors import UserError

CHUNK = 64  # nodes of one job: what is lost at most with its batch host
TIMEOUT = 60  # seconds: a dead controller makes a client wait for ever
DOWN = ("down", "drain", "fail", "unknown", "power", "boot", "future", "inval", "not_resp", "unk")


@dataclass(frozen=True)
class NodeState:
    """A node's state as sinfo words it, and the reason that somebody gave."""

    state: str
    reason: str = ""

    @property
    def down(self) -> bool:
        """Whether the node takes no job at all."""
        return self.state.endswith("*") or self.state.lower().startswith(DOWN)

    @property
    def idle(self) -> bool:
        """Whether a job on the node would start now."""
        return self.state.lower().rstrip("$~#!%@^-+") in ("idle", "maint", "reserved", "resv")

    @property
    def reserved(self) -> bool:
        """Whether only jobs of some reservation may run on the node."""
        return self.state.lower().startswith(("maint", "reserved", "resv"))

    def __str__(self) -> str:
        reason = self.reason or ("not responding" if self.state.endswith("*") else "")
        return f"{self.state}: {reason}" if reason else self.state


@functools.cache
def first_look() -> dict[str, NodeState]:
    """The state of all nodes when the session first asked. Raises UserError."""
    return node_states()


def allocation() -> NodeSet:
    """The nodes of the job inside which this process runs; none on a login node."""
    held = os.environ.get("SLURM_JOB_NODELIST", "") if os.environ.get("SLURM_JOB_ID") else ""
    return NodeSet(held, resolver=RESOLVER_NOGROUP)


def parse_sinfo(text: str) -> dict[str, NodeState]:
    """Read `sinfo -h -N -o '%N|%T|%E'`; of a node in several partitions the worst line stays."""
    states: dict[str, NodeState] = {}
    for line in text.splitlines():
        name, _, rest = line.strip().partition("|")
        state, _, reason = rest.partition("|")
        if name and not (name in states and states[name].down):
            states[name] = NodeState(state, "" if reason == "none" else reason)
    return states


def without_resizing(state: str | None) -> str | None:
    """A job's state without the records from before it lost a node.

    Slurm keeps them for ever as RESIZING, beside the record of what is left of the job, and
    ReFrame would wait for them to end.
    """
    if not state:
        return state
    left = [s for s in state.split(",") if s != "RESIZING"]
    return ",".join(left) or "RUNNING"


def node_states(nodes: NodeSet | None = None) -> dict[str, NodeState]:
    """State of the nodes, of all if none are named. Raises UserError if Slurm does not answer."""
    command = ["sinfo", "-h", "-N", "-o", "%N|%T|%E"]
    return parse_sinfo(_answer(command + ([f"--nodes={nodes}"] if nodes else [])))


@functools.cache
def reserved(name: str) -> NodeSet:
    """The nodes of a reservation, of several with commas between. Raises UserError.

    Asked once a session: no job of the reservation can have others.
    """
    nodes = NodeSet(resolver=RESOLVER_NOGROUP)
    for one in name.split(","):
        text = _answer(["scontrol", "-o", "show", f"reservation={one}"])
        found = re.search(r"(?:^|\s)Nodes=(\S+)", text)
        if found and found[1] != "(null)":
            nodes.update(NodeSet(found[1], resolver=RESOLVER_NOGROUP))
    return nodes


def _answer(command: list[str]) -> str:
    """What a client of Slurm's prints. Raises UserError."""
    name = command[0]
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT, check=True
        )
    except FileNotFoundError:
        raise UserError(name, "not found, and the site says slurm") from None
    except subprocess.TimeoutExpired:
        raise UserError(name, f"no answer from Slurm within {TIMEOUT} s") from None
    except subprocess.CalledProcessError as error:
        raise UserError(name, " ".join(error.stderr.split())) from None
    return answer.stdout


def unusable(
    expected: Iterable[str], states: Mapping[str, NodeState], *, outside: bool = False
) -> dict[str, str]:
    """The expected nodes that cannot take a job, each with the reason.

    outside: the job runs in no reservation, so it would wait for a reserved node for ever.
    """
    lost = {}
    for node in expected:
        if node not in states:
            lost[node] = "unknown to Slurm"
        elif states[node].down:
            lost[node] = str(states[node])
        elif outside and states[node].reserved:
            lost[node] = f"{states[node]}: in a reservation, and -J reservation=NAME is not given"
    return lost


def select(spec: str, inventory: NodeSet, states: Mapping[str, NodeState]) -> NodeSet:
    """The nodes that `-S nodes=SPEC` asks for: all, idle, a count, or a node set.

    A count takes the first nodes that are idle. Raises UserError for anything else.
    """
    allowed = f"all, idle, a count, or a node set within {inventory}"
    if spec == "all":
        return inventory
    free = [n for n in inventory if not states or n in states and states[n].idle]
    idle = NodeSet.fromlist(free, resolver=RESOLVER_NOGROUP)
    if spec == "idle":
        return idle
    if spec.isdigit():
        if not 0 < int(spec) <= len(inventory):
            raise UserError("-S nodes", f"{spec} of {len(inventory)} nodes", allowed)
        if int(spec) > len(idle):
            raise UserError("-S nodes", f"{spec} nodes asked for, {len(idle)} are idle", allowed)
        return idle[: int(spec)]
    try:
        wanted = NodeSet(spec, resolver=RESOLVER_NOGROUP)
    except NodeSetException as error:
        raise UserError("-S nodes", f"'{spec}' is no node set ({error})", allowed) from None
    if not wanted or not wanted <= inventory:
        strangers = wanted - inventory
        raise UserError("-S nodes", f"{strangers or 'nothing'} is not in the inventory", allowed)
    return wanted
