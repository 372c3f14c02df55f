"""What has grown on a node between two looks at its counters, such as around a campaign.

A counter starts again at zero when its node boots, so deltas are of one boot only. Within one, a
counter that fell has wrapped around, or was reset; the two are distinguished.

Nodes that restarted while they were tested, or whose slurmd did: a node that flaps measures well
between two falls, so its values do not show it. The age of the node and of its slurmd at each look
does: younger than the session, or another one than before. Where many restarted, somebody works on
the machine, and no node is accused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from itertools import pairwise

from siteproof.analysis.slow_nodes import MANY, MIN_FLEET, RETESTS
from siteproof.record.finding import Finding, note
from siteproof.record.samples import Header, JobOrder, Sample

CHECK = "Health"
BOOT = "boot"
STATES = frozenset(
    {  # of the moment: no counters
        "clock_lowest",
        "clock_most",
        "load",
        "slurmd_age",
        "swap_used",
        "time",
        "time_offset",
        "unreadable",
        "uptime",
        "zombies",
        "read_only",
    }
)
WIDTHS = (32, 64)  # bits of the counters of kernels and cards

Look = Mapping[str, Decimal | str]


@dataclass(frozen=True)
class Delta:
    """What became of one node between two looks.

    grown: by counter, `edac_ce` or `nic_rx_errors eth0`, only what is not zero.
    unknown: by counter, why there is no delta. rebooted: no counter can be compared.
    """

    node: str
    grown: Mapping[str, Decimal]
    unknown: Mapping[str, str]
    rebooted: bool = False


def deltas(before: Mapping[str, Look], after: Mapping[str, Look]) -> list[Delta]:
    """Each node of both looks, by name."""
    return [_delta(node, before[node], after[node]) for node in sorted(before.keys() & after)]


def looks(samples: Iterable[Sample]) -> dict[str, dict[JobOrder, dict[str, Decimal | str]]]:
    """What each node said of itself, by job, the oldest first."""
    found: dict[str, dict[JobOrder, dict[str, Decimal | str]]] = {}
    for sample in sorted(samples, key=lambda s: s.header.job_order):
        check, _, metric = sample.metric.partition(".")
        if check == CHECK and sample.status == "ok" and sample.value is not None:
            name = " ".join([metric, *sample.dims.values()])
            of_node = found.setdefault(sample.node, {})
            of_node.setdefault(sample.header.job_order, {})[name] = sample.value
    return found


def around(samples: Iterable[Sample]) -> tuple[dict[str, Look], dict[str, Look]]:
    """The first and the last look at each node that was looked at twice."""
    read = (s for s in samples if s.metric != f"{CHECK}.not_read")
    twice = {node: list(jobs.values()) for node, jobs in looks(read).items() if len(jobs) > 1}
    return (
        {node: in_order[0] for node, in_order in twice.items()},
        {node: in_order[-1] for node, in_order in twice.items()},
    )


def _delta(node: str, before: Look, after: Look) -> Delta:
    if before.get(BOOT) != after.get(BOOT) or BOOT not in before:
        return Delta(node, {}, {}, rebooted=True)
    grown: dict[str, Decimal] = {}
    unknown: dict[str, str] = {}
    for name in _counters([*before, *after]):
        old, new = before.get(name), after.get(name)
        if not (isinstance(old, Decimal) and isinstance(new, Decimal)):
            unknown[name] = "read only once"
        elif new >= old:
            grown |= {name: new - old} if new > old else {}
        elif bits := _wrapped(old, new):
            grown[name] = new - old + 2**bits
        else:
            unknown[name] = f"fell from {old} to {new}: reset"
    return Delta(node, grown, unknown)


def _counters(names: Iterable[str]) -> list[str]:
    return sorted({n for n in names if n.partition(" ")[0] not in STATES and n != BOOT})


def _wrapped(old: Decimal, new: Decimal) -> int:
    """The width of a counter that has wrapped around: it was near its end, and is near zero."""
    return next((bits for bits in WIDTHS if 2**bits * 3 // 4 <= old < 2**bits > 4 * new), 0)


SLURMD = "slurmd_age"
SAME = 1.0  # seconds by which two readings of one start may differ


@dataclass(frozen=True)
class Age:
    """What a node said of itself. Times in seconds since 1970, ages in seconds.

    campaign: what it has in common with other ages: the campaign's name, or the session's.
    slurmd: None where it was not read; seen: whether the node has seen a slurmd, if it looked.
    """

    campaign: str
    began: float
    time: float
    boot: str
    age: float
    slurmd: float | None = None
    seen: bool | None = None


def restarted(nodes: Mapping[str, Sequence[Age]]) -> list[Finding]:
    """What restarted on each node that did.

    nodes: the ages at each node of one role, oldest first.
    """
    on_slurm = 2 * sum(bool(ages and ages[-1].seen) for ages in nodes.values()) > len(nodes)
    found = []
    for node, looks_at in nodes.items():
        if restart := _newest(looks_at, on_slurm):
            found.append(replace(restart, subject=node))
    return found


def are_many(restarted: Sequence[Finding], nodes: int) -> bool:
    """Whether so many of the nodes restarted that somebody works on the machine."""
    limit = max(1, MANY * nodes) if nodes >= MIN_FLEET else 0
    return len(restarted) > limit


def ages(samples: Iterable[Sample]) -> dict[str, list[Age]]:
    """The ages at each node, oldest first."""
    of_check = [s for s in samples if s.metric.partition(".")[0] == CHECK]
    heads = {s.header.job_order: s.header for s in of_check}
    return {
        node: [_age(heads[job], said) for job, said in jobs.items() if "uptime" in said]
        for node, jobs in looks(of_check).items()
    }


def _age(head: Header, said: Mapping[str, Decimal | str]) -> Age:
    ended = datetime.fromisoformat(head.time).timestamp()
    # The job ends with its slowest node; a node's own clock is more exact, unless it is ahead.
    time = min(ended, float(said.get("time", ended)))
    slurmd = said.get(SLURMD)
    seen = True if slurmd is not None else False if f"not_read {SLURMD}" in said else None
    return Age(
        head.campaign or head.session,
        head.began or time,
        time,
        str(said.get(BOOT, "")),
        float(said["uptime"]),
        None if slurmd is None else float(slurmd),
        seen,
    )


def _newest(ages: Sequence[Age], on_slurm: bool) -> Finding | None:
    """What restarted at one of the newest ages; None if nothing did.

    on_slurm: most nodes see a slurmd, so that one which sees none lacks it.
    """
    befores: list[Age | None] = [None, *ages]
    for before, look in list(pairwise(befores))[: -RETESTS - 1 : -1]:
        if look and (found := _at(look, before, on_slurm)):
            return found
    return None


def _at(look: Age, before: Age | None, on_slurm: bool) -> Finding | None:
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


def _another_slurmd(look: Age, before: Age | None) -> bool:
    """Whether slurmd started at another moment of the node's life than the one seen before."""
    if before is None or before.slurmd is None or look.slurmd is None:
        return False
    return abs((look.age - look.slurmd) - (before.age - before.slurmd)) > SAME


def _finding(look: Age, what: str, metric: str, age: float | None = None) -> Finding:
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
