"""States of nodes and jobs as Slurm spells them, from 22.05 on.

A node has one base state and any number of flags. `scontrol` writes all of them
(`IDLE+DRAIN+NOT_RESPONDING`); `sinfo` writes one word, which may stand for several flags
(`drained`, `maint`), and one character for one more (`idle*`). Both end in the same record, so that
checks and gate judge a node alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Base(StrEnum):
    """What Slurm knows of a node at all."""

    IDLE = "IDLE"
    ALLOCATED = "ALLOCATED"
    MIXED = "MIXED"
    DOWN = "DOWN"
    ERROR = "ERROR"
    FUTURE = "FUTURE"
    UNKNOWN = "UNKNOWN"


class Flag(StrEnum):
    """What Slurm adds to the base state; the names are those of `scontrol show node`."""

    BLOCKED = "BLOCKED"
    CLOUD = "CLOUD"
    COMPLETING = "COMPLETING"
    DRAIN = "DRAIN"
    DYNAMIC_FUTURE = "DYNAMIC_FUTURE"
    DYNAMIC_NORM = "DYNAMIC_NORM"
    EXTERNAL = "EXTERNAL"
    FAIL = "FAIL"
    INVALID_REG = "INVALID_REG"
    MAINTENANCE = "MAINTENANCE"
    NOT_RESPONDING = "NOT_RESPONDING"
    PERFCTRS = "PERFCTRS"
    PLANNED = "PLANNED"
    POWER_DOWN = "POWER_DOWN"
    POWER_UP = "POWER_UP"
    POWERED_DOWN = "POWERED_DOWN"
    POWERING_DOWN = "POWERING_DOWN"
    POWERING_UP = "POWERING_UP"
    REBOOT_CANCEL = "REBOOT_CANCEL"
    REBOOT_ISSUED = "REBOOT_ISSUED"
    REBOOT_REQUESTED = "REBOOT_REQUESTED"
    RESERVED = "RESERVED"
    RESUME = "RESUME"
    UNDRAIN = "UNDRAIN"


# sinfo's words that are no name of a base state or flag, long and short form.
_WORDS: dict[str, tuple[Base, Flag | None]] = {
    "ALLOC": (Base.ALLOCATED, None),
    "MIX": (Base.MIXED, None),
    "UNK": (Base.UNKNOWN, None),
    "FUTR": (Base.FUTURE, None),
    "DRAINED": (Base.IDLE, Flag.DRAIN),
    "DRAIN": (Base.IDLE, Flag.DRAIN),
    "DRAINING": (Base.ALLOCATED, Flag.DRAIN),
    "DRNG": (Base.ALLOCATED, Flag.DRAIN),
    "FAIL": (Base.IDLE, Flag.FAIL),
    "FAILING": (Base.ALLOCATED, Flag.FAIL),
    "FAILG": (Base.ALLOCATED, Flag.FAIL),
    "COMPLETING": (Base.IDLE, Flag.COMPLETING),
    "COMP": (Base.IDLE, Flag.COMPLETING),
    "MAINT": (Base.IDLE, Flag.MAINTENANCE),
    "RESERVED": (Base.IDLE, Flag.RESERVED),
    "RESV": (Base.IDLE, Flag.RESERVED),
    "PLANNED": (Base.IDLE, Flag.PLANNED),
    "PLND": (Base.IDLE, Flag.PLANNED),
    "BLOCKED": (Base.IDLE, Flag.BLOCKED),
    "BLOCK": (Base.IDLE, Flag.BLOCKED),
    "PERFCTRS": (Base.IDLE, Flag.PERFCTRS),
    "NPC": (Base.IDLE, Flag.PERFCTRS),
    "INVAL": (Base.IDLE, Flag.INVALID_REG),
    "REBOOT": (Base.IDLE, Flag.REBOOT_REQUESTED),
    "BOOT": (Base.IDLE, Flag.REBOOT_REQUESTED),
    # A flag alone: Slurm writes it so for a node of which it knows nothing else.
    "CANCEL_REBOOT": (Base.UNKNOWN, Flag.REBOOT_CANCEL),
    "CANC_R": (Base.UNKNOWN, Flag.REBOOT_CANCEL),
    "EXT": (Base.UNKNOWN, Flag.EXTERNAL),
    "RESM": (Base.UNKNOWN, Flag.RESUME),
    "POW_DN": (Base.UNKNOWN, Flag.POWER_DOWN),
    "POW_UP": (Base.UNKNOWN, Flag.POWER_UP),
    "POWRING_DN": (Base.UNKNOWN, Flag.POWERING_DOWN),
    "POWERED_DN": (Base.UNKNOWN, Flag.POWERED_DOWN),
}
_SUFFIXES = {
    "*": Flag.NOT_RESPONDING,
    "~": Flag.POWERED_DOWN,
    "#": Flag.POWERING_UP,
    "!": Flag.POWER_DOWN,
    "%": Flag.POWERING_DOWN,
    "$": Flag.MAINTENANCE,
    "@": Flag.REBOOT_REQUESTED,
    "^": Flag.REBOOT_ISSUED,
    "-": Flag.PLANNED,
}
_BASES = {base.value: base for base in Base}
_FLAGS = {flag.value: flag for flag in Flag}
# Only a person, or the node's return, ends these. The gate leaves such a node alone.
_OUT_BASES = frozenset({Base.DOWN, Base.ERROR, Base.FUTURE, Base.UNKNOWN})
_OUT_FLAGS = frozenset({Flag.DRAIN, Flag.FAIL})
# These end by themselves, but until then no job starts.
_PASSING = frozenset({Flag.INVALID_REG, Flag.REBOOT_ISSUED})
_POWER = frozenset({Flag.POWER_DOWN, Flag.POWERED_DOWN, Flag.POWERING_DOWN, Flag.POWERING_UP})
_NOT_IDLE = frozenset({Flag.BLOCKED, Flag.COMPLETING, Flag.PERFCTRS, Flag.PLANNED})
# Of a node with one of these no silence is a fault: it is off, it starts, or it is not there yet.
_NOT_DEAD = _POWER | {
    Flag.CLOUD,
    Flag.DYNAMIC_FUTURE,
    Flag.PLANNED,
    Flag.REBOOT_ISSUED,
    Flag.REBOOT_REQUESTED,
}
_RESERVED = frozenset({Flag.MAINTENANCE, Flag.RESERVED})


@dataclass(frozen=True)
class NodeState:
    """A node's state. said: as Slurm wrote it. strange: words that this release does not know.

    A flag that a later Slurm adds leaves the judgement to the others: so far most flags only
    describe a node that takes jobs (PLANNED, DYNAMIC_NORM, BLOCKED, EXTERNAL), and a job that
    waits is better than losing all nodes of a cluster by its update. A base state that is not known
    is UNKNOWN, and the node is not used.
    """

    said: str
    base: Base = Base.UNKNOWN
    flags: frozenset[Flag] = frozenset()
    strange: frozenset[str] = frozenset()

    @property
    def words(self) -> frozenset[str]:
        """Base state and flags, such as IDLE and DRAIN."""
        return frozenset({self.base.value, *(flag.value for flag in self.flags), *self.strange})

    @property
    def in_words(self) -> str:
        """As Slurm wrote it, with words for the characters that sinfo puts after it."""
        bare, flags = _without_suffix(self.said)
        words = ", ".join(flag.value.replace("_", " ").lower() for flag in sorted(flags))
        return f"{bare} ({words})" if words else bare

    @property
    def taken_out(self) -> frozenset[str]:
        """The states in which the node takes no job until an operator or its return ends them."""
        out = {base.value for base in _OUT_BASES if base is self.base}
        return frozenset(out | {flag.value for flag in self.flags & _OUT_FLAGS})

    @property
    def usable(self) -> bool:
        """Whether a job on the node starts, now or when the jobs before it have ended.

        A node that power saving has switched off is usable, though it does not answer: a job wakes
        it. sinfo leaves out its silence, too.
        """
        passing = self.flags & _PASSING or self._about_to_reboot
        silent = self.silent and not self.flags & _POWER
        return not (self.taken_out or passing or silent)

    @property
    def idle(self) -> bool:
        """Whether a job on the node would start now."""
        return self.usable and self.base is Base.IDLE and not self.flags & _NOT_IDLE

    @property
    def unasked(self) -> bool:
        """Whether slurmctld has started and not heard of the node since."""
        return self.base is Base.UNKNOWN and "UNKNOWN" in self.said.upper()

    @property
    def reserved(self) -> bool:
        """Whether only jobs in a reservation may run on the node."""
        return bool(self.flags & _RESERVED)

    @property
    def drains(self) -> bool:
        """Whether jobs that run on the node go on, and no other begins."""
        return Flag.DRAIN in self.flags

    @property
    def silent(self) -> bool:
        """Whether the node does not answer Slurm."""
        return Flag.NOT_RESPONDING in self.flags

    @property
    def dead(self) -> bool:
        """Whether the node is gone, and nobody has drained it."""
        return self.gone and not self.flags & _OUT_FLAGS

    @property
    def gone(self) -> bool:
        """Whether the node is down or does not answer.

        Not of a node that is powered down, reboots, or is one of a cloud or of the future.
        """
        down = self.base is Base.DOWN or self.silent
        planned = self.flags & _NOT_DEAD or self.base is Base.FUTURE
        return down and not planned

    @property
    def _about_to_reboot(self) -> bool:
        """sinfo's `reboot` hides DOWN and DRAIN; a node with jobs takes more until they end."""
        busy = self.base in (Base.ALLOCATED, Base.MIXED)
        return Flag.REBOOT_REQUESTED in self.flags and not busy


def node_state(said: str) -> NodeState:
    """Read a node's state as scontrol or sinfo write it, in the long or the short form."""
    first, *others = said.upper().split("+")
    name, flags = _without_suffix(first)
    base, flag = _WORDS.get(name) or (_BASES.get(name, Base.UNKNOWN), _FLAGS.get(name))
    flags |= {flag} if flag else set()
    strange = set() if name in _WORDS or name in _BASES or name in _FLAGS else {name}
    for other in others:
        name, more = _without_suffix(other)
        flags |= more
        if not name:  # sinfo's `allocated+`
            flags.add(Flag.COMPLETING)
        elif name in _FLAGS:
            flags.add(_FLAGS[name])
        elif name in _BASES:
            base = _BASES[name]  # ALLOCATED+DOWN, as releases before 22.05 wrote it
        else:
            strange.add(name)
    return NodeState(said, base, frozenset(flags), frozenset(strange - {""}))


def _without_suffix(name: str) -> tuple[str, set[Flag]]:
    bare = name.rstrip("".join(_SUFFIXES))
    return bare, {_SUFFIXES[character] for character in name[len(bare) :]}


def without_resizing(state: str | None) -> str | None:
    """A job's states, with commas between, without the records from before it lost a node.

    Slurm keeps them for ever as RESIZING, next to the record of what is left of the job.
    """
    if not state:
        return state
    left = [s for s in state.split(",") if s != "RESIZING"]
    return ",".join(left) or "RUNNING"
