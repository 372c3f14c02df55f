"""What can go wrong during a campaign of marathon.py: nodes, slurmctld, the login side, people."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fan_out import Bed
from measuring import HERE, TOP, Misuse

CLASS = "class"  # a colleague's reservation
RESTART = "restarted-slurmctld"  # of the test bed's table, and not of a node
IN_SERVICE = {"IDLE", "ALLOCATED", "MIXED", "COMPLETING", "PLANNED"}
LONGEST_OUTAGE = 60  # seconds of slurmctld
DISK = "size=300m,mode=755"  # of the data, which every node sees
IN_JOB = "SLURM_JOB_ID="


class Cluster:
    """The test bed, the small disk and the clock of its login node, and Slurm's own answers."""

    def __init__(self, bed: Bed, folder: Path) -> None:
        self.bed, self.folder = bed, folder
        self.disk, self.clock = folder / "disk", folder / "clock"
        self.names = [f"node{number:03}" for number in range(1, bed.nodes + 1)]

    @contextmanager
    def running(self) -> Iterator[Cluster]:
        """Up, and gone however this ends. Raises Misuse."""
        self.disk.mkdir()
        self.clock.write_text("0", encoding="utf-8")
        source, library = HERE / "clock_step.c", self.clock.with_suffix(".so")
        must("cc", "-O1", "-shared", "-fPIC", "-o", library, source, "-ldl")
        must("mount", "-t", "tmpfs", "-o", DISK, "marathon", self.disk)
        try:
            self.bed.up()
            yield self
        finally:
            self.bed.down()
            must("umount", "--lazy", self.disk)

    @property
    def wrong_clock(self) -> dict[str, str]:
        """The variables of commands whose clock shall be able to step."""
        return {"LD_PRELOAD": str(self.clock.with_suffix(".so")), "MARATHON_CLOCK": str(self.clock)}

    def testbed(self, *words: object) -> None:
        """A command of the test bed. Raises Misuse."""
        must(*self.bed.command(*words), env=self.bed.environment)

    def scontrol(self, *words: str) -> list[str]:
        """The lines that it prints."""
        return self.bed.ask("timeout", "60", "scontrol", *words)

    def nodes(self) -> dict[str, dict[str, str]]:
        """The fields of each node; a value ends where the next key begins."""
        lines = self.scontrol("-o", "show", "nodes")
        found = [dict(re.findall(r"(\w+)=(.*?)(?= \w+=|\s*$)", line)) for line in lines]
        return {node["NodeName"]: node for node in found if "NodeName" in node}

    def reservations(self) -> dict[str, set[str]]:
        """The nodes of each reservation."""
        lines = self.scontrol("-o", "show", "reservations")
        found = [dict(re.findall(r"(\w+)=(\S*)", line)) for line in lines]
        named = [each for each in found if "ReservationName" in each]
        return {each["ReservationName"]: self.unfold(each["Nodes"]) for each in named}

    def unfold(self, text: str) -> set[str]:
        """node[001-003,007] as names."""
        return set(self.bed.ask("scontrol", "show", "hostnames", text))

    def slurmctld(self, number: int) -> None:
        """Send it a signal, if it runs."""
        send(number, processes(f"SLURM_CONF={self.bed.state}/", "slurmctld"))

    def mend_login(self) -> None:
        """Slurmctld, disk and clock as they were."""
        self.slurmctld(signal.SIGCONT)
        if not any("is UP" in line for line in self.scontrol("ping")):
            self.testbed("restart-slurmctld")
        must("mount", "-o", "remount,rw", self.disk)
        (self.disk / "full").unlink(missing_ok=True)
        self.clock.write_text("0", encoding="utf-8")

    def restore(self) -> None:
        """No job, no reservation, no drain, no comment. Raises Misuse where that cannot be had."""
        self.mend_login()
        self.bed.ask("scancel", "--user=root")
        for name in self.reservations():
            self.scontrol("delete", f"ReservationName={name}")
        self.testbed("mend", *self.names)
        self.scontrol("update", "NodeName=ALL", "Comment=", "Reason=")
        for name, node in self.nodes().items():
            if "DRAIN" in node["State"]:
                self.scontrol("update", f"NodeName={name}", "State=RESUME")
        self.bed.settle()


def serves(node: Mapping[str, str]) -> bool:
    """Whether users get jobs on a node, as far as its state says."""
    return set(re.findall(r"[A-Z_]+|\*", node["State"])) <= IN_SERVICE


def must(*words: object, env: Mapping[str, str] | None = None) -> None:
    """Run a command. Raises Misuse with its last line."""
    done = subprocess.run(
        [str(word) for word in words], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise Misuse((said or [f"{words[0]} failed"])[-1])


def processes(mark: str, name: str = "", without: str = "") -> list[int]:
    """Those with a text in their environment, and another in their command line."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            environment = (process / "environ").read_bytes()
            line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            spared = without and without.encode() in environment
            if line and name in line and mark.encode() in environment and not spared:
                found.append(int(process.name))
    return found


def send(number: int, pids: Sequence[int]) -> None:
    """Send a signal to those that still run."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


class Scene(Protocol):
    """What a mishap needs of a campaign. mark: in the environment of all its processes."""

    cluster: Cluster

    @property
    def mark(self) -> str:
        """In the environment of all processes of the campaign."""

    def wait(self, seconds: float) -> bool:
        """Sleep, but not longer than the evening lasts; whether it is over."""

    def note(self, words: str) -> None:
        """What happened, with its time."""

    def evening(self) -> None:
        """What a user runs."""

    def edited(self, node: str, fields: Mapping[str, str]) -> None:
        """A person has set these fields."""

    def taken(self, nodes: set[str]) -> None:
        """A person has taken these nodes out of service."""


@dataclass(frozen=True)
class Mishap:
    """strike(scene, node, dice) happens at a random moment of the evening, in a thread."""

    kind: str
    name: str
    strike: Callable[[Scene, str, random.Random], None]


def of_node(name: str) -> Mishap:
    """A fault of the test bed's table."""
    return Mishap("node", name, lambda scene, node, _: scene.cluster.testbed("fault", name, node))


def restarted(scene: Scene, _node: str, _dice: random.Random) -> None:
    """Slurmctld, in good order."""
    scene.cluster.testbed("fault", RESTART)


def stopped(scene: Scene, _node: str, dice: random.Random) -> None:
    """Slurmctld does not answer for a while, and then answers everything."""
    scene.cluster.slurmctld(signal.SIGSTOP)
    scene.wait(dice.uniform(5, LONGEST_OUTAGE))
    scene.cluster.slurmctld(signal.SIGCONT)


def killed(scene: Scene, _node: str, dice: random.Random) -> None:
    """Slurmctld is gone for a while."""
    scene.cluster.slurmctld(signal.SIGKILL)
    scene.wait(dice.uniform(2, LONGEST_OUTAGE))
    scene.cluster.testbed("restart-slurmctld")


def slow(scene: Scene, _node: str, _dice: random.Random) -> None:
    """Slurmctld runs a tenth of the time."""
    for _ in range(LONGEST_OUTAGE):
        scene.cluster.slurmctld(signal.SIGSTOP)
        time.sleep(0.9)
        scene.cluster.slurmctld(signal.SIGCONT)
        if scene.wait(0.1):
            break


def kill_of(words: str, within: float) -> Callable[[Scene, str, random.Random], None]:
    """Kill -9 of what has these words in its command line, so many seconds after it began."""

    def strike(scene: Scene, _node: str, dice: random.Random) -> None:
        while not processes(scene.mark, words, IN_JOB):
            if scene.wait(0.05):
                return
        scene.wait(dice.uniform(0, within))
        found = processes(scene.mark, words, IN_JOB)
        scene.note(f"kill -9 of {len(found)} processes {words}")
        send(signal.SIGKILL, found)

    return strike


def full(scene: Scene, _node: str, _dice: random.Random) -> None:
    """Not a byte is left for samples, logs and stage directories."""
    with suppress(OSError), (scene.cluster.disk / "full").open("wb", buffering=0) as file:
        while file.write(bytes(2**16)):
            pass


def read_only(scene: Scene, _node: str, _dice: random.Random) -> None:
    """The disk, everywhere; it stays as it is where a file is being written."""
    with suppress(Misuse):
        while not scene.wait(0.05):
            must("mount", "-o", "remount,ro", scene.cluster.disk)
            return


def second(scene: Scene, _node: str, _dice: random.Random) -> None:
    """Another operator runs the same."""
    scene.evening()


def clock(scene: Scene, _node: str, dice: random.Random) -> None:
    """The login node's clock steps by minutes."""
    seconds = dice.choice((-1, 1)) * dice.randint(20, 250)
    scene.note(f"clock steps by {seconds} s")
    scene.cluster.clock.write_text(str(seconds), encoding="utf-8")


def drains(scene: Scene, node: str, _dice: random.Random) -> None:
    """A colleague, with a reason."""
    edit(scene, node, State="DRAIN", Reason="bad DIMM, J. Doe")
    scene.taken({node})


def reserves(scene: Scene, node: str, dice: random.Random) -> None:
    """A colleague, two nodes; Slurm refuses it where a node is reserved already."""
    nodes = {node, dice.choice([name for name in scene.cluster.names if name != node])}
    words = ["StartTime=now", "Duration=60", "Users=nobody", "Flags=maint,ignore_jobs"]
    named = [f"ReservationName={CLASS}", f"Nodes={','.join(nodes)}"]
    scene.cluster.scontrol("create", "reservation", *named, *words)
    scene.taken(scene.cluster.reservations().get(CLASS, set()))


def edits_reason(scene: Scene, node: str, dice: random.Random) -> None:
    """A colleague drains a node and then changes the reason; Slurm keeps none of an idle node."""
    drains(scene, node, dice)
    scene.wait(dice.uniform(0, 10))
    edit(scene, node, Reason="DIMM replaced, J. Doe tests it")


def edits_comment(scene: Scene, node: str, _dice: random.Random) -> None:
    """A colleague."""
    edit(scene, node, Comment="fan ordered by J. Doe")


def edit(scene: Scene, node: str, **fields: str) -> None:
    """A person's hand on a node."""
    words = [f"{key}={value}" for key, value in fields.items()]
    scene.cluster.scontrol("update", f"NodeName={node}", *words)
    if node in scene.cluster.nodes():  # Slurm answered
        scene.edited(node, {key: value for key, value in fields.items() if key != "State"})


OTHERS = (
    Mishap("slurmctld", RESTART, restarted),
    Mishap("slurmctld", "slurmctld stopped", stopped),
    Mishap("slurmctld", "slurmctld killed", killed),
    Mishap("slurmctld", "slurmctld slow", slow),
    Mishap("login", "reframe killed", kill_of("bin/reframe", 15)),
    Mishap("login", "evening killed", kill_of("siteproof evening", 30)),
    Mishap("login", "gate killed", kill_of("siteproof gate", 1.5)),
    Mishap("login", "login node dies", kill_of("", 30)),
    Mishap("login", "disk full", full),
    Mishap("login", "disk read-only", read_only),
    Mishap("login", "second operator", second),
    Mishap("login", "clock step", clock),
    Mishap("people", "drains a node", drains),
    Mishap("people", "reserves nodes", reserves),
    Mishap("people", "edits a reason", edits_reason),
    Mishap("people", "edits a comment", edits_comment),
)


def table() -> list[Mishap]:
    """What the test bed lists, and ours."""
    done = subprocess.run([TOP / "testbed" / "testbed", "fault"], stdout=subprocess.PIPE, text=True)
    names = [line.split()[0] for line in done.stdout.splitlines()]
    return [*(of_node(name) for name in names if name != RESTART), *OTHERS]
