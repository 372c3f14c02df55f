"""How a node's program ended: by its own exit, its own times, and what the kernel counted.

A node's own end decides before the end of its job. What a script has written about its end was
written before somebody ended the job, unless its times say otherwise.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from siteproof.collect import cause
from siteproof.collect.cause import Cause
from siteproof.collect.raw import ENDED, KILLED, whole

NOT_FOUND = 127  # a shell's exit code for a program that is not there
SIGNALS = ("129", "130", "137", "143")  # exit codes: hung up, Ctrl-C, killed, terminated
BY_ITSELF = ("COMPLETED", "FAILED", "OUT_OF_ME")  # words of Slurm for jobs that nobody ended
ASKED_TO_END = {128 + number for number in cause.TERMINATED}
LAST_SIGNAL = 31  # those above are no signals of a kernel
MARGIN = 60  # seconds: Slurm asks, waits (KillWait, 30) and kills; clocks of nodes differ


@dataclass(frozen=True)
class Kills:
    """How many processes the kernel killed for want of memory while a program ran.

    own: counted in the job's own cgroup, where nobody else's are. log: the kernel's own line.
    """

    count: int = 0
    own: bool = False
    log: str = ""


def kills(meta: Mapping[str, str]) -> Kills:
    """What a node's account says of that; none where it cannot know."""
    log = meta.get("oom_log", "")
    for own, key in ((True, "job_oom_kills"), (False, "oom_kills")):
        before, after = _number(meta, f"{key}_before"), _number(meta, f"{key}_after")
        if before is not None and after is not None:
            return Kills(max(0, after - before), own, log)
    return Kills()


def failure(
    code: int, stdout: str, stderr: str, meta: Mapping[str, str], what: str
) -> tuple[str, str]:
    """Status and reason of a program that ended with this exit code, which is not 0.

    what: its name, for the reason.
    """
    held = kills(meta)
    if timed_out(code, meta):
        also = f"; {_counted(held)}" if held.count else ""
        return "timeout", f"{what} hung: ended after its time limit{also}"
    if code == NOT_FOUND and not held.count:
        return "tool_missing", cause.told(stdout, stderr)
    found = cause.first(stderr, stdout)
    number = signal_of(code, found)
    if found is not None and found.memory or _out_of_memory(held, number):
        return "killed", _of_memory(held, found, what)
    if number:
        return "killed", _of_signal(number, found, what, cause.told(stdout, stderr))
    return "generic", f"{what} exited with {code}: {cause.told(stdout, stderr)}"


def timed_out(code: int, meta: Mapping[str, str]) -> bool:
    """Whether the time limit ended the program, and not the kernel for want of memory."""
    if code != KILLED:
        return code == ENDED
    times = [_number(meta, key) for key in ("start", "end", "limit")]
    start, end, limit = (0 if time is None else time for time in times)
    return None not in times and end - start >= limit


def signal_of(code: int, found: Cause | None) -> int:
    """The signal that ended a program against everybody's will; 0 if none did.

    A launcher's report of a rank goes before the code of the launcher, which may be that of a
    rank that it ended itself, or any other.
    """
    if found is not None and found.reported and found.signal not in (0, *cause.TERMINATED):
        return found.signal
    if 128 < code <= 128 + LAST_SIGNAL and code not in ASKED_TO_END:
        return code - 128
    return 0


def lost_output(meta: Mapping[str, str], why: str, what: str) -> tuple[str, str] | None:
    """Status and reason where a script ended with 0 and gave no figure, as memory ran out."""
    held = kills(meta)
    return ("killed", f"{_of_memory(held, None, what)}; {why}") if held.own and held.count else None


def with_its_job(
    ended: str,
    codes: Iterable[object],
    meta: Mapping[str, str],
    texts: tuple[str, str] = ("", ""),
    over: float = 0.0,
) -> bool:
    """Whether what has one of these exit codes was ended with its job, which somebody ended.

    ended: how Slurm says the job ended; over: when, in seconds since 1970, 0 if unknown. texts:
    output and errors.
    """
    if not by_somebody(ended) or not any(str(code) in SIGNALS for code in codes):
        return False
    held, end = kills(meta), _number(meta, "end")
    if held.count and _out_of_memory(held, signal.SIGKILL):
        return False
    if over and end is not None and end < over - MARGIN:
        return False
    found = cause.first(texts[1], texts[0])
    return found is None or not found.fault


def by_somebody(ended: str) -> bool:
    """Whether neither the job itself nor its time limit has ended it."""
    return bool(ended) and not ended.startswith((*BY_ITSELF, "TIMEOUT"))


def without_result(
    told: Cause | None, began: bool, ended: str, what: str
) -> tuple[str, str] | None:
    """Status and reason of a node whose script died before it could account for itself, if it did.

    told: what srun says of its task. began: whether it had begun to measure. None: nothing is
    known of an end of its own.
    """
    if told is not None and (told.fault or not ended_from_outside(ended)):
        if told.memory:
            return "killed", f"out of memory, Slurm says of {told.node}"
        return "killed", f"{cause.name_of(told.signal)} ended {what} with the script that ran it"
    if began and ended.startswith("OUT_OF_ME"):
        return "killed", f"out of memory: the job ended as {ended} before {what} had"
    return None


def ended_from_outside(ended: str) -> bool:
    """Whether the job's end, and not its own, may have ended a node's script."""
    return by_somebody(ended) or ended.startswith("TIMEOUT")


def _out_of_memory(held: Kills, number: int) -> bool:
    """A kill in the job's own cgroup counts; one on its node, where something was killed so."""
    return bool(held.count) and (held.own or number == signal.SIGKILL)


def _of_memory(held: Kills, found: Cause | None, what: str) -> str:
    whose = f", {found.whose}" if found is not None and found.whose else ""
    if held.count:
        return f"out of memory: {_counted(held)} ({what}{whose})"
    words = f": {found.words}" if found is not None and found.words else ""
    return f"out of memory ({what}{whose}){words}"


def _counted(held: Kills) -> str:
    processes = "1 process" if held.count == 1 else f"{held.count} processes"
    log = f", the last: {held.log}" if held.log else ""
    return f"the kernel killed {processes} {'of the job' if held.own else 'on the node'}{log}"


def _of_signal(number: int, found: Cause | None, what: str, words: str) -> str:
    whose = f", {found.whose}" if found is not None and found.whose else ""
    by = ", sent by nobody that is known" if number == signal.SIGKILL else ""
    said = words if found is None or found.words else ""
    ended = f"{cause.name_of(number)} ended {what}{whose}{by}"
    return f"{ended}: {said}" if said and said != "without a word" else ended


def _number(meta: Mapping[str, str], key: str) -> int | None:
    return whole(meta.get(key, ""))
