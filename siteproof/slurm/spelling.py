"""States of nodes and jobs as Slurm spells them, from 22.05 on.

A node has one base state and any number of flags. `scontrol` writes all of them
(`IDLE+DRAIN+NOT_RESPONDING`); `sinfo` writes one word, which may stand for several flags
(`drained`, `maint`), and one character for one more (`idle*`). Both end in the same record, so that
checks and gate judge a node alike.
"""

from __future__ import annotations

from dataclasses import dataclass

BASES = ("IDLE", "ALLOCATED", "MIXED", "DOWN", "ERROR", "FUTURE", "UNKNOWN")
# What sinfo has one word for, with that word in its long and its short form.
_SINFO = {
    "ALLOCATED": ("ALLOC",),
    "MIXED": ("MIX",),
    "UNKNOWN": ("UNK",),
    "FUTURE": ("FUTR",),
    "IDLE+DRAIN": ("DRAINED", "DRAIN"),
    "ALLOCATED+DRAIN": ("DRAINING", "DRNG"),
    "IDLE+FAIL": ("FAIL",),
    "ALLOCATED+FAIL": ("FAILING", "FAILG"),
    "IDLE+COMPLETING": ("COMPLETING", "COMP"),
    "IDLE+MAINTENANCE": ("MAINT",),
    "IDLE+RESERVED": ("RESERVED", "RESV"),
    "IDLE+PLANNED": ("PLANNED", "PLND"),
    "IDLE+BLOCKED": ("BLOCKED", "BLOCK"),
    "IDLE+PERFCTRS": ("PERFCTRS", "NPC"),
    "IDLE+INVALID_REG": ("INVAL",),
    "IDLE+REBOOT_REQUESTED": ("REBOOT", "BOOT"),
    # A flag alone: Slurm writes it so for a node of which it knows nothing else.
    "REBOOT_CANCEL": ("CANCEL_REBOOT", "CANC_R"),
    "EXTERNAL": ("EXT",),
    "RESUME": ("RESM",),
    "POWER_DOWN": ("POW_DN",),
    "POWER_UP": ("POW_UP",),
    "POWERING_DOWN": ("POWRING_DN",),
    "POWERED_DOWN": ("POWERED_DN",),
}
_WORDS = {name: state for state, names in _SINFO.items() for name in names}
_SUFFIXES = {
    "*": "NOT_RESPONDING",
    "~": "POWERED_DOWN",
    "#": "POWERING_UP",
    "!": "POWER_DOWN",
    "%": "POWERING_DOWN",
    "$": "MAINTENANCE",
    "@": "REBOOT_REQUESTED",
    "^": "REBOOT_ISSUED",
    "-": "PLANNED",
}
# Only a person, or the node's return, ends these. The gate leaves such a node alone.
_DRAINED = {"DRAIN", "FAIL"}
_OUT = _DRAINED | {"DOWN", "ERROR", "FUTURE", "UNKNOWN"}
# These end by themselves, but until then no job starts.
_PASSING = {"INVALID_REG", "REBOOT_ISSUED"}
_POWER = {"POWER_DOWN", "POWERED_DOWN", "POWERING_DOWN", "POWERING_UP"}
_NOT_IDLE = {"BLOCKED", "COMPLETING", "PERFCTRS", "PLANNED"}
# Of a node with one of these no silence is a fault: it is off, it starts, or it is not there yet.
_ABSENT = {"CLOUD", "DYNAMIC_FUTURE", "FUTURE", "PLANNED", "REBOOT_ISSUED", "REBOOT_REQUESTED"}


@dataclass(frozen=True)
class NodeState:
    """A node's state. said: as Slurm wrote it. words: base state and flags, as scontrol has them.

    A flag that a later Slurm adds leaves the judgement to the others: so far most flags only
    describe a node that takes jobs (PLANNED, DYNAMIC_NORM, BLOCKED, EXTERNAL), and a job that
    waits is better than losing all nodes of a cluster by its update. A base state that is not known
    is UNKNOWN, and the node is not used.
    """

    said: str
    words: frozenset[str]

    @property
    def in_words(self) -> str:
        """As Slurm wrote it, with words for the characters that sinfo puts after it."""
        bare, flags = _without_suffix(self.said)
        words = ", ".join(flag.replace("_", " ").lower() for flag in sorted(flags))
        return f"{bare} ({words})" if words else bare

    @property
    def taken_out(self) -> frozenset[str]:
        """The states in which the node takes no job until an operator or its return ends them."""
        return self.words & _OUT

    @property
    def usable(self) -> bool:
        """Whether a job on the node starts, now or when the jobs before it have ended.

        A node that power saving has switched off is usable, though it does not answer: a job wakes
        it. sinfo leaves out its silence, too. Its `reboot` hides DOWN and DRAIN; a node with jobs
        takes more until they end.
        """
        busy = self.words & {"ALLOCATED", "MIXED"}
        reboots = "REBOOT_REQUESTED" in self.words and not busy
        silent = self.silent and not self.words & _POWER
        return not (self.words & (_OUT | _PASSING) or reboots or silent)

    @property
    def idle(self) -> bool:
        """Whether a job on the node would start now."""
        return self.usable and "IDLE" in self.words and not self.words & _NOT_IDLE

    @property
    def unasked(self) -> bool:
        """Whether slurmctld has started and not heard of the node since."""
        return "UNKNOWN" in self.words and "UNKNOWN" in self.said.upper()

    @property
    def reserved(self) -> bool:
        """Whether only jobs in a reservation may run on the node."""
        return not self.words.isdisjoint({"MAINTENANCE", "RESERVED"})

    @property
    def drains(self) -> bool:
        """Whether jobs that run on the node go on, and no other begins."""
        return "DRAIN" in self.words

    @property
    def silent(self) -> bool:
        """Whether the node does not answer Slurm."""
        return "NOT_RESPONDING" in self.words

    @property
    def dead(self) -> bool:
        """Whether the node is gone, and nobody has drained it."""
        return self.gone and not self.words & _DRAINED

    @property
    def gone(self) -> bool:
        """Whether the node is down or does not answer.

        Not of a node that is powered down, reboots, or is one of a cloud or of the future.
        """
        return ("DOWN" in self.words or self.silent) and not self.words & (_POWER | _ABSENT)


def node_state(said: str) -> NodeState:
    """Read a node's state as scontrol or sinfo write it, in the long or the short form."""
    first, *others = said.upper().split("+")
    bare, found = _without_suffix(first)
    words = _WORDS.get(bare, bare).split("+")
    for other in others:
        bare, flags = _without_suffix(other)
        words.append(bare or "COMPLETING")  # sinfo's `allocated+`
        found |= flags
    # Releases before 22.05 wrote ALLOCATED+DOWN: the last counts.
    base = [name for name in words if name in BASES][-1:] or ["UNKNOWN"]
    return NodeState(said, frozenset({*base, *found, *words} - ({"", *BASES} - {*base})))


def _without_suffix(name: str) -> tuple[str, set[str]]:
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
