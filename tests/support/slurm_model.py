"""A small model of Slurm: what scontrol and squeue answer, and what they change.

It knows what the gate asks for, and what operators do meanwhile. tests/bed/test_gate_model.py
compares it with the real Slurm, command by command.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from siteproof import nodesets

REGISTERS = 1.5  # seconds until a node that was resumed answers
OTHER = "slurm_update error: "
SETS_STATE = {"DRAIN", "DOWN", "RESUME"}


@dataclass
class Node:
    """comment_of, reason_of: who wrote it. powered: whether its slurmd runs."""

    name: str
    base: str = "IDLE"
    drained: bool = False
    reason: str = ""
    reason_of: str = ""
    comment: str = ""
    comment_of: str = ""
    powered: bool = True
    answers_from: float = 0.0

    def silent(self, now: float) -> bool:
        return not self.powered or now < self.answers_from


@dataclass
class Reservation:
    """maker: who made it. edited: whether a person has changed its nodes."""

    name: str
    start: int
    nodes: set[str]
    users: list[str]
    maint: bool
    maker: str
    edited: bool = False


class Refused(Exception):
    """slurmctld, or scontrol itself, says no."""


@dataclass
class Slurm:
    """A cluster. clock: seconds since 1970. rights: `admin`, `operator` or `none` of each actor."""

    names: Sequence[str]
    clock: Callable[[], float]
    rights: dict[str, str] = field(default_factory=dict)
    users: Sequence[str] = ("root",)

    def __post_init__(self) -> None:
        self.nodes = {name: Node(name) for name in self.names}
        self.reservations: dict[str, Reservation] = {}

    # ---- what a client sees

    def run(self, argv: Sequence[str], actor: str) -> tuple[int, str, str]:
        """Exit code, stdout and stderr of a command."""
        program, *words = argv
        if program == "squeue":
            return 0, "", ""
        words = [word for word in words if word != "-o"]
        if words[0] == "show":
            return 0, self._nodes() if words[1] == "nodes" else self._reservations(), ""
        try:
            return 0, self._change(words, actor), ""
        except Refused as refused:
            return 1, "", f"{refused}\n"

    def _nodes(self) -> str:
        return "".join(f"{self._line(node)}\n" for node in self.nodes.values())

    def _line(self, node: Node) -> str:
        flags = "+DRAIN" if node.drained else ""
        flags += "+MAINTENANCE+RESERVED" if self.holders(node.name) else ""
        flags += "+NOT_RESPONDING" if node.silent(self.clock()) else ""
        reason = f" Reason={node.reason} [root@{int(self.clock())}]" if node.reason else ""
        comment = f" Comment={node.comment}" if node.comment else ""
        return (
            f"NodeName={node.name} Arch=x86_64 CoresPerSocket=1 State={node.base}{flags} "
            f"ThreadsPerCore=1 Partitions=compute  ExtSensorsTemp=n/s{reason}{comment}"
        )

    def _reservations(self) -> str:
        if not self.reservations:
            return "No reservations in the system\n"
        return "".join(
            f"ReservationName={one.name} StartTime={one.start} EndTime={one.start + 60} "
            f"Duration=00:01:00 Nodes={nodesets.of(one.nodes)} NodeCnt={len(one.nodes)} "
            f"CoreCnt=2 Flags=SPEC_NODES Users={','.join(one.users)} State=ACTIVE\n"
            for one in self.reservations.values()
        )

    # ---- what a client changes

    def _change(self, words: list[str], actor: str) -> str:
        verb, *rest = words
        entity = rest[0].partition("=")[0]
        keys = dict(word.partition("=")[::2] for word in rest if "=" in word)
        right = self.rights.get(actor, "admin")
        if verb == "update" and entity == "NodeName":
            if "State" in keys:
                _check_state(keys)
            if right != "admin":
                raise Refused(f"{OTHER}Invalid user id")
            self._update_nodes(keys, actor)
            return ""
        if right == "none":
            raise Refused("Error: Invalid user id")
        return {"create": self._create, "update": self._resize, "delete": self._delete}[verb](
            keys, actor
        )

    def _create(self, keys: dict[str, str], actor: str) -> str:
        name, nodes = keys["ReservationName"], self._known(keys["Nodes"])
        maint = "MAINT" in keys.get("Flags", "").upper()
        if name in self.reservations:
            raise Refused("Error creating the reservation: Duplicate reservation name")
        self._no_overlap(name, nodes, maint)
        users = self._users(keys["Users"])
        now = int(self.clock())
        self.reservations[name] = Reservation(name, now, nodes, users, maint, actor)
        return f"Reservation created: {name}\n"

    def _resize(self, keys: dict[str, str], actor: str) -> str:
        found = self.reservations.get(keys["ReservationName"])
        if not found:
            raise Refused(f"{OTHER}Requested reservation is invalid")
        if "Users+" in keys:
            found.users += self._users(keys["Users+"])
            return "Reservation updated.\n"
        nodes = self._known(keys["Nodes"])
        self._no_overlap(found.name, nodes, found.maint)
        found.edited |= actor != found.maker and found.nodes != nodes
        found.nodes = nodes
        return "Reservation updated.\n"

    def _delete(self, keys: dict[str, str], actor: str) -> str:
        name = keys["ReservationName"]
        if name not in self.reservations:
            raise Refused(f"delete_reservation {name}: Requested reservation is invalid")
        del self.reservations[name]
        return ""

    def _users(self, text: str) -> list[str]:
        if set(text.split(",")) - set(self.users):
            raise Refused("Error: Invalid user id")
        return text.split(",")

    def _known(self, text: str) -> set[str]:
        nodes = set(nodesets.parse(text))
        if nodes - self.nodes.keys():
            raise Refused("Error: Invalid node name specified")
        return nodes

    def _no_overlap(self, name: str, nodes: set[str], maint: bool) -> None:
        for other in self.reservations.values():
            if other.name != name and other.nodes & nodes and not (maint or other.maint):
                raise Refused("Error: Requested reservation overlaps with another reservation")

    def _update_nodes(self, keys: dict[str, str], actor: str) -> None:
        """Those nodes that can be changed are, also where another one is refused."""
        error = ""
        for name in nodesets.parse(keys["NodeName"]):
            node = self.nodes.get(name)
            if node is None:
                error = error or "Invalid node name specified"
                continue
            if "Comment" in keys:
                node.comment, node.comment_of = keys["Comment"], actor
            if "State" in keys and not self._set_state(node, keys, actor):
                error = error or "Invalid node state specified"
        if error:
            raise Refused(f"{OTHER}{error}")

    def _set_state(self, node: Node, keys: dict[str, str], actor: str) -> bool:
        state = keys["State"]
        if state == "RESUME":
            if not node.drained and node.base != "DOWN":
                return False
            node.base, node.drained, node.reason, node.reason_of = "IDLE", False, "", ""
            node.answers_from = self.clock() + REGISTERS
            if not node.powered:  # SlurmdTimeout has passed
                self.power_off(node.name)
            return True
        node.reason, node.reason_of = keys["Reason"], actor
        if state == "DRAIN":
            node.drained = True
        else:
            node.base = "DOWN"
        return True

    # ---- what happens to nodes

    def power_off(self, name: str) -> None:
        """slurmctld has noticed that the node does not answer."""
        node = self.nodes[name]
        node.powered, node.base = False, "DOWN"
        if not node.reason:
            node.reason, node.reason_of = "Not responding", "slurm"

    def power_on(self, name: str) -> None:
        """Its slurmd has registered; ReturnToService=2."""
        node = self.nodes[name]
        node.powered, node.base = True, "IDLE"
        if not node.drained:
            node.reason, node.reason_of = "", ""

    def holders(self, name: str) -> list[Reservation]:
        """The reservations that hold a node."""
        return [one for one in self.reservations.values() if name in one.nodes]


def _check_state(keys: dict[str, str]) -> None:
    assert keys["State"] in SETS_STATE, keys
    if keys["State"] != "RESUME" and not keys.get("Reason"):
        raise Refused("You must specify a reason when DOWNING or DRAINING a node. Request denied")
