"""Nodes that should be alike: the value of most of them, field by field, and which nodes differ.

A value is the majority's if more than half of the nodes that could read the field have it. A field
that a node lacks is a value of its own: a package that is missing on one node makes that node odd.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from operator import methodcaller

from siteproof.record.grouped import grouped

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
