"""What sinfo, scontrol and sacctmgr print of nodes, reservations and events: text in, records out.

Only forms that are the same from Slurm 22.05 to 26.05 are read: `sinfo -o` with our own format,
`scontrol -o`, and `sacctmgr -nP show event`. Their JSON has another shape with each release's
plugin. Times are in seconds since 1970 (SLURM_TIME_FORMAT=%s), so that no daylight saving matters.
An event may still last, and events of a node may overlap.

What sacct prints of jobs: text in, records out. Read alike from 22.05 to 24.11.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from ClusterShell.NodeSet import NodeSet

from siteproof import nodesets
from siteproof.errors import UserError, harmless
from siteproof.slurm.spelling import NodeState, node_state

EVENTS_FORMAT = "Cluster,NodeName,TimeStart,TimeEnd,State,StateRaw,Reason"
_SWITCH = re.compile(r"^SwitchName=([\w.-]{1,100}) Level=0 .*?\bNodes=(\S+)", re.MULTILINE)
_EVENT_LINE = re.compile(
    r"([^|\n]{1,250})\|([^|\n]{0,250})\|([0-9]{1,11})\|([0-9]{1,11}|Unknown)\|"
    r"([^|\n]{0,100})\|([0-9]{0,10})\|(.*)"
)
MAX_REASON = 200  # letters


@dataclass(frozen=True)
class NodeEvent:
    """A time in which a node had a state. node: empty for the cluster's own events.

    start, end: seconds since 1970; end: None while it lasts. registered: of the cluster's own
    events, whether its controller was known to slurmdbd in that time, and not disconnected.
    """

    node: str
    start: int
    end: int | None
    state: NodeState
    reason: str = ""
    registered: bool = False

    @property
    def down(self) -> bool:
        """Whether the node took no job: down, drained, failing, rebooting or in maintenance."""
        return not self.state.usable or "MAINTENANCE" in self.state.words

    @property
    def backwards(self) -> bool:
        """Whether it ends before it starts, as where a clock was set back."""
        return self.end is not None and self.end < self.start


@dataclass(frozen=True)
class EventList:
    """Events in the order in which they were printed, and how many lines were not understood."""

    events: tuple[NodeEvent, ...]
    strange: int = 0

    @property
    def of_nodes(self) -> list[NodeEvent]:
        """The events of nodes."""
        return [event for event in self.events if event.node]

    @property
    def of_cluster(self) -> list[NodeEvent]:
        """Registrations and disconnections of the controller."""
        return [event for event in self.events if not event.node]


def parse_events(text: str) -> EventList:
    """Read `sacctmgr -nP show event format=EVENTS_FORMAT`.

    A reason comes last and may have several lines, so a line that is no event belongs to the
    reason before it.
    """
    events: list[NodeEvent] = []
    strange = 0
    for line in text.splitlines():
        event = _event(line)
        if event:
            events.append(event)
        elif not events or "|" in line:  # no reason of ours has one, and a cut line has
            strange += 1
    return EventList(tuple(events), strange)


def _event(line: str) -> NodeEvent | None:
    match = _EVENT_LINE.fullmatch(line)
    if not match or not nodesets.is_name(match[2]):
        return None
    node, start, reason = match[2], int(match[3]), harmless(match[7])[:MAX_REASON]
    end = None if match[4] in ("Unknown", "0") else int(match[4])
    state = node_state(match[5] or "UNKNOWN")
    return NodeEvent(node, start, end, state, reason, not node and match[6] == "0")


SINFO_FORMAT = "%N|%T|%E"
NOT_SET = 1  # MiB: RealMemory of nodes for which slurm.conf has none
MEMORY_FORMAT = "%N|%m"
HOSTS_FORMAT = "%N|%n|%o"
_STATE = re.compile(r" State=(\S+)(?=\s)")  # a blank must follow, or the line was cut within it
_BOOTED = re.compile(r" BootTime=(\d{1,12}) ")
# What people write comes last, and may hold what looks like a field. 26.05 ends with these.
_LAST = re.compile(r" (Reason|Comment|Extra|InstanceId|InstanceType|ReservationName)=")
LONGEST_TIME = 10  # digits of seconds since 1970: until 2286
_STAMP = re.compile(r" \[([^\s\]]+)@(\d[\dT:.-]*)\]")  # after a reason: who and when
_FIELD = re.compile(r" \w+=")
_RESERVATION = re.compile(
    r"ReservationName=(.+?) StartTime=(\d+) .*? Nodes=(\S*) NodeCnt=(?:[^\n]*? Users=(\S+))?",
    re.DOTALL,
)


@dataclass(frozen=True)
class Node:
    """A node in Slurm. reason, comment: what people or Slurm wrote; sinfo has no comment.

    by: the user who wrote the reason. booted: seconds since 1970, 0 if that is not known; since:
    the same, when the reason was written.
    """

    name: str
    state: NodeState = node_state("IDLE")
    reason: str = ""
    comment: str = ""
    by: str = ""
    booted: int = 0
    since: int = 0

    def __str__(self) -> str:
        """State and reason in words."""
        state = self.state.in_words
        known = not self.reason or self.reason.lower() in state  # "down (not responding)"
        return state if known else f"{state}: {self.reason}"


@dataclass(frozen=True)
class Reservation:
    """A reservation. start: seconds since 1970, which with the name identifies it.

    users: who may run jobs in it; empty where accounts or groups decide.
    """

    name: str
    start: int
    nodes: NodeSet
    users: tuple[str, ...] = ()


def parse_sinfo(text: str) -> dict[str, Node]:
    """Read `sinfo -h -N -o SINFO_FORMAT`; of a node in several partitions the worst line stays."""
    found: dict[str, Node] = {}
    for line in text.splitlines():
        name, _, rest = line.strip().partition("|")
        state, bar, reason = rest.partition("|")
        if not name or not bar:
            continue  # a cut line, or no line of sinfo's
        if name not in found or found[name].state.usable:
            found[name] = Node(name, node_state(state), "" if reason == "none" else reason)
    return found


def parse_memory(text: str) -> dict[str, int]:
    """Read `sinfo -h -N -o MEMORY_FORMAT`: MiB by node; none for a node without RealMemory."""
    found = {}
    for line in text.splitlines():
        name, _, size = line.strip().partition("|")
        if name and size.isascii() and size.isdigit() and len(size) < 13 and int(size) > NOT_SET:
            found[name] = int(size)
    return found


def parse_hosts(text: str) -> dict[str, list[str]]:
    """Read `sinfo -h -N -o HOSTS_FORMAT`: NodeHostName and NodeAddr by NodeName."""
    rows = (line.strip().split("|") for line in text.splitlines())
    return {row[0]: sorted(set(row[1:])) for row in rows if len(row) == 3}


def parse_settings(text: str) -> dict[str, str]:
    """Read `scontrol show config`."""
    rows = (line.partition("=") for line in text.splitlines())
    return {key.strip(): value.strip() for key, found, value in rows if found}


def parse_switches(text: str) -> dict[str, NodeSet]:
    """Read `scontrol show topology`: the nodes of each switch that has nodes itself."""
    found = {}
    for name, nodes in _SWITCH.findall(text):
        with suppress(ValueError):
            found[name] = nodesets.parse(nodes)
    return found


def parse_nodes(text: str) -> dict[str, Node]:
    """Read `scontrol -o show nodes`. Raises UserError for a node that is listed twice."""
    found: dict[str, Node] = {}
    for line in text.splitlines(keepends=True):
        name, _, rest = line.removeprefix("NodeName=").partition(" ")
        state = _STATE.search(f" {rest}")
        if not line.startswith("NodeName=") or state is None:
            continue  # the second line of a comment
        if name in found:
            raise UserError("scontrol", f"lists node {name} twice")
        booted = _BOOTED.search(_LAST.split(rest, maxsplit=1)[0] + " ")
        at = int(booted[1]) if booted else 0
        reason, comment, by, since = _words(rest)
        found[name] = Node(name, node_state(state[1]), reason, comment, by, at, since)
    return found


def _words(rest: str) -> tuple[str, str, str, int]:
    """Reason and comment of a node, and who wrote the reason, and when."""
    match = _LAST.search(rest)
    if match is None:
        return "", "", "", 0
    reason, by, when, text = "", "", "", rest[match.start() :]
    if match[1] == "Reason":
        reason, text = rest[match.end() :], ""
        if stamp := _STAMP.search(reason):
            by, when, text = stamp[1], stamp[2], reason[stamp.end() :]
            reason = reason[: stamp.start()]
    following = _LAST.search(text)
    comment = text[following.end() :] if following and following[1] == "Comment" else ""
    # Ours holds no '=', so the next field ends it; of another's only the beginning matters.
    comment = _FIELD.split(comment, maxsplit=1)[0].strip() or comment.strip()
    since = int(when) if when.isdigit() and len(when) <= LONGEST_TIME else 0
    return harmless(reason.strip()), harmless(comment), harmless(by), since


def parse_reservations(text: str) -> dict[str, Reservation]:
    """Read `scontrol -o show reservations`, times in seconds. Raises UserError."""
    found = {}
    for name, start, nodes, users in _RESERVATION.findall(text):
        try:
            of_it = nodesets.parse("" if nodes == "(null)" else nodes)
        except ValueError as error:
            raise UserError("scontrol", f"reservation {name}: {error}") from None
        may = () if users in ("", "(null)") else tuple(users.split(","))
        found[name] = Reservation(name, int(start), of_it, may)
    return found


def unusable(
    expected: Iterable[str], nodes: Mapping[str, Node], *, outside: bool = False
) -> dict[str, str]:
    """The expected nodes that cannot take a job, each with the reason.

    outside: the job runs in no reservation, so it would wait for ever for a reserved node.
    """
    lost = {}
    for name in expected:
        if name not in nodes:
            lost[name] = "unknown to Slurm"
        elif not nodes[name].state.usable:
            lost[name] = str(nodes[name])
        elif outside and nodes[name].state.reserved:
            lost[name] = f"{nodes[name]}: in a reservation, and -J reservation=NAME is not given"
    return lost


FIELDS = (
    *("JobID", "State", "ExitCode", "Submit", "Start", "End", "ElapsedRaw", "NCPUS", "NodeList"),
    *("Partition", "AllocTRES", "Suspended", "CPUTimeRAW", "TotalCPU", "MaxRSS"),
)
_JOB = re.compile(r"([0-9]{1,10}(?:[_+](?:[0-9]{1,10}|\[[0-9,:%-]{1,200}\]))?)(\.[\w+.-]{1,200})?")
_TIME = re.compile(r"(?:([0-9]{1,5})-)?(?:([0-9]{1,2}):)?([0-9]{1,2}):([0-9]{2}(?:\.[0-9]{1,6})?)")
_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?)([KMGT]?)")
# Where none is accounted: 0, and NO_VAL and INFINITE of 32 and 64 bits.
_NO_ENERGY = (0, 2**32 - 2, 2**32 - 1, 2**64 - 2, 2**64 - 1)
_NOWHERE = ("", "None assigned", "None")
_NOT_OVER = ("PENDING", "RUNNING", "REQUEUED", "REQUEUE_HOLD", "RESIZING", "SUSPENDED")


@dataclass(frozen=True)
class JobRecord:
    """A job, task of an array, or component of a heterogeneous job: one run of it, as accounted.

    number: 12, 12_3 or 12+1. signal: that ended it; 0: none. submitted, start, end: seconds since
    1970; 0: not known. elapsed, suspended, processor_seconds (elapsed times processors), used (user
    and system time): seconds. resident: bytes at most in use by a task of it.
    """

    number: str
    state: str
    exit: int
    signal: int
    submitted: int
    start: int
    end: int
    elapsed: int
    processors: int
    nodes: NodeSet
    partition: str
    allocated: frozenset[str]
    suspended: float
    processor_seconds: int
    used: float
    resident: int = 0

    @property
    def over(self) -> bool:
        """Whether nothing more is to come of this run."""
        return self.end > 0 and self.state not in _NOT_OVER


def parse_jobs(text: str) -> list[JobRecord]:
    """Read `sacct -nPD -o FIELDS`, in its order; what is of steps is added to their job's record.

    Raises UserError for a line that is not understood.
    """
    found: list[JobRecord] = []
    for line in text.splitlines():
        cells = line.split("|")
        match = _JOB.fullmatch(cells[0])
        if not match or len(cells) != len(FIELDS):
            raise UserError("sacct", f"a line is not understood: '{harmless(line)[:80]}'")
        given = dict(zip(FIELDS, cells, strict=True))
        if not match[2]:
            found.append(_record(match[1], given))
        elif found and found[-1].number == match[1]:
            most = max(found[-1].resident, _bytes(given["MaxRSS"]))
            found[-1] = replace(found[-1], resident=most)
    return found


def parse_job_nodes(text: str) -> NodeSet:
    """Read `sacct -n -P -o nodelist` of a job: its nodes and those of its steps.

    While a job completes, Slurm lists it only with the nodes that have not ended yet; its steps
    keep theirs.
    """
    found = nodesets.of()
    for line in text.splitlines():
        with suppress(ValueError):
            nodes = nodesets.parse(line.strip())
            found.update(nodes if all(map(nodesets.is_name, nodes)) else "")  # None assigned
    return found


def parse_energy(text: str) -> dict[str, int]:
    """Read `sacct -n -P -o jobname,consumedenergyraw` of a job: joules by the name of its step.

    A step whose energy is not accounted is left out.
    """
    found: dict[str, int] = {}
    for line in text.splitlines():
        name, _, joules = line.rpartition("|")
        if re.fullmatch(r"[0-9]{1,20}", joules) and int(joules) not in _NO_ENERGY:
            found[name] = found.get(name, 0) + int(joules)
    return found


def last_runs(records: Iterable[JobRecord]) -> list[JobRecord]:
    """The last run of each job that was requeued, and all others."""
    return list({record.number: record for record in records}.values())


def seconds(text: str) -> float:
    """`[DAYS-][HOURS:]MINUTES:SECONDS` in seconds; 0 for what is none."""
    match = _TIME.fullmatch(text)
    if not match:
        return 0.0
    days, hours, minutes = (int(part or 0) for part in match.groups()[:3])
    return ((days * 24 + hours) * 60 + minutes) * 60 + float(match[4])


def _record(number: str, given: dict[str, str]) -> JobRecord:
    code, _, signal = given["ExitCode"].partition(":")
    nodes = given["NodeList"]
    try:
        where = nodesets.parse("" if nodes in _NOWHERE else nodes)
    except ValueError as error:
        raise UserError("sacct", f"job {number}: {error}") from None
    return JobRecord(
        number=number,
        state=harmless(given["State"].partition(" ")[0]),  # CANCELLED by 1000
        exit=_whole(code),
        signal=_whole(signal),
        submitted=_whole(given["Submit"]),
        start=_whole(given["Start"]),
        end=_whole(given["End"]),
        elapsed=_whole(given["ElapsedRaw"]),
        processors=_whole(given["NCPUS"]),
        nodes=where,
        partition=harmless(given["Partition"]),
        allocated=frozenset(filter(None, given["AllocTRES"].split(","))),
        suspended=seconds(given["Suspended"]),
        processor_seconds=_whole(given["CPUTimeRAW"]),
        used=seconds(given["TotalCPU"]),
    )


def _whole(text: str) -> int:
    """A whole number; 0 for what is none, such as Unknown or None."""
    return int(text) if re.fullmatch("[0-9]{1,12}", text) else 0


def _bytes(text: str) -> int:
    """A size such as 211500K in bytes; 0 for what is none."""
    match = _SIZE.fullmatch(text)
    return int(float(match[1]) * 1024 ** " KMGT".index(match[2] or " ")) if match else 0
