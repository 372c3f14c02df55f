"""scontrol commands from a decision and from what Slurm reports, as data; `act.py` runs them.

Slurm 22.05 has no comment on a reservation, so each node of ours carries the reason in its own
Comment, which `scontrol show node` prints. An empty `Nodes=` would let Slurm choose nodes, and
MAINT reservations may overlap unasked: neither is left to Slurm.

`run` starts a program, such as ReFrame, as a child process that ends when this process is to end,
however that comes.
"""

from __future__ import annotations

import ctypes
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from os import killpg
from pathlib import Path

from ClusterShell.NodeSet import NodeSet

from siteproof import nodesets
from siteproof.gate.decision import Decision, Ruling
from siteproof.record import finding
from siteproof.record.finding import Finding, Kind
from siteproof.slurm.records import Node, Reservation
from siteproof.wording.findings import fulls, shorten

MARK = "siteproof: "
# How the reasons begin that slurmctld, slurmd and NHC write by themselves, in lower case.
BY_SLURM = (
    "not responding",
    "node unexpectedly rebooted",
    "node not responding",
    "kill task failed",
    "prolog error",
    "epilog error",
    "low realmemory",
    "low tmpdisk",
    "low cpus",
    "low socket",
    "low gres",
    "gres/",
    "batch job complete failure",
    "duplicate jobid",
    "resumetimeout",
    "reboot timed out",
    "nhc:",
    "health check",
)
MAX_COMMENT = 200  # characters: one line of `sinfo -R` or `scontrol show node`


@dataclass(frozen=True)
class Cluster:
    """Nodes and reservations, as Slurm reported them at one time."""

    nodes: Mapping[str, Node]
    reservations: Mapping[str, Reservation] = field(default_factory=dict)

    def out_of_service(self, reservations: Collection[str]) -> NodeSet:
        """The nodes that take no users' jobs: in these reservations, drained, down or silent."""
        quarantined = [n for name in reservations for n in self.reservations[name].nodes]
        out = [n.name for n in self.nodes.values() if standing(n) is not Standing.IN_SERVICE]
        return nodesets.of([*quarantined, *out])

    def holders(self, node: str) -> list[str]:
        """The reservations that hold a node."""
        return [name for name, one in self.reservations.items() if node in one.nodes]


@dataclass(frozen=True)
class Command:
    """One scontrol command: what it is (create, update, users, delete, comment, drain, resume).

    added, released: the nodes that it puts into the reservation, or takes out of it. instead: what
    to run where Slurm refuses argv.
    """

    what: str
    argv: tuple[str, ...]
    nodes: str
    reservation: str = ""
    added: str = ""
    released: str = ""
    instead: tuple[str, ...] = ()

    def record(self) -> dict[str, object]:
        """For the log."""
        return {
            "what": self.what,
            "reservation": self.reservation,
            "nodes": self.nodes,
            "added": self.added,
            "released": self.released,
            "command": list(self.argv),
        }

    @property
    def of_nodes(self) -> bool:
        """Whether it needs the right to change nodes, which operators do not have."""
        return self.what in ("comment", "drain", "resume")


@dataclass(frozen=True)
class Plan:
    """What to do to one partition's nodes, and which nodes are left alone, with the reason.

    kept: the nodes whose comment is somebody else's, and stays.
    """

    commands: Sequence[Command] = ()
    left_alone: Mapping[str, Finding] = field(default_factory=dict)
    kept: Mapping[str, Finding] = field(default_factory=dict)


@dataclass(frozen=True)
class QuarantineOptions:
    """How to quarantine. users: who may run jobs inside.

    colleagues: the same, unless Slurm refuses them. may_overlap: reservations of others that ours
    may overlap. shown: findings with their values as all commands print them.
    """

    users: Sequence[str]
    campaign: str
    drain: bool = False
    may_overlap: Collection[str] = ()
    colleagues: Sequence[str] = ()
    shown: Callable[[Iterable[Finding]], Sequence[Finding]] = tuple


class Standing(Enum):
    """Who has taken a node out of service, if anybody has."""

    IN_SERVICE = "in service"
    DEAD = "dead"  # Slurm found it down or silent, and nobody drained it
    BY_US = "by us"
    BY_SLURM = "by Slurm"  # drained by Slurm or a health check
    BY_PERSON = "by a person"


def standing(node: Node) -> Standing:
    """Who has taken it out, by its state and the beginning of its reason."""
    by_slurm = node.reason.lower().startswith(BY_SLURM)
    set_down = "DOWN" in node.state.words  # its reason is then of today
    if node.state.dead and (by_slurm or not node.reason or not set_down):
        return Standing.DEAD
    if not (node.state.taken_out or node.state.dead):
        return Standing.IN_SERVICE
    if node.reason.startswith(MARK):
        return Standing.BY_US
    return Standing.BY_SLURM if by_slurm else Standing.BY_PERSON


class Refusal(Exception):
    """The gate does not act; the text is the reason, in one line. Exit code 1."""


def reservation_name(partition: str) -> str:
    """The name of a partition's quarantine: letters, digits, _ and -."""
    return "siteproof-" + re.sub(r"[^A-Za-z0-9_-]", "_", partition)


def text(ruling: Ruling, options: QuarantineOptions) -> str:
    """Comment or drain reason of a node: one line of printable ASCII; it ends with a command."""
    reasons = "; ".join(fulls(options.shown(ruling.findings))) or "no reason given"
    tail = _plain(f"; {options.campaign}; see: siteproof why {ruling.node}")
    head = _plain(f"{MARK}{ruling.state}: {reasons}")
    room = MAX_COMMENT - len(tail)
    return shorten(head, room) + tail


def _plain(words: str) -> str:
    """The text without characters that are special to Slurm, to a shell or to a terminal."""
    kept = "".join(c if c.isascii() and c.isprintable() else "?" for c in " ".join(words.split()))
    return re.sub(r"[\"'`$\\|=]", " ", kept)


def quarantine(
    partition: str,
    inventory: NodeSet,
    decision: Decision,
    cluster: Cluster,
    reservation: Reservation | None,
    options: QuarantineOptions,
    moved: Mapping[str, Finding],
) -> Plan:
    """Put the partition's nodes that stay out under its reservation, with those already there.

    ours: the reservation, if there is one and it is ours. moved: nodes that are not what they
    were when a person saw the plan; they are left alone.
    """
    name = reservation_name(partition)
    wanted = [n for n in inventory if n in decision.rulings and not decision.rulings[n].back]
    left = {}
    for node in wanted:
        if why := moved.get(node) or _untouchable(node, cluster, name, options.may_overlap):
            left[node] = why
    new = nodesets.of(n for n in wanted if n not in left)
    members = reservation.nodes if reservation else nodesets.of()
    commands = []
    if new and reservation is None:
        commands.append(_create(name, new, options))
    elif added := new - members:
        commands.append(_resize(name, new | members, added))
    texts = {n: text(decision.rulings[n], options) for n in new}
    reasons, kept = _reasons(texts, cluster, options.drain)
    return Plan(commands + reasons, left, kept)


def _reasons(
    texts: Mapping[str, str], cluster: Cluster, drain: bool
) -> tuple[list[Command], dict[str, Finding]]:
    """Each node's reason in its Comment, and the comments that others have written, which stay.

    drain: each node that is in service is drained, too.
    """
    commands, kept = [], {}
    for node, words in texts.items():
        comment = cluster.nodes[node].comment
        if comment and not comment.startswith(MARK):
            kept[node] = Finding(Kind.COMMENT_KEPT, node, message=comment)
        elif comment != words:
            commands.append(_node("comment", [node], f"Comment={words}"))
    if drain:
        in_service = [n for n in texts if not cluster.nodes[n].state.taken_out]
        commands += [_node("drain", [n], "State=DRAIN", f"Reason={texts[n]}") for n in in_service]
    return commands, kept


def _create(name: str, nodes: NodeSet, options: QuarantineOptions) -> Command:
    def words(users: Sequence[str]) -> tuple[str, ...]:
        return (
            "scontrol",
            "create",
            "reservation",
            f"ReservationName={name}",
            "StartTime=now",
            "Duration=UNLIMITED",
            f"Users={','.join(users)}",
            f"Nodes={nodes}",
            "Flags=MAINT,IGNORE_JOBS",
        )

    # Slurm refuses all users where it does not know one of them, or where one has no account.
    instead = words(options.users) if options.colleagues else ()
    argv = words([*options.users, *options.colleagues])
    return Command("create", argv, str(nodes), name, str(nodes), instead=instead)


def release(
    decision: Decision,
    cluster: Cluster,
    reservation: Reservation,
    inventory: NodeSet,
    members: NodeSet,
    tested: NodeSet,
    moved: Mapping[str, Finding],
) -> Plan:
    """Take the nodes that have passed out of the quarantine; the others stay, each with why.

    Of the other nodes of the inventory our comments and drains are taken away: a release may have
    been cut off. members: the nodes that the gate has put in; a colleague may have added others.
    tested: those that were measured since then; without a pass inside, a node stays drained. A node
    that is down stays.
    """
    absent = nodesets.of(node.name for node in cluster.nodes.values() if node.state.gone)
    ready = (decision.back & members & tested) - absent - nodesets.of(moved)
    passed, stay = reservation.nodes & ready, reservation.nodes - ready
    drained = nodesets.of(node.name for node in cluster.nodes.values() if drained_by_us(node))
    outside = inventory - reservation.nodes
    kept = stay | ((drained & outside) - ready)
    left = {n: moved.get(n) or _why_kept(n, decision, cluster, members) for n in kept}
    free = (passed | (outside & decision.back)) - kept
    known = [cluster.nodes[n] for n in free if n in cluster.nodes]
    name, commands = reservation.name, []
    if passed and stay:
        commands.append(_resize(name, stay, released=passed))
    elif passed:
        delete = ("scontrol", "delete", f"ReservationName={name}")
        commands.append(Command("delete", delete, str(passed), name, released=str(passed)))
    if marked := [n.name for n in known if n.comment.startswith(MARK)]:
        commands.append(_node("comment", marked, "Comment="))
    return Plan(commands + _resume(known), left)


def resume(
    cluster: Cluster, reservation: Reservation, user: str, moved: Mapping[str, Finding]
) -> Plan:
    """Make the reservation's nodes able to run the user's jobs; what others took out stays so."""
    known = [cluster.nodes[n] for n in reservation.nodes - nodesets.of(moved) if n in cluster.nodes]
    left = {n: unknown(n) for n in reservation.nodes if n not in cluster.nodes}
    left |= {n: why for n, why in moved.items() if n in reservation.nodes}
    out = (Standing.BY_SLURM, Standing.BY_PERSON, Standing.DEAD)
    left |= {n.name: taken_out(n) for n in known if standing(n) in out}
    name = reservation.name
    words = ("scontrol", "update", f"ReservationName={name}", f"Users+={user}")
    may = not reservation.users or user in reservation.users
    admit = [] if may else [Command("users", words, str(reservation.nodes), name)]
    return Plan(admit + _resume(known), left)


def lack(command: Command, cluster: Cluster) -> str:
    """What Slurm does not have of a command's effect; empty if it has all of it."""
    reservation = cluster.reservations.get(command.reservation)
    if command.what in ("create", "update"):
        found = str(reservation.nodes) if reservation else "no such reservation"
        wrong = found != command.nodes
        return f"Slurm has {found} where {command.nodes} was requested" if wrong else ""
    if command.what == "users":
        user = command.argv[-1].removeprefix("Users+=")
        there = reservation is not None and user in reservation.users
        return "" if there else f"{user} is not among the reservation's users"
    if command.what == "delete":
        return f"reservation {command.reservation} is still there" if reservation else ""
    return _not_in_force(command, cluster)


def _not_in_force(command: Command, cluster: Cluster) -> str:
    """On which nodes a comment, a drain or a resume is not in force."""
    nodes = [cluster.nodes[n] for n in nodesets.parse(command.nodes) if n in cluster.nodes]
    if command.what == "comment":
        comment = command.argv[-1].removeprefix("Comment=")
        without = [node.name for node in nodes if node.comment != comment]
    else:
        drains = command.what == "drain"
        without = [node.name for node in nodes if node.state.drains is not drains]
    return f"{command.what} is not in force on {nodesets.of(without)}" if without else ""


def changed(before: Cluster, now: Cluster, nodes: Iterable[str]) -> dict[str, Finding]:
    """The nodes that are not what they were when the plan was made, each with both.

    A job that begins or ends is no change.
    """
    found = {}
    for node in nodes:
        old, new = before.nodes.get(node), now.nodes.get(node)
        holders = [cluster.holders(node) for cluster in (before, now)]
        if old is None or new is None or _standing(old) != _standing(new):
            texts = [described(old), described(new)]
        elif holders[0] != holders[1]:
            texts = [f"in {', '.join(names) or 'no reservation'}" for names in holders]
        else:
            continue
        details = {"before": texts[0], "after": texts[1]}
        found[node] = finding.of(Kind.STATE_CHANGED, details, subject=node)
    return found


def described(node: Node | None) -> str:
    """A node's state and reason, as Slurm prints them."""
    if node is None:
        return "unknown to Slurm"
    return f"{state_of(node)}: {node.reason}" if node.reason else state_of(node)


def state_of(node: Node) -> str:
    """The words of its state, as in `down+drain`.

    Without those that our reservation adds, and without the silence of a node that is down, which
    comes a little later.
    """
    silence = {"NOT_RESPONDING"} if "DOWN" in node.state.words else set()
    words = node.state.words - {"MAINTENANCE", "RESERVED"} - silence
    return "+".join(sorted(words)).lower()


def taken_out(node: Node) -> Finding:
    """That Slurm, a health check or a person has taken a node out of service."""
    if standing(node) is Standing.BY_SLURM:
        details, kind = {"state": state_of(node)}, Kind.TAKEN_OUT_BY_SLURM
    else:
        details, kind = {"state": state_of(node)}, Kind.TAKEN_OUT
        details |= {"by": node.by} if node.by else {}
    return _reported(kind, details, node)


def unknown(node: str) -> Finding:
    """That Slurm does not have a node."""
    return Finding(Kind.UNKNOWN_TO_SLURM, node)


def not_responding(node: Node) -> Finding:
    """That a node is down or does not answer."""
    return _reported(Kind.NOT_RESPONDING, {"state": state_of(node)}, node)


def _reported(kind: Kind, details: Mapping[str, str], node: Node) -> Finding:
    """With the reason that Slurm has, and since when."""
    since = f"{datetime.fromtimestamp(node.since, UTC):%Y-%m-%dT%H:%M:%S+00:00}" * bool(node.since)
    return finding.of(kind, details, subject=node.name, message=node.reason, since=since)


def out_of_service(node: Node) -> Finding | None:
    """Why a node takes no users' jobs; None if it does."""
    who = standing(node)
    if who is Standing.IN_SERVICE:
        return None
    return not_responding(node) if who is Standing.DEAD else taken_out(node)


def drained_by_us(node: Node) -> bool:
    """Whether a node is drained with a reason of ours."""
    return node.state.drains and node.reason.startswith(MARK)


def _standing(node: Node) -> tuple[frozenset[str], str]:
    """What must not change between plan and act."""
    return node.state.taken_out, node.reason


def _untouchable(
    node: str, cluster: Cluster, name: str, may_overlap: Collection[str]
) -> Finding | None:
    """Why the gate must leave a node alone; None if it need not."""
    known = cluster.nodes.get(node)
    if known is None:
        return unknown(node)
    if standing(known) in (Standing.BY_SLURM, Standing.BY_PERSON):
        return taken_out(known)
    others = [r for r in cluster.holders(node) if r != name and r not in may_overlap]
    if others:
        return finding.of(Kind.RESERVED, {"reservations": ", ".join(others)}, subject=node)
    return None


def _why_kept(node: str, decision: Decision, cluster: Cluster, members: NodeSet) -> Finding:
    ruling = decision.rulings.get(node)
    if ruling is None:
        return Finding(Kind.NOT_IN_INVENTORY, node)
    if node not in members:
        return Finding(Kind.PUT_BY_OTHERS, node)
    known = cluster.nodes.get(node)
    if known and known.state.gone:
        return not_responding(known)
    if ruling.back:
        return Finding(Kind.NOT_TESTED_INSIDE, node)
    shown = "; ".join(fulls(ruling.findings)[:2])
    return finding.of(Kind.NOT_PASSED, {"state": ruling.state}, subject=node, message=shown)


def _resize(
    name: str, nodes: NodeSet, added: NodeSet | str = "", released: NodeSet | str = ""
) -> Command:
    words = ("scontrol", "update", f"ReservationName={name}", f"Nodes={nodes}")
    return Command("update", words, str(nodes), name, str(added), str(released))


def _resume(nodes: Iterable[Node]) -> list[Command]:
    drained = [n.name for n in nodes if drained_by_us(n)]
    return [_node("resume", drained, "State=RESUME")] if drained else []


def _node(what: str, names: list[str], *words: str) -> Command:
    nodes = str(nodesets.of(names))
    return Command(what, ("scontrol", "update", f"NodeName={nodes}", *words), nodes)


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # HUP: the terminal was lost
LOOK_EVERY = 0.2  # seconds between two looks at a child
GRACE = 60  # seconds that a child has to end: ReFrame cancels its jobs, and waits for them
_PR_SET_PDEATHSIG = 1  # of prctl(2)
_libc = ctypes.CDLL(None)


class Interrupted(Exception):
    """A signal came; the child has ended. The text is the signal's name."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)


@contextmanager
def noted() -> Iterator[list[int]]:
    """The signals that came since it began; those that are ignored, as by nohup, stay ignored."""
    received: list[int] = []

    def note(number: int, _frame: object) -> None:
        received.append(number)

    heard = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, note) for number in heard}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run(
    argv: Sequence[str],
    received: Sequence[int],
    *,
    output: int | None = None,
    errors: int | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    look: Callable[[], None] = lambda: None,
) -> int:
    """Run a command in a process group of its own. Returns its exit code.

    received: of noted(). output, errors: descriptors to which it prints; None: where this process
    does. look: called again and again while it runs. Raises Interrupted when a signal has come and
    it has ended, and OSError where it cannot be started.
    """
    if received:
        raise Interrupted(received[0])
    sys.stdout.flush()
    process = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=errors,
        cwd=cwd,
        env=env,
        process_group=0,
        preexec_fn=_end_with_parent,
    )
    try:
        while not received:
            with suppress(subprocess.TimeoutExpired):
                return process.wait(LOOK_EVERY)
            look()
    finally:  # also where `look` could not print, as its terminal is gone
        _end(process)
    raise Interrupted(received[0])


def _end_with_parent() -> None:
    """In the child: SIGTERM when this process was killed, and could not end it."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a child that still runs: by SIGTERM; after GRACE seconds its whole group is killed."""
    if process.poll() is not None:
        return
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(GRACE)
    with suppress(ProcessLookupError):
        killpg(process.pid, signal.SIGKILL)
    process.wait()
