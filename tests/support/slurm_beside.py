"""Plays of the gate on a real Slurm, beside the model, which has to agree after each command.

    python tests/support/slurm_beside.py FOLDER FIRST LAST      as root on a login node

The seeds from FIRST up to LAST. The gate gets the answers of the real Slurm, but for the starts of
reservations: the clock is that of the play. A node that is down is cut off from the login node, and
written down at once, which slurmctld would do after SlurmdTimeout.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from clone import PATIENCE, World
from gate_plays import NODES, Broken, Clock, Play, sequence
from slurm_model import Slurm

from siteproof import nodesets
from siteproof.slurm import records
from siteproof.slurm.records import Node

USERS = {"operator": "news", "none": "mail"}  # of Debian's base system
# Of the login node: the play has one of its own.
ENVIRONMENT = os.environ | {"SLURM_TIME_FORMAT": "%s", "LC_ALL": "C"}
Answer = tuple[int, str, str]


class SlowClock(Clock):
    """The clock of the play; a second takes a moment, in which nodes can answer."""

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        time.sleep(min(seconds, 1) / 50)


class Real:
    """The real Slurm, which does what the model has just done."""

    def __init__(self, model: Slurm) -> None:
        self.model, self.commands = model, 0
        self.addresses = {name: socket.gethostbyname(name) for name in NODES}
        routes = self._run(["ip", "route", "show", "type", "unreachable"])[1].split()
        self.cut_off = {name for name, where in self.addresses.items() if where in routes}

    def run(self, argv: Sequence[str], actor: str, expected: Answer) -> Answer:
        """Its answer. Raises Broken where the two do not agree."""
        if "reservations" in argv:
            return expected  # `compare` has read the real ones; these have the play's clock
        if "nodes" in argv:
            self.compare()  # what was resumed answers at last
        user = USERS.get(self.model.rights.get(actor, "admin"), "")
        as_user = ["setpriv", "--reuid", user, "--clear-groups"] if user else []
        self._connect()
        answer = self._run([*as_user, *argv])
        for name in nodesets.parse(argv[2].partition("=")[2]) if "State=RESUME" in argv else ():
            if self.model.nodes[name].base == "DOWN":
                self._state(name, "DOWN", "Not responding")
        if (answer[0] == 0) != (expected[0] == 0):
            raise Broken(f"{argv}: the model says {expected}, Slurm says {answer}")
        if argv[1] in ("create", "update", "delete"):
            self.compare()
        return answer

    def power(self, name: str) -> None:
        """Let a node die or boot, as the model has it now."""
        node = self.model.nodes[name]
        self._connect()
        self._state(name, *(["DOWN", node.reason] if node.base == "DOWN" else ["RESUME"]))
        if node.drained and node.base != "DOWN":
            self._state(name, "DRAIN", node.reason)
        self.compare()

    def _state(self, name: str, state: str, reason: str = "") -> None:
        words = [f"State={state}", *([f"Reason={reason}"] if reason else [])]
        self._run(["scontrol", "update", f"NodeName={name}", *words])

    def _connect(self) -> None:
        """Cut off what is down: slurmctld takes back, at its next ping, whatever answers."""
        down = {node.name for node in self.model.nodes.values() if node.base == "DOWN"}
        for name in down ^ self.cut_off:
            verb = "add" if name in down else "del"
            done = self._run(["ip", "route", verb, "unreachable", self.addresses[name]])
            assert done[0] == 0, done
        self.cut_off = down

    def reset(self) -> None:
        """Idle nodes without comments or reservations."""
        self._connect()
        for name in self._reservations():
            self._run(["scontrol", "delete", f"ReservationName={name}"])
        for node in self._nodes().values():
            if node.state.taken_out:
                self._state(node.name, "RESUME")
        self._run(["scontrol", "update", f"NodeName={','.join(NODES)}", "Comment="])
        self.compare()

    def compare(self) -> None:
        """Raises Broken unless nodes and reservations are the same, soon."""
        end = time.monotonic() + PATIENCE
        while wrong := self._differences():
            if time.monotonic() > end:
                raise Broken(f"the model is not as Slurm is: {wrong}")
            time.sleep(0.1)

    def _differences(self) -> list[str]:
        modelled = records.parse_nodes(self.model.run(["scontrol", "-o", "show", "nodes"], "")[1])
        real = self._nodes()
        pairs = [(_of(modelled[n]), _of(real[n])) for n in NODES if n in real]
        wrong = [f"{ours} / {theirs}" for ours, theirs in pairs if ours != theirs]
        now = self.model.clock()
        for name, node in real.items():
            answers = name not in self.cut_off and not self.model.nodes[name].silent(now)
            if node.state.silent and answers:
                wrong.append(f"{name} does not answer")
        held = {one.name: one.nodes for one in self.model.reservations.values()}
        real_held = {name: set(one.nodes) for name, one in self._reservations().items()}
        return wrong if held == real_held else [*wrong, f"{held} / {real_held}"]

    def _nodes(self) -> dict[str, Node]:
        return records.parse_nodes(self._run(["scontrol", "-o", "show", "nodes"])[1])

    def _reservations(self) -> dict[str, records.Reservation]:
        return records.parse_reservations(self._run(["scontrol", "-o", "show", "reservations"])[1])

    def _run(self, argv: Sequence[str]) -> Answer:
        self.commands += 1
        done = subprocess.run(argv, capture_output=True, text=True, env=ENVIRONMENT)
        return done.returncode, done.stdout, done.stderr


def _of(node: Node) -> tuple[object, ...]:
    """What the gate judges a node by; how soon it answers is its own matter."""
    return node.name, sorted(node.state.taken_out), node.reason, node.comment


def compared(world: World, seeds: Sequence[int], tell: Callable[[str], object] = print) -> None:
    """Run plays on both. Raises Broken."""
    for account in ("add account tested", "add user news account=tested adminlevel=operator"):
        subprocess.run(["sacctmgr", "-i", *account.split()], capture_output=True)
    for seed in seeds:
        clock = SlowClock()
        model = Slurm(NODES, clock.time)
        real = Real(model)
        real.reset()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SITEPROOF_SITES", str(world.sites))
            play = Play(world, model, clock, patch.setattr, real)
            try:
                play.run(sequence(seed))
            except Broken as broken:
                raise Broken("\n".join([*play.told, f"seed {seed}: {broken}"])) from None
            finally:
                Real(Slurm(NODES, clock.time)).reset()
        tell(f"seed {seed}: {play.runs} runs of the gate, {real.commands} commands of Slurm")


if __name__ == "__main__":
    folder, first, last = sys.argv[1:]
    compared(World(Path(folder)), range(int(first), int(last)))
