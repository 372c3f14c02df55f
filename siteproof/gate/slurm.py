"""Slurm's side of the gate: one look at nodes and reservations, and scontrol without a shell."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Sequence

from siteproof.errors import UserError
from siteproof.gate.commands import MARK, Cluster, Node, Reservation
from siteproof.gate.decision import node_set
from siteproof.samples import harmless
from siteproof.sites import nodesets

TIMEOUT = 60  # seconds: a dead controller makes a client wait for ever
PATIENCE = 60  # seconds until a node that was resumed answers
_STATE = re.compile(r" State=(\S+)")
_LAST = re.compile(r" (Reason|Comment)=")  # what people write comes last
_STAMP = re.compile(r" \[[^\s\]]+@\d+\]")  # behind a reason: who and when
_DENIED = re.compile(r"Invalid user id|permission denied", re.IGNORECASE)
_FIELD = re.compile(r" \w+=")
_RESERVATION = re.compile(
    r"ReservationName=(\S+) StartTime=(\d+) .*? Nodes=(\S*) NodeCnt=", re.DOTALL
)


def look() -> Cluster:
    """All nodes and reservations. Raises UserError if Slurm does not answer."""
    nodes = parse_nodes(_ask("scontrol", "-o", "show", "nodes"))
    return Cluster(nodes, parse_reservations(_ask("scontrol", "-o", "show", "reservations")))


def parse_nodes(text: str) -> dict[str, Node]:
    """Read `scontrol -o show nodes`, times in seconds. Raises UserError for a node told twice."""
    found: dict[str, Node] = {}
    for line in text.splitlines():
        name, _, rest = line.removeprefix("NodeName=").partition(" ")
        state = _STATE.search(f" {rest}")
        if not line.startswith("NodeName=") or state is None:
            continue  # the second line of somebody's comment
        if name in found:
            raise UserError("scontrol", f"tells of node {harmless(name)} twice")
        flags = frozenset(word.rstrip("*~#!%$@^-") for word in state[1].split("+"))
        found[name] = Node(name, flags, *_words(rest))
    return found


def _words(rest: str) -> tuple[str, str]:
    """Reason and comment of a node, each of which may hold what looks like a field."""
    match = _LAST.search(rest)
    if match is None:
        return "", ""
    reason, text = "", rest[match.end() :]
    if match[1] == "Reason":
        stamp = _STAMP.search(text)
        reason, text = (text[: stamp.start()], text[stamp.end() :]) if stamp else (text, "")
        text = text.partition(" Comment=")[2]
    if text.startswith(MARK):  # ours holds no '=', so the next field ends it
        text = _FIELD.split(text, maxsplit=1)[0]
    return harmless(reason.strip()), harmless(text.strip())


def parse_reservations(text: str) -> dict[str, Reservation]:
    """Read `scontrol -o show reservations`, times in seconds."""
    found = {}
    for name, start, nodes in _RESERVATION.findall(text):
        try:
            held = nodesets.parse("" if nodes == "(null)" else nodes)
        except ValueError as error:
            raise UserError("scontrol", f"reservation {harmless(name)}: {error}") from None
        found[name] = Reservation(name, int(start), held)
    return found


def run(argv: Sequence[str]) -> str:
    """Run one scontrol command. Returns what went wrong in a line; empty: nothing did."""
    try:
        done = _client(argv)
    except subprocess.TimeoutExpired:
        return f"no answer from Slurm within {TIMEOUT} s"
    if done.returncode == 0:
        return ""
    said = " ".join(harmless(" ".join((done.stderr or done.stdout).split())).split())
    if _DENIED.search(said):  # Slurm says the same of a user that it does not know
        said += "; reservations are for root, SlurmUser and operators to make, for users it knows"
    return said or f"exit code {done.returncode}"


def jobs_on(nodes: str) -> list[str]:
    """The jobs that run on nodes, as 'job of user on nodes'."""
    text = _ask(
        "squeue",
        "-h",
        "-t",
        "running,completing,suspended",
        "-w",
        nodes,
        "-o",
        "job %A of %u on %N",
    )
    return [harmless(line) for line in text.splitlines()]


def wait_until_they_answer(nodes: str) -> dict[str, str]:
    """Wait for nodes that were resumed; those that do not come back, with their state."""
    deadline = time.monotonic() + PATIENCE
    while True:
        known = look().nodes
        silent = {
            n: "+".join(sorted(known[n].flags)).lower()
            for n in node_set(nodesets.parse(nodes))
            if n in known and "NOT_RESPONDING" in known[n].flags
        }
        if not silent or time.monotonic() > deadline:
            return silent
        time.sleep(1)


def _ask(*argv: str) -> str:
    try:
        done = _client(argv)
    except subprocess.TimeoutExpired:
        raise UserError(argv[0], f"no answer from Slurm within {TIMEOUT} s") from None
    if done.returncode:
        raise UserError(argv[0], harmless(" ".join(done.stderr.split())) or "failed")
    return done.stdout


def _client(argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            list(argv),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT,
            stdin=subprocess.DEVNULL,
            check=False,
            env=os.environ | {"SLURM_TIME_FORMAT": "%s", "LC_ALL": "C"},
        )
    except FileNotFoundError:
        raise UserError(
            argv[0],
            "not found here; without --apply, --retest and --release the decision needs no Slurm",
        ) from None
