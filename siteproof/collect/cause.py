"""The first cause of a program's end, from its output and that of its launchers.

A launcher ends the other ranks when one has failed, and its report comes last and is longest. So
the last lines are mostly its own, and the exit code may be that of a rank that it ended.
Read: Open MPI 4 and 5, MPICH's and Intel's hydra, srun and slurmstepd, shells, Python, the loader.

How a node's program ended: by its own exit, its own times, and what the kernel counted.

A node's own end decides before the end of its job. What a script has written about its end was
written before somebody ended the job, unless its times show otherwise.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from siteproof import nodesets, units
from siteproof.collect.raw import ENDED, KILLED, whole
from siteproof.errors import OutputError, harmless

TAIL = 300  # characters of a tool's message that are kept
QUOTE = 150  # characters of what a tool printed, next to the reason for a refusal
MAX_LINES = 20_000  # at the beginning, and as many at the end: where a program fails, and why
MAX_TEXT = 2**21  # characters of the same: a node's 64 MiB of long lines would take minutes
TERMINATED = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)  # by which one asks a program to end
# What only the program itself or the kernel sends, so that no launcher's cleanup looks like it.
FAULTS = (
    signal.SIGSEGV,
    signal.SIGBUS,
    signal.SIGILL,
    signal.SIGFPE,
    signal.SIGSYS,
    signal.SIGTRAP,
    signal.SIGXCPU,
    signal.SIGXFSZ,
)


@dataclass(frozen=True)
class Cause:
    """The first signal or error. words: the line with it; empty where only a number is printed.

    signal: its number, 0 of an error. code: the exit code of the rank. node, rank: whose it is,
    as far as it is known. memory: whether Slurm or the kernel reports that memory ran out.
    reported: by a launcher that has seen the end of its rank; a shell's line may be of any program.
    """

    words: str = ""
    signal: int = 0
    code: int = 0
    node: str = ""
    rank: str = ""
    memory: bool = False
    reported: bool = False

    @property
    def fault(self) -> bool:
        """Whether only the program itself can have brought it about."""
        return self.memory or self.signal in FAULTS

    @property
    def whose(self) -> str:
        """Rank and node, such as 'rank 1 on node002'; empty where neither is known."""
        rank = f"rank {self.rank}" if self.rank else ""
        return " on ".join(part for part in (rank, self.node) if part)


def name_of(number: int) -> str:
    """A signal as people know it, such as 'signal 9 (SIGKILL)'."""
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"


# The words of strsignal(3), with which launchers and shells name a signal.
_ENDS = (*FAULTS, *TERMINATED, signal.SIGABRT, signal.SIGKILL)
_SIGNALS = {signal.strsignal(one) or "": one for one in _ENDS}
_SIGNALS |= dict.fromkeys(("Floating-point exception", "Arithmetic exception"), signal.SIGFPE)
_NAMES = "|".join(map(re.escape, _SIGNALS))
_CORE = r"(?: \(core dumped\))?"
_SRUN = r"^srun: error: (?P<node>[^\s:]+): tasks? (?P<rank>[^\s:]+): "
# Each gives a cause of its named groups; for a line the first that matches counts.
_SIGNAL_LINES = (
    re.compile(_SRUN + rf"(?P<name>Out Of Memory|{_NAMES}){_CORE}$"),
    re.compile(
        r"^(?:mpirun|mpiexec|prterun|orterun|prun) noticed that process rank (?P<rank>\d+) "
        r"with PID \d+ on node (?P<node>\S+) exited on signal (?P<number>\d{1,2})"
    ),
    re.compile(
        r"^YOUR APPLICATION TERMINATED WITH THE EXIT STRING: .*\(signal (?P<number>\d{1,2})\)$"
    ),
    re.compile(r"^\[(?P<node>[^\s:\]]+):\d+\] (?:\*\*\* )?Signal: .*\((?P<number>\d{1,2})\)$"),
    re.compile(r"^Program received signal SIG\w+: (?P<shell>[^.-]+?)(?: - .*)?\.?$"),
    re.compile(rf"^(?:\S+: line \d+: +\d+ |\S+: \d+: )?(?P<shell>{_NAMES}){_CORE}(?:  .*)?$"),
)
_MEMORY = re.compile(
    r"^slurmstepd(?:-(?P<node>\S+))?: error: (?:.*[Dd]etected \d+ oom[-_]kill event"
    r"|(?:Step|Job|StepId|JobId)\b.*exceeded (?:job |step )?memory limit)"
)
_ERROR_LINES = (
    re.compile(_SRUN + r"Exited with exit code (?P<code>\d{1,3})$"),
    re.compile(r"^(?P<words>.*error while loading shared libraries: .*)$"),
    re.compile(r"^(?P<words>.*\b(?:command not found|No such file or directory))$"),
    re.compile(
        r'^(?P<words>(?!\d+ )(?!.*\b(?:no|0) errors?\b)(?!\s*"error" ?: ?0\b).*'
        r"(?i:\berror\b|\bfatal\b|\bfail(?:ed|ure)\b|\bcannot\b|\bunable to\b|\bno space\b"
        r"|\bdenied\b|bad_alloc|out of memory).*)$"
    ),
)
_ABORT = re.compile(r"^MPI_ABORT was invoked on rank (?P<rank>\d+) in communicator")
_ABORT_CODE = re.compile(r"^.*errorcode:? (?P<code>-?\d{1,10})\b")
_MPICH_ABORT = re.compile(
    r"^Abort\((?P<code>-?\d{1,10})\) on node \d+ \(rank (?P<rank>\d+) in comm"
)
_WRAPPED = re.compile(r" exited\s+on\s+signal ")  # some versions break the line there
_BARE = (signal.SIGABRT, signal.SIGBUS, signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM)
_WORDS = re.compile(r"[A-Za-z]{3}")
_RULE = re.compile(r"^[-=*]{20,}$")
_TRACE = "Traceback (most recent call last):"
_HYDRA = re.compile(r"^=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES")
_HYDRA_WHERE = re.compile(r"^=   (?:RANK (?P<rank>\d+) )?PID \d+ RUNNING AT (?P<node>\S+)")
_HYDRA_END = re.compile(
    r"^=   (?:EXIT CODE: (?P<code>\d{1,3})|KILLED BY SIGNAL: (?P<number>\d{1,2}))"
)
# What launchers report of themselves, and of ranks that they have ended.
_NOISE = re.compile(
    r"^(?:[-=*]{20,}$|=   |srun: (?!error: )|srun: error: \S+: tasks? \S+: Terminated"
    r"|srun: error: (?:Timed out waiting for job step|Node failure on)"
    r"|slurmstepd\S*: error: \*\*\* (?:STEP|JOB) "
    r"|(?:mpirun|mpiexec|prterun|orterun|prun) (?:noticed|detected|has exited)"
    r"|Primary job  terminated|a non-zero exit code\. Per user-direction"
    r"|the job to be terminated\. The first process|  Process name: |  Exit code: "
    r"|NOTE: invoking MPI_ABORT|You may or may not see output|exactly when Open MPI kills"
    r"|YOUR APPLICATION TERMINATED WITH|This typically refers to a problem"
    r"|Please see the FAQ page|with errorcode|MPI_ABORT was invoked"
    r"|\[\S+\] \*\*\* (?:End of error|Process received)|\[\S+:\d+\] (?:\[ ?\d+\] |Signal|Failing)"
    r"|\[(?:proxy|mpiexec)[:@]|\d+ total processes (?:killed|failed))"
)


def first(*texts: str) -> Cause | None:
    """The cause in these texts, errors first, then output; None: there is none.

    Lack of memory comes first, as everything else follows from it; then a fault, as other ranks
    print errors when they lose a rank; then texts, before an exit code alone. A request to end is
    the cause only if nothing else is found. Of equal ones the first counts.
    """
    found = [cause for text in texts for cause in _causes(_lines(text))]
    if not found:
        return None
    return _with_place(min(found, key=_rank), found)  # the first of equals


def message(stdout: str, stderr: str) -> str:
    """The first cause on a line; otherwise the last lines, errors first, without a launcher's.

    Empty where nothing was printed.
    """
    for text in (stderr, stdout):
        cause = first(text)
        if cause is not None and cause.words:
            where = f"{cause.whose}: " if cause.whose and cause.whose not in cause.words else ""
            return _short(where + cause.words)
        if words := last_words(text):
            return words
    return ""


def printed(stdout: str, stderr: str) -> str:
    """What a tool itself reports: its first error, or else the first words of its output.

    A list of options holds words such as `error`, so its first line counts. Empty where nothing
    was printed that has words.
    """
    begins = [line for text in (stderr, stdout) if (line := _first_words(text))]
    if begins and not begins[0].lower().startswith("usage"):
        for text in (stderr, stdout):
            cause = first(text)
            if cause is not None and cause.words:
                return cause.words[:QUOTE]
    return _short(begins[0])[:QUOTE] if begins else ""


def _first_words(text: str) -> str:
    return next((x for x in _lines(text) if _WORDS.search(x) and not _NOISE.match(x)), "")


def last_words(text: str) -> str:
    """The end of a text on one line, without a launcher's report, if there is more."""
    lines = list(_lines(text[-100 * TAIL :]))
    kept = [line for line in lines if not _NOISE.match(line)] or lines
    return harmless(" ".join(" ".join(kept).split())[-TAIL:])


def ended_by_slurm(text: str) -> dict[str, Cause]:
    """srun's report of the ends of tasks, by node; a job of Siteproof has one task a node.

    Requests to end are left out, and what follows when more nodes are named than there can be.
    """
    found: dict[str, Cause] = {}
    left = nodesets.MAX_NODES
    for cause in _causes(_lines(text)):
        if not cause.reported or not cause.signal or cause.signal in TERMINATED:
            continue
        nodes = _nodes(cause.node)
        if (left := left - len(nodes)) < 0:
            break
        for node in nodes:
            if node not in found or cause.memory:
                found[node] = replace(cause, node=node)
    return found


def _nodes(text: str) -> list[str]:
    try:
        return list(nodesets.parse(text)) if text else []
    except ValueError:
        return []


def _rank(cause: Cause) -> int:
    """The order of causes; 0 comes first."""
    if cause.signal:
        if cause.memory:
            return 0
        if cause.fault:
            return 1
        return 4 if cause.signal in TERMINATED else 2
    return 3 if cause.code else 2


def _with_place(chosen: Cause, found: Iterable[Cause]) -> Cause:
    """With the node of another line about the same end: slurmstepd may not name it."""
    if chosen.node:
        return chosen
    same = (c for c in found if c.node and c.signal == chosen.signal)
    placed = next(same, None)
    if placed is None:
        return chosen
    reported = chosen.reported or placed.reported
    rank = placed.rank or chosen.rank
    return replace(chosen, node=placed.node, rank=rank, code=placed.code, reported=reported)


def _causes(lines: Iterable[str]) -> Iterator[Cause]:
    """Every signal and error, in the order of the lines."""
    rest = iter(lines)
    for line in rest:
        if _HYDRA.match(line):
            yield _of_hydra(rest)
        elif line == _TRACE:
            yield Cause(words=_last_of_trace(rest))
        elif found := _ABORT.match(line) or _MPICH_ABORT.match(line):
            named = found.groupdict()
            code = named.get("code") or _code_of(next(rest, ""))
            yield Cause(f"MPI_Abort with code {code}", 0, int(code) or 1, rank=named["rank"])
        elif cause := _signal_in(line) or _error_in(line):
            yield cause


def _signal_in(line: str) -> Cause | None:
    if found := _MEMORY.match(line):
        return Cause(
            _short(line), signal.SIGKILL, node=found["node"] or "", memory=True, reported=True
        )
    for pattern in _SIGNAL_LINES:
        if not (found := pattern.match(line)):
            continue
        named = found.groupdict()
        memory = named.get("name") == "Out Of Memory"
        by_name = _SIGNALS.get(named.get("name") or named.get("shell") or "", signal.SIGKILL)
        return Cause(
            _short(line) if named.get("shell") else "",
            int(named.get("number") or by_name),
            node=named.get("node") or "",
            rank=named.get("rank") or "",
            memory=memory,
            reported=not named.get("shell"),
        )
    return None


def _error_in(line: str) -> Cause | None:
    if _NOISE.match(line):
        return None
    for pattern in _ERROR_LINES:
        if not (found := pattern.match(line)):
            continue
        named = found.groupdict()
        code = int(named.get("code") or 0)
        words = named.get("words") or f"exited with {code}"
        return Cause(_short(words), 0, code, named.get("node") or "", named.get("rank") or "")
    return None


def _of_hydra(rest: Iterator[str]) -> Cause:
    """The box that follows: where, and by which code or signal; 128 and more is a shell's."""
    node = rank = ""
    for line in rest:
        if _RULE.match(line):
            break
        if found := _HYDRA_WHERE.match(line):
            node, rank = found["node"], found["rank"] or ""
        elif found := _HYDRA_END.match(line):
            number = int(found["number"] or 0) or _signal_of(int(found["code"]))
            if number:
                return Cause("", number, node=node, rank=rank, reported=True)
            code = int(found["code"])
            return Cause(f"exited with {code}", 0, code, node, rank)
    return Cause("a rank ended badly", node=node, rank=rank)


def _signal_of(code: int) -> int:
    """The signal in a code of hydra's: a shell's, or a bare number that hardly is an exit code."""
    number = code - 128 if code > 128 else code
    if code > 128:
        return number if number in set(_SIGNALS.values()) else 0
    return number if number in _BARE else 0


def _code_of(line: str) -> str:
    found = _ABORT_CODE.match(line)
    return found["code"] if found else "1"


def _last_of_trace(rest: Iterator[str]) -> str:
    """The exception: the first line of a traceback that is not indented."""
    for line in rest:
        if line and not line[0].isspace() and not _NOISE.match(line) and line != _TRACE:
            return _short(line)
    return "a Python exception"


def _lines(text: str) -> Iterator[str]:
    if len(text) > 2 * MAX_TEXT:
        text = f"{text[:MAX_TEXT]}\n{text[-MAX_TEXT:]}"
    lines = _WRAPPED.sub(" exited on signal ", text).splitlines()
    if len(lines) > 2 * MAX_LINES:
        lines = [*lines[:MAX_LINES], *lines[-MAX_LINES:]]
    return (line.rstrip()[: 10 * TAIL] for line in lines)


def _short(line: str) -> str:
    words = " ".join(line.split())
    return harmless(words if len(words) <= TAIL else words[:TAIL])


NOT_FOUND = 127  # a shell's exit code for a program that is not there
SIGNALS = ("129", "130", "137", "143")  # exit codes: hung up, Ctrl-C, killed, terminated
BY_ITSELF = ("COMPLETED", "FAILED", "OUT_OF_ME")  # Slurm's states of jobs that nobody ended
ENDED_ON_REQUEST = {128 + number for number in TERMINATED}  # exit codes
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
    text = message(stdout, stderr)
    if code == NOT_FOUND and not counted.count:
        return OutputError(text or NO_MESSAGE, "tool_missing")
    found = first(stderr, stdout) or Cause()
    number = signal_of(code, found)
    if found.memory or counted.explain(number):
        return _out_of_memory(counted, found, what)
    if not number:
        return OutputError(f"{what} exited with {code}: {text or NO_MESSAGE}", "generic")
    why = f"{name_of(number)} ended {what}{_whose(found)}"
    if number == signal.SIGKILL:
        why += ", from an unknown sender"
    # Where a launcher reports a signal, the rest of the output explains nothing.
    if text and (found.words or not found.signal):
        why += f": {text}"
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
    if found.reported and found.signal not in (0, *TERMINATED):
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
    found = first(texts[1], texts[0]) or Cause()
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
        name = name_of(reported.signal)
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
