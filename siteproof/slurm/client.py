"""Slurm's commands, run without a shell and with a time limit; a failure is a UserError."""

from __future__ import annotations

import functools
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from tempfile import TemporaryFile
from typing import IO, TypeVar

from ClusterShell.NodeSet import NodeSet

from siteproof import nodesets
from siteproof.errors import UserError, harmless, hint
from siteproof.slurm import records
from siteproof.slurm.records import EVENTS_FORMAT, Node, Reservation

T = TypeVar("T")
TIMEOUT = 60  # seconds: without a limit, a dead controller blocks a client for ever
AT_ONCE = 10  # seconds within which Slurm starts a step on idle nodes
A_MOMENT = 5  # seconds that srun has to end after the last answer
MAX_OUTPUT = 2**20  # bytes that are read of what nodes print
RECENT = 10  # seconds for which the nodes' states count when jobs are laid out
LOOK_AGAIN = 2  # seconds
STARTING = 60  # seconds in which nodes register with a slurmctld that has just started
SILENT = 4  # seconds after which a person is shown what is waited for
SHORT = 30  # seconds, for queries that can be left out
CLOCKS = 300  # seconds by which the clocks of this host and of slurmctld may differ
NO_CLUSTER = "Could not establish a configuration source"
OWN_JOBS = ("squeue", "-h", "--me", "-t", "pending,running", "-o", "%j|%T|%M|%r|%Z")
NO_RESERVATIONS = "No reservations in the system"
_DENIED = re.compile(r"Invalid user id|permission denied", re.IGNORECASE)
# What slurmctld, or scontrol before it asks, refuses. After any other end the request may have been
# sent; even a failed connection may have been that to the backup controller, after a time-out.
_REFUSED = re.compile(
    r"Duplicate|Invalid|Requested|denied|not found|No reservation (created|update)|Unknown param",
    re.IGNORECASE,
)


def allocation() -> NodeSet:
    """The nodes of the job inside which this process runs; none on a login node.

    Raises UserError.
    """
    nodes = os.environ.get("SLURM_JOB_NODELIST", "") if os.environ.get("SLURM_JOB_ID") else ""
    try:
        return nodesets.parse(nodes)
    except ValueError as error:
        raise UserError("SLURM_JOB_NODELIST", str(error)) from None


def node_states(nodes: NodeSet | None = None) -> dict[str, Node]:
    """The nodes as sinfo prints them, all if none are named. Raises UserError."""
    command = ["sinfo", "-h", "-N", "-o", records.SINFO_FORMAT]
    found = records.parse_sinfo(_ask(command + ([f"--nodes={nodes}"] if nodes else [])))
    if not found and not nodes:
        raise UserError("sinfo", "lists no node", hint="Check the partitions in slurm.conf")
    return found


def recent_states() -> dict[str, Node]:
    """As node_states, of at most RECENT seconds ago: a check of 10,000 nodes is 157 jobs.

    A slurmctld that has just started does not know its nodes yet, which is no fault of theirs: it
    is asked again for up to STARTING seconds of this process.
    """
    global _recent, _patience
    if _recent is None or time.monotonic() - _recent[0] > RECENT:
        states = node_states()
        while _patience > 0 and any(node.state.unasked for node in states.values()):
            _patience -= LOOK_AGAIN
            time.sleep(LOOK_AGAIN)
            states = node_states()
        _recent = time.monotonic(), states
    return _recent[1]


_recent: tuple[float, dict[str, Node]] | None = None
_patience = STARTING


@functools.cache
def memory() -> dict[str, int]:
    """MiB of memory of each node in slurm.conf; queried once a session. Raises UserError."""
    return records.parse_memory(_ask(["sinfo", "-h", "-N", "-o", records.MEMORY_FORMAT]))


@functools.cache
def first_look() -> dict[str, Node]:
    """The state of all nodes at the first query of the session. Raises UserError."""
    return recent_states()


def is_here() -> bool:
    """Whether this machine has Slurm's commands."""
    return shutil.which("scontrol") is not None


def all_nodes() -> dict[str, Node]:
    """The nodes as scontrol prints them, with their comments. Raises UserError."""
    text = _ask(["scontrol", "-o", "show", "nodes"])
    return _whole("nodes", records.parse_nodes(text), text, "NodeName=")


def configured() -> tuple[str, str]:
    """What scontrol prints of all nodes and partitions, for siteproof.slurm.configured.

    Raises UserError.
    """
    return _ask(["scontrol", "-o", "show", "nodes"]), _ask(["scontrol", "-o", "show", "partitions"])


def reservations() -> dict[str, Reservation]:
    """All reservations, by name. Raises UserError."""
    text = _ask(["scontrol", "-o", "show", "reservations"])
    if text.strip() == NO_RESERVATIONS:
        return {}
    return _whole("reservations", records.parse_reservations(text), text, "ReservationName=")


def _whole(what: str, found: dict[str, T], text: str, beginning: str) -> dict[str, T]:
    """What was found, if it is all that the text lists. Raises UserError."""
    listed = [line for line in text.splitlines() if line.startswith(beginning)]
    if not found or len(found) != len(listed) or not text.endswith("\n"):
        raise UserError("scontrol", f"does not list all {what}", hint="Run it again")
    return found


@functools.cache
def reserved(name: str) -> NodeSet:
    """The nodes of a reservation, or of several with commas between. Raises UserError.

    Queried once a session: no job of the reservation can have others.
    """
    known, names = reservations(), name.split(",")
    for one in names:
        if one not in known:
            what = f"no reservation '{one}'{hint(one, known)}"
            raise UserError("--reservation", what, sorted(known) or "none, as Slurm has none")
    return nodesets.of(node for one in names for node in known[one].nodes)


def jobs_on(nodes: str) -> list[str]:
    """The jobs that run on nodes, as 'job of user on nodes'. Raises UserError."""
    states, form = "running,completing,suspended", "job %A of %u on %N"
    text = _ask(["squeue", "-h", "-t", states, "-w", nodes, "-o", form])
    return [harmless(line) for line in text.splitlines()]


def queued(jobs: Sequence[str]) -> set[str]:
    """Those of the jobs that Slurm still lists; all of them if Slurm does not answer."""
    if not jobs:
        return set()
    try:
        done = _run(["squeue", "-h", "-o", "%A", "-j", ",".join(jobs)], SHORT)
    except (UserError, OSError, subprocess.TimeoutExpired):
        return set(jobs)
    is_known = done.returncode == 0 or "Invalid job id" in done.stderr
    return set(done.stdout.split()) if is_known else set(jobs)


def would_start(words: Sequence[str]) -> None:
    """Whether Slurm takes a job with these options, of sbatch. Raises UserError where it refuses.

    Nothing is submitted.
    """
    _ask(["sbatch", "--test-only", "--time=1", *words, "--wrap=true"])


def submit(words: Sequence[str]) -> str:
    """Submit a job with these words of sbatch; its number. Raises UserError where it is refused."""
    number = _ask(["sbatch", "--parsable", *words]).strip().partition(";")[0]
    if not number.isdecimal():
        raise UserError("sbatch", f"printed no number of a job: '{harmless(number)[:40]}'")
    return number


def accounted(jobs: Sequence[str], since: float) -> list[records.JobRecord]:
    """What Slurm's accounting has of jobs, each run of them. Raises UserError."""
    fields = ",".join(records.FIELDS)
    return records.parse_jobs(_ask([*_sacct(",".join(jobs), since), "-D", "-o", fields]))


def _sacct(jobs: str, since: float) -> list[str]:
    """since: when they were submitted, in seconds since 1970; others had their numbers before."""
    return ["sacct", "-nP", "-j", jobs, "-S", f"uts{max(0, int(since) - CLOCKS)}"]


def user() -> str:
    """This user's name, or number if it has none here; Slurm reads no name in the environment."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def own_names() -> list[str]:
    """The names of this user's jobs that are not over, and then of reservations for this user.

    Slurm deletes no reservation that a job waits for. Raises UserError.
    """
    states = "pending,running,configuring,suspended,requeued"
    jobs = _ask(["squeue", "-h", "--me", "-t", states, "-o", "%j"])
    own = user()
    reserved = [name for name, one in reservations().items() if own in one.users]
    return [*dict.fromkeys(jobs.splitlines()), *reserved]


def cancel(name: str) -> None:
    """Cancel this user's jobs of a name. Raises UserError."""
    _ask(["scancel", "--me", f"--name={name}"])


def licences() -> str:
    """What scontrol prints of the licences. Raises UserError."""
    return _ask(["scontrol", "-o", "show", "licenses"])


def why_pending(job: str) -> str:
    """Why Slurm does not start a job yet, in its own word; empty while that is not known."""
    reason = _printed_by(["squeue", "-h", "-t", "pending", "-o", "%r", "-j", job]).strip()
    return "" if reason == "None" else reason


def own_jobs(folder: str) -> list[tuple[str, str, str]]:
    """This user's jobs with a working directory below a folder: name, state and time, or reason."""
    rows = (line.split("|") for line in _printed_by(OWN_JOBS).splitlines())
    found = [row for row in rows if len(row) == 5 and row[4].startswith(f"{folder}/")]
    return [
        (name, state, time if state == "RUNNING" else why) for name, state, time, why, _ in found
    ]


def _printed_by(argv: Sequence[str]) -> str:
    """What a query prints that can be left out, without control characters; empty if it fails."""
    try:
        return "".join(f"{harmless(line)}\n" for line in _ask(argv, SHORT).splitlines())
    except UserError:
        return ""


def nodes_of(job: str, since: float) -> NodeSet:
    """The nodes on which a job ran, as far as Slurm's accounting knows. Raises UserError."""
    return records.parse_job_nodes(_ask([*_sacct(job, since), "-o", "nodelist"]))


def energy(job: str, since: float) -> dict[str, int]:
    """Joules by the name of a job's step, of those that are accounted. Raises UserError."""
    fields = "jobname,consumedenergyraw"
    return records.parse_energy(_ask([*_sacct(job, since), "-o", fields]))


@functools.cache
def cluster_name() -> str:
    """ClusterName as Slurm's own client has it; empty where there is none, or no answer."""
    try:
        return harmless(settings().get("ClusterName", ""))
    except UserError:
        return ""


@functools.cache
def settings() -> dict[str, str]:
    """Slurm's own settings, by their names in slurm.conf. Raises UserError."""
    return records.parse_settings(_ask(["scontrol", "show", "config"], SHORT))


@functools.cache
def switches() -> dict[str, NodeSet]:
    """The nodes of each switch of topology.conf that has nodes itself; none without an answer."""
    return records.parse_switches(_printed_by(("scontrol", "-o", "show", "topology")))


@functools.cache
def hosts() -> dict[str, list[str]]:
    """Each node's host names and addresses in Slurm. Raises UserError."""
    return records.parse_hosts(_ask(["sinfo", "-h", "-N", "-o", records.HOSTS_FORMAT]))


def node_events(begin: int, end: int) -> str:
    """What sacctmgr lists of a period, for siteproof.slurm.records. Raises UserError.

    begin, end: seconds since 1970.
    """
    period = [f"Start=uts{begin}", f"End=uts{end}"]
    return _ask(["sacctmgr", "-nP", "show", "event", *period, f"format={EVENTS_FORMAT}"])


def version() -> str:
    """Slurm's version; empty if Slurm does not answer."""
    return _printed_by(["sinfo", "--version"]).rpartition(" ")[2].strip()


def on_each(
    nodes: NodeSet, options: Sequence[str], script: Sequence[str], answered: Callable[[str], int]
) -> subprocess.CompletedProcess[str]:
    """Run a short script once on each node, which must be free, and wait for no busy one.

    answered: the number of nodes that have answered, from the output so far; srun itself would wait
    for a node that hangs.
    """
    argv = [
        "srun",
        *(["--overlap"] if allocation() else [f"--immediate={AT_ONCE}", "--time=2"]),
        *options,
        f"--nodelist={nodes}",
        f"--nodes={len(nodes)}",
        f"--ntasks={len(nodes)}",
        "--ntasks-per-node=1",
        "--no-kill",
        "--kill-on-bad-exit=0",
        "--wait=0",
        "--cpu-bind=none",
        "--chdir=/",
        "--input=none",
        *script,
    ]
    with TemporaryFile("w+", errors="replace") as out, TemporaryFile("w+", errors="replace") as err:
        try:
            process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
            )
        except OSError as error:
            return subprocess.CompletedProcess(argv, 1, "", f"srun: {error.strerror}")
        end, known = time.monotonic() + TIMEOUT, 0
        try:
            while process.poll() is None and time.monotonic() < end:
                sizes = [os.fstat(file.fileno()).st_size for file in (out, err)]
                if max(sizes) > MAX_OUTPUT:
                    break  # more is not an answer, and would fill the disk
                if sizes[0] > known and answered(_printed(out)) >= len(nodes):
                    end = min(end, time.monotonic() + A_MOMENT)
                known = sizes[0]
                time.sleep(0.05)
        finally:
            _end(process)
        return subprocess.CompletedProcess(argv, process.returncode, _printed(out), _printed(err))


def _printed(file: IO[str]) -> str:
    """What a command has printed so far, up to MAX_OUTPUT."""
    return os.pread(file.fileno(), MAX_OUTPUT, 0).decode(errors="replace")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End srun, which ends its step, and its processes: by SIGTERM first, then by SIGKILL."""
    if process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(A_MOMENT)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class Cause(Enum):
    """Why a command did not succeed, as the end of its message."""

    UNSURE = "; Slurm may have done it"
    NO_ANSWER = f"no answer from Slurm within {TIMEOUT} s, so it may have been done"
    # Slurm prints the same for a user that it does not know.
    DENIED = "; only root, SlurmUser and operators may change reservations, for users Slurm knows"
    FAILED = ""


@dataclass(frozen=True)
class Failure:
    """A command of Slurm that did not succeed. message: what Slurm printed, in one line."""

    cause: Cause
    message: str = ""

    @property
    def certain(self) -> bool:
        """Whether Slurm has refused; without an answer it may have done it all the same."""
        return self.cause not in (Cause.NO_ANSWER, Cause.UNSURE)

    def __str__(self) -> str:
        return f"{self.message}{self.cause.value}"


def change(argv: Sequence[str]) -> Failure | None:
    """Run one scontrol command; None if it succeeds. Raises UserError if it is not installed."""
    try:
        done = _run(argv, TIMEOUT)
    except OSError as error:
        return Failure(Cause.FAILED, error.strerror or "cannot be run")
    except subprocess.TimeoutExpired:
        return Failure(Cause.NO_ANSWER)
    if done.returncode == 0:
        return None
    printed = " ".join((done.stderr or done.stdout).split())
    message = harmless(printed) or f"exit code {done.returncode}"
    if not _REFUSED.search(message):
        return Failure(Cause.UNSURE, message)
    return Failure(Cause.DENIED if _DENIED.search(message) else Cause.FAILED, message)


def _ask(argv: Sequence[str], seconds: float = 0) -> str:
    """What a command prints within TIMEOUT, or so many seconds. Raises UserError."""
    seconds = seconds or TIMEOUT
    try:
        done = _run(argv, seconds)
    except OSError as error:
        raise UserError(argv[0], f"cannot be run: {error.strerror}") from None
    except subprocess.TimeoutExpired as error:
        printed = (error.stderr or b"").decode(errors="replace").strip().splitlines()[-1:]
        why = "".join(f"; {line.strip()}" for line in printed)  # such as: sleeping and retrying
        raise UserError(argv[0], f"no answer from Slurm within {seconds} s{why}") from None
    if done.returncode:
        # scontrol reports some errors on stdout, in its last line.
        printed = done.stderr.splitlines() or done.stdout.splitlines()[-1:]
        lines = [" ".join(line.split()) for line in printed if line.strip()]
        raise UserError(argv[0], "; ".join(dict.fromkeys(lines)) or "failed")
    return done.stdout


def _run(argv: Sequence[str], seconds: float) -> subprocess.CompletedProcess[str]:
    """Run it with times in seconds since 1970 and messages in English.

    Raises UserError if it is not installed, OSError, and TimeoutExpired.
    """
    what = f"siteproof: {argv[0]}: no answer from Slurm yet; it has {seconds:g} s"
    waiting = threading.Timer(SILENT, print, [what], {"file": sys.stderr, "flush": True})
    waiting.daemon = True
    if sys.stderr.isatty():  # a log has the answer, or why there is none
        waiting.start()
    try:
        return subprocess.run(
            list(argv),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            stdin=subprocess.DEVNULL,
            check=False,
            env=os.environ | {"SLURM_TIME_FORMAT": "%s", "LC_ALL": "C"},
        )
    except FileNotFoundError:
        what = "not found on PATH; it is required because the site uses Slurm"
        raise UserError(argv[0], what) from None
    finally:
        waiting.cancel()
