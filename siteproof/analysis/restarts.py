"""Nodes that restarted while they were tested, or whose slurmd did, when most others did not.

A node that flaps measures well between two falls, so its values do not show it. The age of the node
and of its slurmd at each look does: younger than the session, or another one than before.
Where many restarted, somebody works on the machine, and no node is accused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from itertools import pairwise

from siteproof.analysis import counters
from siteproof.analysis.counters import BOOT, CHECK
from siteproof.analysis.slow_nodes import MANY, MIN_FLEET, RETESTS
from siteproof.record.finding import Finding, note
from siteproof.record.samples import Header, Sample

SLURMD = "slurmd_age"
SAME = 1.0  # seconds by which two readings of one start may differ


@dataclass(frozen=True)
class Look:
    """What a node said of itself. Times in seconds since 1970, ages in seconds.

    campaign: what it has in common with other looks: the campaign's name, or the session's.
    slurmd: None where it was not read; seen: whether the node has seen a slurmd, if it looked.
    """

    campaign: str
    began: float
    time: float
    boot: str
    age: float
    slurmd: float | None = None
    seen: bool | None = None


def restarted(nodes: Mapping[str, Sequence[Look]]) -> list[Finding]:
    """What restarted on each node that did.

    nodes: the looks at each node of one role, oldest first.
    """
    on_slurm = 2 * sum(bool(looks and looks[-1].seen) for looks in nodes.values()) > len(nodes)
    found = []
    for node, looks_at in nodes.items():
        if restart := _newest(looks_at, on_slurm):
            found.append(replace(restart, subject=node))
    return found


def are_many(restarted: Sequence[Finding], nodes: int) -> bool:
    """Whether so many of the nodes restarted that somebody works on the machine."""
    limit = max(1, MANY * nodes) if nodes >= MIN_FLEET else 0
    return len(restarted) > limit


def looks(samples: Iterable[Sample]) -> dict[str, list[Look]]:
    """The looks at each node, oldest first."""
    of_check = [s for s in samples if s.metric.partition(".")[0] == CHECK]
    heads = {s.header.job_order: s.header for s in of_check}
    return {
        node: [_look(heads[job], said) for job, said in jobs.items() if "uptime" in said]
        for node, jobs in counters.looks(of_check).items()
    }


def _look(head: Header, said: Mapping[str, Decimal | str]) -> Look:
    ended = datetime.fromisoformat(head.time).timestamp()
    # The job ends with its slowest node; a node's own clock is more exact, unless it is ahead.
    time = min(ended, float(said.get("time", ended)))
    slurmd = said.get(SLURMD)
    seen = True if slurmd is not None else False if f"not_read {SLURMD}" in said else None
    return Look(
        head.campaign or head.session,
        head.began or time,
        time,
        str(said.get(BOOT, "")),
        float(said["uptime"]),
        None if slurmd is None else float(slurmd),
        seen,
    )


def _newest(looks: Sequence[Look], on_slurm: bool) -> Finding | None:
    """What restarted at one of the newest looks; None if nothing did.

    on_slurm: most nodes see a slurmd, so that one which sees none lacks it.
    """
    befores: list[Look | None] = [None, *looks]
    for before, look in list(pairwise(befores))[: -RETESTS - 1 : -1]:
        if look and (found := _at(look, before, on_slurm)):
            return found
    return None


def _at(look: Look, before: Look | None, on_slurm: bool) -> Finding | None:
    """What restarted since the session began, or the look before in the same campaign."""
    if before and before.campaign != look.campaign:
        before = None
    span = look.time - look.began
    if look.age < span or before and before.boot != look.boot:
        what = "the node restarted during the tests: up for {age:0f} s"
        return _finding(look, what, "uptime", look.age)
    if look.seen is False and on_slurm:
        return _finding(look, "no slurmd was running", SLURMD)
    if look.slurmd is None:
        return None
    if look.slurmd < span or _another_slurmd(look, before):
        what = "slurmd restarted during the tests: {age:0f} s old"
        return _finding(look, what, SLURMD, look.slurmd)
    return None


def _another_slurmd(look: Look, before: Look | None) -> bool:
    """Whether slurmd started at another moment of the node's life than the one seen before."""
    if before is None or before.slurmd is None or look.slurmd is None:
        return False
    return abs((look.age - look.slurmd) - (before.age - before.slurmd)) > SAME


def _finding(look: Look, what: str, metric: str, age: float | None = None) -> Finding:
    time = datetime.fromtimestamp(look.time, UTC)
    return note(
        what + " at {time}; it counts until {needed} tests in a row are without a restart",
        check=CHECK,
        metric=f"{CHECK}.{metric}",
        since=time.isoformat(timespec="seconds"),
        age=age,
        time=f"{time:%H:%M:%S} UTC",
        needed=RETESTS,
    )
