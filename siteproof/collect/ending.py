"""How a node's program ended: by its own exit, its own times, and what the kernel counted.

A node's own end decides before the end of its job. What a script has written about its end was
written before somebody ended the job, unless its times show otherwise.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from siteproof import units
from siteproof.collect import cause
from siteproof.collect.cause import Cause
from siteproof.collect.raw import ENDED, KILLED, whole
from siteproof.errors import OutputError

NOT_FOUND = 127  # a shell's exit code for a program that is not there
SIGNALS = ("129", "130", "137", "143")  # exit codes: hung up, Ctrl-C, killed, terminated
BY_ITSELF = ("COMPLETED", "FAILED", "OUT_OF_ME")  # Slurm's states of jobs that nobody ended
ENDED_ON_REQUEST = {128 + number for number in cause.TERMINATED}  # exit codes
LAST_SIGNAL = 31  # greater numbers are not signals of a kernel
MARGIN = 60  # seconds: Slurm terminates, waits (KillWait, 30) and kills; clocks of nodes differ
NO_MESSAGE = "no message"


@dataclass(frozen=True)
class Kills:
    """The number of processes that the kernel killed for lack of memory while a program ran.

    own: counted in the job's own cgroup, without those of others. log: the kernel's line.
    """

    count: int = 0
    own: bool = False
    log: str = ""

    def explain(self, number: int) -> bool:
        """Whether memory ran out, where a signal of this number ended the program.

        A kill in the job's own cgroup counts; one on its node only where something was killed so.
        """
        return self.count > 0 and (self.own or number == signal.SIGKILL)

    def __str__(self) -> str:
        processes = units.count(self.count, "process", "processes")
        where = "of the job" if self.own else "on the node"
        log = f", the last: {self.log}" if self.log else ""
        return f"the kernel killed {processes} {where}{log}"


def kills(meta: Mapping[str, str]) -> Kills:
    """The kills in a node's account; none where it could not count them."""
    for own, key in ((True, "job_oom_kills"), (False, "oom_kills")):
        before, after = _number(meta, f"{key}_before"), _number(meta, f"{key}_after")
        if before is not None and after is not None:
            return Kills(max(0, after - before), own, meta.get("oom_log", ""))
    return Kills()


def failure(code: int, stdout: str, stderr: str, meta: Mapping[str, str], what: str) -> OutputError:
    """Status and reason of a program that ended with this exit code, which is not 0.

    what: its name, for the reason.
    """
    counted = kills(meta)
    if timed_out(code, meta):
        also = f"; {counted}" if counted.count else ""
        return OutputError(f"{what} hung: ended after its time limit{also}", "timeout")
    message = cause.message(stdout, stderr)
    if code == NOT_FOUND and not counted.count:
        return OutputError(message or NO_MESSAGE, "tool_missing")
    found = cause.first(stderr, stdout) or Cause()
    number = signal_of(code, found)
    if found.memory or counted.explain(number):
        return _out_of_memory(counted, found, what)
    if not number:
        return OutputError(f"{what} exited with {code}: {message or NO_MESSAGE}", "generic")
    why = f"{cause.name_of(number)} ended {what}{_whose(found)}"
    if number == signal.SIGKILL:
        why += ", from an unknown sender"
    # Where a launcher reports a signal, the rest of the output explains nothing.
    if message and (found.words or not found.signal):
        why += f": {message}"
    return OutputError(why, "killed")


def timed_out(code: int, meta: Mapping[str, str]) -> bool:
    """Whether the time limit ended the program, and not the kernel for lack of memory."""
    if code != KILLED:
        return code == ENDED
    start, end, limit = (_number(meta, key) for key in ("start", "end", "limit"))
    if start is None or end is None or limit is None:
        return False
    return end - start >= limit


def signal_of(code: int, found: Cause) -> int:
    """The signal that ended a program without a request to end; 0 if none did.

    A launcher's report of a rank goes before the code of the launcher, which may be that of a
    rank that it ended itself, or any other.
    """
    if found.reported and found.signal not in (0, *cause.TERMINATED):
        return found.signal
    if 128 < code <= 128 + LAST_SIGNAL and code not in ENDED_ON_REQUEST:
        return code - 128
    return 0


def lost_output(meta: Mapping[str, str], why: str, what: str) -> OutputError | None:
    """The reason where a script ended with 0 and gave no value, as memory ran out."""
    counted = kills(meta)
    if not counted.own or not counted.count:
        return None
    return OutputError(f"{_out_of_memory(counted, Cause(), what)}; {why}", "killed")


def with_its_job(
    ended: str,
    codes: Iterable[object],
    meta: Mapping[str, str],
    texts: tuple[str, str] = ("", ""),
    over: float = 0.0,
) -> bool:
    """Whether what has one of these exit codes was ended with its job, which somebody ended.

    ended: the job's state in Slurm; over: when it ended, in seconds since 1970, 0 if unknown.
    texts: output and errors.
    """
    if not by_somebody(ended) or not any(str(code) in SIGNALS for code in codes):
        return False
    if kills(meta).explain(signal.SIGKILL):
        return False
    end = _number(meta, "end")
    ended_before = over and end is not None and end < over - MARGIN
    found = cause.first(texts[1], texts[0]) or Cause()
    return not ended_before and not found.fault


def by_somebody(ended: str) -> bool:
    """Whether neither the job itself nor its time limit has ended it."""
    return bool(ended) and not ended.startswith(BY_ITSELF) and not at_time_limit(ended)


def at_time_limit(ended: str) -> bool:
    """Whether the job's time limit has ended it."""
    return ended.startswith("TIMEOUT")


def without_result(
    reported: Cause | None, began: bool, ended: str, what: str
) -> OutputError | None:
    """Why a node's script died before it could write its account; None: not known.

    reported: srun's report of its task. began: whether it had begun to measure.
    """
    from_outside = by_somebody(ended) or at_time_limit(ended)
    if reported is not None and (reported.fault or not from_outside):
        if reported.memory:
            return OutputError(f"out of memory, reported by Slurm for {reported.node}", "killed")
        name = cause.name_of(reported.signal)
        return OutputError(f"{name} ended {what} with the script that ran it", "killed")
    if began and ended.startswith("OUT_OF_ME"):
        return OutputError(f"out of memory: the job ended as {ended} before {what} had", "killed")
    return None


def _out_of_memory(counted: Kills, found: Cause, what: str) -> OutputError:
    whose = f"{what}{_whose(found)}"
    if counted.count:
        return OutputError(f"out of memory: {counted} ({whose})", "killed")
    words = f": {found.words}" if found.words else ""
    return OutputError(f"out of memory ({whose}){words}", "killed")


def _whose(found: Cause) -> str:
    return f", {found.whose}" if found.whose else ""


def _number(meta: Mapping[str, str], key: str) -> int | None:
    return whole(meta.get(key, ""))
