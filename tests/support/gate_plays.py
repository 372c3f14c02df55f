"""Random plays of gate, operators and failing nodes on a cluster whose client fails.

`sequence(seed)` makes the steps, `Play` runs them with the whole command `siteproof gate` on the
model of Slurm (slurm_model.py), and raises Broken as soon as a promise of docs/gate.md is broken.
With `real` (slurm_beside.py) each command goes to a real Slurm, too, and the two have to agree.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fleets
from clone import Done, World
from slurm_model import Slurm

from siteproof import nodesets, sites
from siteproof.cli import gate as command
from siteproof.gate import act
from siteproof.nodes import states
from siteproof.slurm import client

NODES = [f"node{number:03}" for number in range(1, 9)]
NAME = "siteproof-compute"
START = 1_800_000_000
GOOD, BAD = 100.0, 20.0
Step = tuple
SITES: dict[Path, sites.Site] = {}  # by their folder, as many plays are on one
JUDGED: dict[Path, dict[tuple, tuple]] = {}
Faults = dict[tuple[str, int], tuple[str, float]]
EVENT = ("die", "boot", "break", "break", "mend")
# What becomes of a command that changes something: is it done, and what does the client answer?
CHANGES = {
    "died before": (False, (-9, "", "")),
    "died after": (True, (-9, "", "")),
    "killed by a wrapper": (True, (137, "", "Killed\n")),
    "answer lost": (True, (1, "", "slurm_update error: Socket timed out on send/recv operation\n")),
    "answer not understood": (True, (1, "", "error: Unexpected message received\n")),
    "garbage": (True, (1, "\0\ufffd{", "")),
    "no controller": (False, (1, "", "Unable to contact slurm controller (connect failure)\n")),
    "denied": (False, (1, "", "slurm_update error: Invalid user id\n")),
    "a lie": (False, (0, "", "")),
    "slow, not done": (False, None),
    "slow, done": (True, None),
    "slow, done later": ("later", None),
    "gate killed before": (False, "killed"),
    "gate killed after": (True, "killed"),
}
ASKS = (
    *("died", "no controller", "slow", "cut", "garbage", "empty", "other cluster", "gate killed"),
    "denied",
)


class Broken(AssertionError):
    """A promise of the gate is not kept."""


class Killed(BaseException):
    """The end of the gate's process."""


@dataclass
class Clock:
    """Seconds since 1970 that pass only when somebody waits."""

    now: float = START

    def time(self) -> float:
        return self.now

    monotonic = time

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def sequence(seed: int) -> list[Step]:
    """Steps of a play; of the gate's: its options, and (the how-many-th command, which fault)."""
    chance = random.Random(seed)
    steps: list[Step] = [("break", chance.choice(NODES)), ("measure",)]
    for _ in range(chance.randint(8, 16)):
        steps.append(_step(chance))
        if steps[-1][0] == "break" and chance.random() < 0.8:
            steps.append(("measure",))
        if chance.random() < 0.4:
            steps.append(("wait", chance.choice([1, 5, 70])))
    return steps


def _step(chance: random.Random) -> Step:
    kind = chance.choices(["gate", "event", "person", "measure", "rights"], [50, 25, 20, 8, 4])[0]
    if kind == "gate":
        return ("gate", _options(chance), _faults(chance))
    if kind == "event" and chance.random() < 0.15:
        return ("mend", *NODES)
    if kind == "event":
        return (chance.choice(EVENT), chance.choice(NODES))
    if kind == "person":
        return ("person", _person(chance))
    if kind == "rights":
        return ("rights", chance.choice(["operator", "none", "admin"]))
    return ("measure",)


def _options(chance: random.Random) -> tuple[str, ...]:
    limit = () if chance.random() < 0.2 else ("--limit", "100%")
    drain = ("--drain",) if chance.random() < 0.3 else ()
    return chance.choice(
        [
            (*limit,),
            (*limit, *drain, "--apply"),
            (*limit, *drain, "--apply"),
            (*limit, *drain, "--apply"),
            ("--release",),
            ("--release", "--apply"),
            ("--release", "--apply"),
            ("--retest", "--apply"),
            ("--retest", "--apply"),
        ]
    )


def _faults(chance: random.Random) -> Faults:
    """Which fault has the how-many-th command that changes something, or that asks.

    Each with a chance of its own, for the place of a cut or for the time of what is done later.
    """
    if chance.random() < 0.3:
        return {}
    found = {}
    for _ in range(chance.choice([1, 1, 2])):
        if chance.random() < 0.65:
            place = ("change", chance.choice([1, 1, 1, 2, 3]))
            found[place] = (chance.choice(list(CHANGES)), chance.random())
        else:
            found[("ask", chance.randint(1, 7))] = (chance.choice(ASKS), chance.random())
    return found


def _person(chance: random.Random) -> tuple[str, ...]:
    node, other = chance.sample(NODES, 2)
    class_ = ("ReservationName=class", "StartTime=now", "Duration=60", "Users=root")
    ours = ("ReservationName=" + NAME, "StartTime=now", "Duration=60", "Users=root")
    return chance.choice(
        [
            ("update", f"NodeName={node}", "State=DRAIN", "Reason=bad DIMM"),
            ("update", f"NodeName={node}", "State=DOWN", "Reason=bad fan"),
            ("update", f"NodeName={node}", "State=RESUME"),
            ("update", f"NodeName={node}", "State=RESUME"),
            ("update", f"NodeName={node}", "Comment=bought in 2021"),
            ("update", f"NodeName={node}", "Comment="),
            ("create", "reservation", *class_, f"Nodes={node}"),
            ("create", "reservation", *class_, f"Nodes={node},{other}", "Flags=MAINT"),
            ("create", "reservation", *ours, f"Nodes={node}"),
            ("update", "ReservationName=class", f"Nodes={node},{other}"),
            ("delete", "ReservationName=class"),
            ("delete", f"ReservationName={NAME}"),
            ("update", f"ReservationName={NAME}", f"Nodes={node},{other}"),
        ]
    )


@dataclass
class Late:
    """A command that Slurm does after its client has given up."""

    moment: float
    argv: Sequence[str]


@dataclass
class Play:
    """The gate, people and nodes. real: the real Slurm, if there is one."""

    world: World
    slurm: Slurm
    clock: object
    patch: Callable
    real: Any = None
    told: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.broken: set[str] = set()
        self.newest: dict[str, tuple[float, float]] = {}  # of each node: when, and what
        self.passed_inside: dict[str, bool] = dict.fromkeys(NODES, False)
        self.late: list[Late] = []
        self.faults: Faults = {}
        self.asked = self.changes = self.runs = self.hit = 0
        self.site = _site(self.world)
        self.patch(command, "judge_system", lambda *_a, **_k: self._judged()[0])
        self.patch(command, "fleet", lambda _judged: self._judged()[1])
        self.patch(client, "_run", self._client)
        self.patch(act, "datetime", SimpleNamespace(now=self._now))
        self.patch(act, "time", self.clock)
        self.patch(os, "fsync", lambda _handle: None)  # nobody pulls the plug here
        self.patch(act.commands, "run", self._reframe)

    # ---- steps

    def run(self, steps: Iterable[Step]) -> None:
        """All steps, then `end`. Raises Broken."""
        for step in steps:
            self.step(step)
        self.end()

    def step(self, step: Step) -> None:
        """One step. Raises Broken."""
        self.clock.sleep(1)
        self._do_late()
        self.told.append(f"{self.clock.time() - START:.0f} {step}")
        getattr(self, f"_{step[0]}_step")(*step[1:])

    def _wait_step(self, seconds: int) -> None:
        self.clock.sleep(seconds)

    def _measure_step(self) -> None:
        """Maintenance: every node that runs jobs outside of reservations is measured."""
        for node in self.slurm.nodes.values():
            if self._runs(node.name) and not self.slurm.holders(node.name):
                self._measured(node.name)

    def _rights_step(self, right: str) -> None:
        self.slurm.rights["gate"] = right

    def _person_step(self, words: tuple[str, ...]) -> None:
        self._on_slurm(("scontrol", *words), "person")
        if (ours := self.slurm.reservations.get(NAME)) and "ReservationName=" + NAME in words:
            self.passed_inside |= dict.fromkeys(ours.nodes, False)

    def _die_step(self, node: str) -> None:
        self.slurm.power_off(node)
        if self.real:
            self.real.power(node)

    def _boot_step(self, node: str) -> None:
        if self.slurm.nodes[node].powered:
            return
        self.slurm.power_on(node)
        if self.real:
            self.real.power(node)

    def _break_step(self, node: str) -> None:
        self.broken.add(node)

    def _mend_step(self, *nodes: str) -> None:
        self.broken -= set(nodes)

    def _gate_step(self, options: tuple[str, ...], faults: Faults) -> Done | None:
        """One run of the gate; None if it was killed."""
        self.faults, self.asked, self.changes = faults, 0, 0
        before = self._members()
        try:
            done = self.world.inside("gate", "--system", "here", *options)
        except Killed:
            self.told.append("   killed")
            return None
        finally:
            self.faults = {}
        self.runs += 1
        self.told += [f"   {line}" for line in str(done).splitlines() if line]
        if done.code not in (0, 1, 2) or "Traceback" in done.said:
            raise self._is_broken("no end that a person understands")
        self._own_is_known(done)
        clean = not faults and not self.late
        if clean and "--apply" in options and not {"--release", "--retest"} & set(options):
            self._nobody_is_missing(done, before)
        return done

    # ---- what has to hold

    def _own_is_known(self, done: Done) -> None:
        found = self.slurm.reservations.get(NAME)
        if "is not the gate's own" in done.said and found.maker == "gate" and not found.edited:
            raise self._is_broken("the gate's own reservation is called somebody else's")

    def _nobody_is_missing(self, done: Done, before: set[str]) -> None:
        """After a run without faults the quarantine holds whom it should."""
        refused = "would stay out, more than" in done.said
        found = self.slurm.reservations.get(NAME)
        refused |= "is not the gate's own" in done.said and bool(found and found.edited)
        if refused or self.slurm.rights.get("gate") == "none" or _is_anothers(found):
            return
        needed = self._needed()
        if missing := needed - self._members():
            raise self._is_broken(f"not in quarantine: {sorted(missing)}")
        if extra := self._members() - before - needed:
            raise self._is_broken(f"in quarantine without a reason: {sorted(extra)}")

    def _needed(self) -> set[str]:
        bad = {n for n in NODES if self.newest.get(n, (0, BAD))[1] == BAD}
        nodes = self.slurm.nodes.values()
        dead = {n.name for n in nodes if not n.powered and not n.drained}
        return {name for name in bad | dead if not self._is_of_others(name)}

    def _is_of_others(self, name: str) -> bool:
        node = self.slurm.nodes[name]
        taken = (node.drained or node.base == "DOWN") and node.reason_of == "person"
        by_slurm = node.drained and node.reason_of == "slurm"
        return taken or by_slurm or any(r.maker == "person" for r in self.slurm.holders(name))

    def _members(self) -> set[str]:
        found = self.slurm.reservations.get(NAME)
        return set(found.nodes) if found and found.maker == "gate" else set()

    def _check(self, argv: Sequence[str]) -> None:
        """What the gate is about to do hurts nobody. Raises Broken."""
        keys = dict(word.partition("=")[::2] for word in argv if "=" in word)
        if "NodeName" in keys:
            for name in nodesets.parse(keys["NodeName"]):
                self._check_node(name, keys)
            return
        found = self.slurm.reservations.get(keys["ReservationName"])
        if _is_anothers(found):
            raise self._is_broken(f"a reservation of others is changed: {argv}")
        old = self._members()
        new = set(nodesets.parse(keys.get("Nodes", "")))
        if taken := {n for n in new - old if self._is_of_others(n)}:
            raise self._is_broken(f"nodes of others are taken: {sorted(taken)}")
        if found:
            self._check_freed(old - new)

    def _check_freed(self, names: set[str]) -> None:
        for name in names:
            if not self.passed_inside[name]:
                raise self._is_broken(f"{name} is freed without a pass inside")
            if not self.slurm.nodes[name].powered:
                raise self._is_broken(f"{name} is freed dead")

    def _check_node(self, name: str, keys: dict[str, str]) -> None:
        node = self.slurm.nodes[name]
        if "Comment" in keys and node.comment and node.comment_of != "gate":
            raise self._is_broken(f"{name}: the comment of others is changed")
        if keys.get("State") == "RESUME" and node.reason_of != "gate" and node.drained:
            raise self._is_broken(f"{name}: a node of others is resumed")
        if keys.get("State") == "DRAIN" and node.reason and node.reason_of == "person":
            raise self._is_broken(f"{name}: the reason of others is changed")

    def end(self) -> None:
        """Without faults everything comes to rest, and when all is mended nothing is left."""
        self.step(("rights", "admin"))
        self.step(("wait", 70))
        self.step(("wait", 1))
        if _is_anothers(self.slurm.reservations.get(NAME)):
            self.step(("person", ("delete", f"ReservationName={NAME}")))
        apply = ("gate", ("--limit", "100%", "--apply"), {})
        self.step(apply)
        if self._own_was_edited():
            self.step(("person", ("delete", f"ReservationName={NAME}")))
            self.step(apply)
        self._rests(apply)
        self._is_logged()
        self._mend_all()
        self._free_all(apply)
        if self._left_over():  # a colleague's reservation may have been in the way
            self._free_all(apply)
        if left := self._left_over():
            raise self._is_broken(left)
        self.step(apply)
        self._rests(apply)
        self._is_logged()

    def _own_was_edited(self) -> bool:
        """Whether the gate cannot know its own reservation, as a person changed it first."""
        found = self.slurm.reservations.get(NAME)
        return bool(found and found.edited) and "is not the gate's own" in "".join(self.told[-9:])

    def _rests(self, again: Step) -> None:
        size = len(self._log())
        self.step(again)
        if self.changes or len(self._log()) != size:
            raise self._is_broken("the second run has something to do")

    def _mend_all(self) -> None:
        for node in self.slurm.nodes.values():
            self.step(("mend", node.name))
            self.step(("boot", node.name))
            if node.reason_of in ("person", "slurm"):
                self.step(("person", ("update", f"NodeName={node.name}", "State=RESUME")))
        for name in [r.name for r in self.slurm.reservations.values() if _is_anothers(r)]:
            self.step(("person", ("delete", f"ReservationName={name}")))
        self.step(("wait", 10))
        self.step(("measure",))

    def _free_all(self, apply: Step) -> None:
        self.step(apply)
        self.step(("gate", ("--retest", "--apply"), {}))
        self.step(("wait", 5))
        self.step(("gate", ("--release", "--apply"), {}))

    def _left_over(self) -> str:
        """What the gate has made and not undone, though all is mended."""
        found = self.slurm.reservations.get(NAME)
        if found and not found.edited:
            return "the quarantine is not empty"
        held = found.nodes if found else set()
        for node in self.slurm.nodes.values():
            if node.name in held:
                continue
            if node.comment_of == "gate" and node.comment:
                return f"{node.name} keeps our comment"
            if node.drained:
                return f"{node.name} stays drained"
        return ""

    def _is_logged(self) -> None:
        """Of the last command the log has its end."""
        records = [r for r in self._log() if r.get("phase") in ("before", "after")]
        if self.changes and (records[-1]["phase"], records[-1].get("error", "")) != ("after", ""):
            raise self._is_broken("the log does not have the end of the last command")

    def _log(self) -> list[dict]:
        path = self.world.data / "perflogs/here/gate.jsonl"
        if not path.exists():
            return []
        return [json.loads(line) for line in path.read_text().splitlines()]

    def _is_broken(self, what: str) -> Broken:
        return Broken("\n".join([*self.told, what]))

    # ---- between the gate and Slurm

    def _client(self, argv: Sequence[str], seconds: float) -> subprocess.CompletedProcess:
        self._do_late()
        change = argv[0] == "scontrol" and argv[1] in ("create", "update", "delete")
        self.changes, self.asked = self.changes + change, self.asked + (not change)
        place = ("change", self.changes) if change else ("ask", self.asked)
        fault, chance = self.faults.get(place, ("", 0.0))
        self.hit += bool(fault)
        self.told.append(f"   {' '.join(argv)[:150]} {fault and '<-- ' + fault}")
        send = self._changed if change else self._answered
        answer = send(argv, fault, chance, seconds)
        return subprocess.CompletedProcess(argv, *answer)

    def _changed(
        self, argv: Sequence[str], fault: str, chance: float, seconds: float
    ) -> tuple[int, str, str]:
        done, answer = CHANGES.get(fault, (True, ()))
        said = (0, "", "")
        if done is True:
            self._check(argv)
            said = self._on_slurm(argv, "gate")
        elif done == "later":
            self.late.append(Late(self.clock.time() + seconds + chance * 50, argv))
        if answer == "killed":
            raise Killed
        if answer is None:
            self.clock.sleep(seconds)
            raise subprocess.TimeoutExpired(argv, seconds)
        return said if answer == () or said[0] else answer

    def _answered(
        self, argv: Sequence[str], fault: str, chance: float, seconds: float
    ) -> tuple[int, str, str]:
        if fault == "gate killed":
            raise Killed
        if fault == "slow":
            self.clock.sleep(seconds)
            raise subprocess.TimeoutExpired(argv, seconds)
        if fault in ("died", "no controller", "denied"):
            return CHANGES[{"died": "died before"}.get(fault, fault)][1]
        code, out, error = self._on_slurm(argv, "gate")
        if fault == "cut":
            out = out[: int(chance * len(out))].rstrip("\n")
        elif fault == "other cluster":
            out = out.replace("node0", "cn")
        elif fault in ("garbage", "empty"):
            out = "\0\ufffd{<html>\n" if fault == "garbage" else ""
        return code, out, error

    def _on_slurm(self, argv: Sequence[str], actor: str) -> tuple[int, str, str]:
        before = self._members()
        answer = self.slurm.run(argv, actor)
        if actor == "gate":
            self.passed_inside |= dict.fromkeys(self._members() - before, False)
        if self.real:
            answer = self.real.run(argv, actor, answer)
        return answer

    def _do_late(self) -> None:
        due = [late for late in self.late if late.moment <= self.clock.time()]
        for late in due:
            self.late.remove(late)
            self.told.append(f"   late: {' '.join(late.argv)[:150]}")
            now, self.clock.now = self.clock.now, late.moment
            self._on_slurm(late.argv, "gate")
            self.clock.now = now

    # ---- the rest of the world

    def _now(self, zone: tzinfo) -> datetime:
        return datetime.fromtimestamp(self.clock.time(), zone)

    def _runs(self, name: str) -> bool:
        node = self.slurm.nodes[name]
        silent = node.silent(self.clock.time())
        return not (node.drained or node.base == "DOWN" or silent)

    def _measured(self, name: str) -> None:
        self.newest[name] = (self.clock.time(), BAD if name in self.broken else GOOD)

    def _reframe(self, argv: Sequence[str], _received: object, **_keys: object) -> int:
        """A retest: the nodes of the reservation that run jobs are measured."""
        self.clock.sleep(1)
        nodes = next(word for word in argv if word.startswith("nodes=")).removeprefix("nodes=")
        for name in nodesets.parse(nodes):
            if self._runs(name) and name in self._members():
                self._measured(name)
                self.passed_inside[name] = name not in self.broken
        return 0

    def _judged(self) -> tuple[Any, Any]:
        """The judgement on the newest values and the nodes' states, worked out once."""
        newest = tuple(self.newest.items())
        known = JUDGED.setdefault(self.world.sites, {})
        if newest not in known:
            found = []
            for number, (name, (moment, value)) in enumerate(newest):
                time = datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds")
                found += fleets.run_of({name: value}, number, time=time)
            judged = fleets.judged(self.site, found)
            known[newest] = judged, states.report(judged)
        return known[newest]


def _is_anothers(found: object) -> bool:
    return found is not None and found.maker == "person"


def _site(world: World) -> sites.Site:
    shutil.rmtree(world.data, ignore_errors=True)
    world.data.mkdir()
    if world.sites in SITES:
        return SITES[world.sites]
    fleets.write_site(world.sites, criteria=fleets.CRITERIA)
    path = world.sites / "here/system.yaml"
    text = path.read_text().replace("n[001-008]", "node[001-008]")
    slurm = "scheduler: slurm, access: ['--partition=compute']"
    path.write_text(text.replace("scheduler: local", slurm))
    return SITES.setdefault(world.sites, sites.load("here"))
