"""Nodes that should be alike: the value of most of them, field by field, and which nodes differ.

A value is the majority's if more than half of the nodes that could read the field have it. A field
that a node lacks is a value of its own: a package that is missing on one node makes that node odd.

What has grown on a node between two looks at its counters, such as around a campaign.

A counter starts again at zero when its node boots, so deltas are of one boot only. Within one, a
counter that fell has wrapped around, or was reset; the two are distinguished.

Nodes that restarted while they were tested, or whose slurmd did: a node that flaps measures well
between two falls, so its values do not show it. The age of the node and of its slurmd at each look
does: younger than the session, or another one than before. Where many restarted, somebody works on
the machine, and no node is accused.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import cache
from itertools import pairwise
from operator import methodcaller

from siteproof.analysis.slow_nodes import MANY, MIN_FLEET, RETESTS
from siteproof.record.finding import Finding, note
from siteproof.record.pair_units import grouped
from siteproof.record.samples import Header, JobOrder, Sample

# What belongs to one node only, or follows from other fields: no reason to call the node odd.
IDENTITY = (
    *("host.*", "dns.*", "sysctl.kernel.hostname", "sysctl.kernel.domainname"),
    *("address.*", "*.address", "*.mac", "*.serial", "*.uuid", "*.asset_tag"),
    *("lldp.*.switch", "lldp.*.switch_address", "lldp.*.port", "lldp.*.port_description"),
)
DERIVED = ("*.digest", "packages.pending")

# The kernel computes these from the memory that firmware has left it, which differs by a little
# between machines that are alike: by field, which numbers of the value.
_ALL, _KB = re.compile(r"\d+"), re.compile(r"\d+(?= kB)")
NEARLY = {
    "memory.total": _KB,
    "memory.numa.*": _KB,
    "mount.*": re.compile(r"(?<=size=)\d+|(?<=nr_inodes=)\d+"),
    "sysctl.fs.epoll.max_user_watches": _ALL,
    "sysctl.fs.file-max": _ALL,
    "sysctl.fs.inotify.max_user_watches": _ALL,
    "sysctl.kernel.threads-max": _ALL,
    "sysctl.net.ipv4.tcp_max_orphans": _ALL,
    "sysctl.net.ipv4.tcp_mem": _ALL,
    "sysctl.net.ipv4.udp_mem": _ALL,
    "sysctl.user.max_*": _ALL,
    "sysctl.vm.admin_reserve_kbytes": _ALL,
    "sysctl.vm.min_free_kbytes": _ALL,
    "sysctl.vm.user_reserve_kbytes": _ALL,
}
TOLERANCE = 0.02  # of 256 GiB that is 5 GiB: less than any DIMM, more than firmware takes

_OWN = (  # within a value: the boot disk's UUID, the boot card's address, the NFS client's address
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE), "UUID"),
    (re.compile(r"\b(?:[0-9a-f]{2}[:-]){5,}[0-9a-f]{2}\b", re.IGNORECASE), "MAC"),
    (re.compile(r"\b(clientaddr|ip)=[^, ]*"), r"\1=OWN"),
)

Value = str | None  # None: the node lacks the field


@dataclass(frozen=True)
class Majority:
    """The value of most nodes (None: they lack the field), and their share."""

    value: Value
    share: float


@dataclass(frozen=True)
class Odd:
    """A field in which a node differs; value None: it lacks what the others have."""

    field: str
    value: Value
    majority: Value


@dataclass(frozen=True)
class Uniformity:
    """How alike the nodes of a role are.

    majority: by field, where there is one. differing: by node, only nodes that differ.
    undecided: fields without a majority, each value with its nodes.
    """

    nodes: tuple[str, ...]
    majority: Mapping[str, Majority]
    differing: Mapping[str, tuple[Odd, ...]]
    undecided: Mapping[str, Mapping[Value, tuple[str, ...]]]


@dataclass(frozen=True)
class Change:
    """A field that is not what it was, on these nodes; None: it did not exist."""

    field: str
    before: Value
    after: Value
    nodes: frozenset[str]


def vote(
    fields_by_node: Mapping[str, Mapping[str, str]],
    unread: Mapping[str, Collection[str]] | None = None,
) -> Uniformity:
    """Compare nodes of one role.

    unread: by node, the fields (or beginnings of names, `nic.eth0`) that it could not read.
    """
    nodes = tuple(sorted(fields_by_node))
    rows = [fields_by_node[node] for node in nodes]
    could_not_read = {node: tuple(names) for node, names in (unread or {}).items()}
    majority: dict[str, Majority] = {}
    differing: dict[str, list[Odd]] = defaultdict(list)
    undecided: dict[str, dict[Value, tuple[str, ...]]] = {}
    for name in _names(fields_by_node.values()):
        column = list(map(methodcaller("get", name), rows))
        if column[0] is not None and column.count(column[0]) == len(column):
            majority[name] = Majority(column[0], 1.0)
            continue
        values = {
            node: value
            for node, value in zip(nodes, column, strict=True)
            if value is not None or not _covers(could_not_read.get(node), name)
        }
        alike = _meant(name, values.values())
        value, count = Counter(alike[v] for v in values.values()).most_common(1)[0]
        if 2 * count <= len(values):
            undecided[name] = _by_value(values, alike)
            continue
        majority[name] = Majority(value, count / len(values))
        for node in _differing(values, alike, value):
            differing[node].append(Odd(name, values[node], value))
    ordered = {node: tuple(differing[node]) for node in sorted(differing)}
    return Uniformity(nodes, majority, ordered, undecided)


def _by_value(
    values: Mapping[str, Value], alike: Mapping[Value, Value]
) -> dict[Value, tuple[str, ...]]:
    by_value = grouped((alike[value], node) for node, value in values.items())
    return {value: tuple(nodes) for value, nodes in by_value.items()}


def _differing(
    values: Mapping[str, Value], alike: Mapping[Value, Value], majority: Value
) -> list[str]:
    return [node for node, own in values.items() if alike[own] != majority]


def drift(
    before: Mapping[str, Mapping[str, str]], after: Mapping[str, Mapping[str, str]]
) -> list[Change]:
    """What has changed on the nodes of both descriptions, a change of many nodes once.

    Identity counts here: another serial number is another part. The widest change comes first.
    """
    found: dict[tuple[str, Value, Value], set[str]] = defaultdict(set)
    for node in before.keys() & after.keys():
        old, new = before[node], after[node]
        for name in old.keys() | new.keys():
            pair = old.get(name), new.get(name)
            if pair[0] != pair[1] and not _matches(name, DERIVED) and not _near(name, *pair):
                found[name, *pair].add(node)
    changes = [Change(*key, frozenset(nodes)) for key, nodes in found.items()]
    return sorted(changes, key=lambda c: (-len(c.nodes), c.field, c.before or "", c.after or ""))


def is_identity(name: str) -> bool:
    """Whether a field belongs to one node only, such as a serial number."""
    return _matches(name, IDENTITY)


def _names(descriptions: Iterable[Mapping[str, str]]) -> list[str]:
    names = {name for fields in descriptions for name in fields}
    return sorted(n for n in names if not is_identity(n) and not _matches(n, DERIVED))


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return _pattern(patterns)(name)


@cache
def _pattern(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    return cache(lambda name: any(fnmatchcase(name, pattern) for pattern in patterns))


def _covers(unread: Collection[str] | None, name: str) -> bool:
    return any(name == s or name.startswith(f"{s}.") for s in unread or ())


def _meant(name: str, values: Iterable[Value]) -> dict[Value, Value]:
    """For each value the commonest of those that mean the same."""
    counts = Counter(values)
    if len(counts) == 1:
        return {value: value for value in counts}
    ranked = sorted(counts, key=lambda v: (-counts[v], v or ""))
    return {v: next(r for r in ranked if r == v or _near(name, r, v)) for v in ranked}


def _near(name: str, one: Value, other: Value) -> bool:
    """Whether two values differ only in what is a node's own, or by a little of its memory."""
    if one is None or other is None:
        return False
    one, other = _impersonal(one), _impersonal(other)
    if one == other:
        return True
    numbers = next((n for pattern, n in NEARLY.items() if fnmatchcase(name, pattern)), None)
    if numbers is None or numbers.sub("", one) != numbers.sub("", other):
        return False
    pairs = zip(numbers.findall(one), numbers.findall(other), strict=True)
    return all(abs(int(a) - int(b)) <= TOLERANCE * max(int(a), int(b)) for a, b in pairs)


@cache
def _impersonal(value: str) -> str:
    for pattern, instead in _OWN:
        value = pattern.sub(instead, value)
    return value


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
