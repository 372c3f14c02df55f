"""What sacct prints of jobs: text in, records out. Read alike from 22.05 to 24.11."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace

from ClusterShell.NodeSet import NodeSet

from siteproof import nodesets
from siteproof.errors import UserError, harmless

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
