"""Slurm's commands, run without a shell and with a time limit; a failure is a UserError."""

from __future__ import annotations

import functools
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from tempfile import TemporaryFile
from typing import IO

from ClusterShell.NodeSet import NodeSet

from siteproof import nodesets
from siteproof.errors import UserError, harmless
from siteproof.slurm import records
from siteproof.slurm.records import Node, Reservation

TIMEOUT = 60  # seconds: a dead controller makes a client wait for ever
AT_ONCE = 10  # seconds in which Slurm starts a step on idle nodes, if it ever does
A_MOMENT = 5  # seconds that srun has to end when all has been said
MOST = 2**20  # bytes that are read of what nodes print
SHORT = 30  # seconds, where an answer only saves a wait
_DENIED = re.compile(r"Invalid user id|permission denied", re.IGNORECASE)


def allocation() -> NodeSet:
    """The nodes of the job inside which this process runs; none on a login node.

    Raises UserError.
    """
    held = os.environ.get("SLURM_JOB_NODELIST", "") if os.environ.get("SLURM_JOB_ID") else ""
    try:
        return nodesets.parse(held)
    except ValueError as error:
        raise UserError("SLURM_JOB_NODELIST", str(error)) from None


def node_states(nodes: NodeSet | None = None) -> dict[str, Node]:
    """The nodes as sinfo sees them, all if none are named. Raises UserError."""
    command = ["sinfo", "-h", "-N", "-o", records.SINFO_FORMAT]
    found = records.parse_sinfo(_ask(command + ([f"--nodes={nodes}"] if nodes else [])))
    if not found and not nodes:
        raise UserError("sinfo", "lists no node")
    return found


@functools.cache
def memory() -> dict[str, int]:
    """MiB of memory that slurm.conf says of each node; asked once a session. Raises UserError."""
    return records.parse_memory(_ask(["sinfo", "-h", "-N", "-o", records.MEMORY_FORMAT]))


@functools.cache
def first_look() -> dict[str, Node]:
    """The state of all nodes when the session first asked. Raises UserError."""
    return node_states()


def all_nodes() -> dict[str, Node]:
    """The nodes as scontrol sees them, with their comments. Raises UserError."""
    return records.parse_nodes(_ask(["scontrol", "-o", "show", "nodes"]))


def reservations() -> dict[str, Reservation]:
    """All reservations, by name. Raises UserError."""
    return records.parse_reservations(_ask(["scontrol", "-o", "show", "reservations"]))


@functools.cache
def reserved(name: str) -> NodeSet:
    """The nodes of a reservation, of several with commas between. Raises UserError.

    Owed once a session: no job of the reservation can have others.
    """
    held = nodesets.of()
    for one in name.split(","):
        text = _ask(["scontrol", "-o", "show", f"reservation={one}"])
        for reservation in records.parse_reservations(text).values():
            held.update(reservation.nodes)
    return held


def jobs_on(nodes: str) -> list[str]:
    """The jobs that run on nodes, as 'job of user on nodes'. Raises UserError."""
    text = _ask(
        [
            "squeue",
            "-h",
            "-t",
            "running,completing,suspended",
            "-w",
            nodes,
            "-o",
            "job %A of %u on %N",
        ]
    )
    return [harmless(line) for line in text.splitlines()]


def queued(jobs: Sequence[str]) -> set[str]:
    """Those of the jobs that Slurm still holds or runs; all of them if Slurm does not answer."""
    if not jobs:
        return set()
    try:
        done = _run(["squeue", "-h", "-o", "%A", "-j", ",".join(jobs)], SHORT)
    except (OSError, subprocess.TimeoutExpired):
        return set(jobs)
    if done.returncode and "Invalid job id" not in done.stderr:
        return set(jobs)
    return set(done.stdout.split())


@functools.cache
def settings() -> dict[str, str]:
    """Slurm's own settings, by their names in slurm.conf. Raises UserError."""
    return records.parse_settings(_ask(["scontrol", "show", "config"]))


@functools.cache
def hosts() -> dict[str, list[str]]:
    """By node, host names and addresses by which Slurm knows it. Raises UserError."""
    return records.parse_hosts(_ask(["sinfo", "-h", "-N", "-o", records.HOSTS_FORMAT]))


def version() -> str:
    """Slurm's version; empty where no Slurm says it."""
    try:
        done = _run(["sinfo", "--version"], SHORT)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.split()[-1] if done.returncode == 0 and done.stdout.split() else ""


def on_each(
    nodes: NodeSet, options: Sequence[str], script: Sequence[str], answered: Callable[[str], int]
) -> subprocess.CompletedProcess[str]:
    """Run a short script once on each node, which must be free, and wait for no busy one.

    answered: how many nodes have answered by what was printed; srun itself would wait for one that
    hangs.
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
        end = time.monotonic() + TIMEOUT
        try:
            while process.poll() is None and time.monotonic() < end:
                if max(os.fstat(file.fileno()).st_size for file in (out, err)) > MOST:
                    break  # more is no answer, and would fill the disk
                if answered(_told(out)) >= len(nodes):
                    end = min(end, time.monotonic() + A_MOMENT)
                time.sleep(0.05)
        finally:
            _end(process)
        return subprocess.CompletedProcess(argv, process.returncode, _told(out), _told(err))


def _told(file: IO[str]) -> str:
    """What a command has printed so far, as far as anybody will read."""
    return os.pread(file.fileno(), MOST, 0).decode(errors="replace")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End srun, which ends its step, and what it has started; first by what it may catch."""
    if process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(A_MOMENT)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def change(argv: Sequence[str]) -> str:
    """Run one scontrol command. Returns what went wrong in a line; empty: nothing did.

    Raises UserError where there is no such command.
    """
    try:
        done = _run(argv, TIMEOUT)
    except FileNotFoundError:
        raise _missing(argv[0]) from None
    except subprocess.TimeoutExpired:
        return f"no answer from Slurm within {TIMEOUT} s"
    if done.returncode == 0:
        return ""
    said = " ".join(harmless(" ".join((done.stderr or done.stdout).split())).split())
    if _DENIED.search(said):  # Slurm says the same of a user that it does not know
        said += "; reservations are for root, SlurmUser and operators to make, for users it knows"
    return said or f"exit code {done.returncode}"


def _ask(argv: Sequence[str]) -> str:
    """What a command prints. Raises UserError."""
    try:
        done = _run(argv, TIMEOUT)
    except FileNotFoundError:
        raise _missing(argv[0]) from None
    except subprocess.TimeoutExpired:
        raise UserError(argv[0], f"no answer from Slurm within {TIMEOUT} s") from None
    if done.returncode:
        raise UserError(argv[0], harmless(" ".join(done.stderr.split())) or "failed")
    return done.stdout


def _missing(program: str) -> UserError:
    return UserError(program, "not found here; the scheduler of the site is Slurm")


def _run(argv: Sequence[str], seconds: float) -> subprocess.CompletedProcess[str]:
    """Times in seconds since 1970, words in English."""
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
