"""The nodes that Slurm lists, as roles: nodes with the same hardware that one partition reaches."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ClusterShell.NodeSet import NodeSet

from siteproof import nodesets
from siteproof.slurm.configured import ConfiguredNode, ConfiguredPartition

SAME_MEMORY = 1.05  # RealMemory of equal nodes differs by what firmware and kernel keep
MOST_KINDS = 6  # more combinations of features in one kind of hardware are no kinds
PLACES = 3  # numbered features such as rack1, rack2, rack3 are places, from this many on
LONG = 4 * 60  # minutes: a partition with a shorter limit is for tests of users
_NUMBERED = re.compile(r"(.*?[A-Za-z_-])([0-9]+)")
_BAD = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True)
class Kind:
    """What nodes of the same hardware have in common. memory: MiB, the least of them."""

    architecture: str
    sockets: int
    cores_per_socket: int
    threads_per_core: int
    memory: int
    gres: tuple[tuple[str, str], ...]
    features: frozenset[str] = frozenset()

    @property
    def gpus(self) -> int:
        """GPUs of a node, as GRES counts them."""
        counts = [count for kind, count in self.gres if kind.partition(":")[0] == "gpu"]
        return sum(int(count) for count in counts if count.isdigit())


@dataclass(frozen=True)
class Group:
    """A role of the new site. partition: Slurm's, which reaches all its nodes; "" for none.

    others: other partitions over the same nodes, each with how many of them it has.
    """

    name: str
    hardware: str
    kind: Kind
    nodes: NodeSet
    partition: str
    others: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Grouped:
    """All roles, the places of nodes (racks), and the nodes that are left out, each with why."""

    roles: Sequence[Group]
    places: Mapping[str, NodeSet]
    left_out: Mapping[str, NodeSet]


def group(
    nodes: Mapping[str, ConfiguredNode], partitions: Mapping[str, ConfiguredPartition]
) -> Grouped:
    """Each node in one role, and each role in one partition, so that no node is measured twice."""
    there = [node for node in nodes.values() if not node.absent]
    absent = nodesets.of(node.name for node in nodes.values() if node.absent)
    places = _places(there)
    kinds = _kinds(there, {feature for features in places.values() for feature in features})
    found: list[Group] = []
    alone = nodesets.of()
    for number, (kind, members) in enumerate(kinds.items()):
        for partition, reached in _reached(nodesets.of(members), partitions):
            if partition:
                found.append(Group("", str(number), kind, reached, partition))
            else:
                alone.update(reached)
    found.sort(key=lambda one: (-len(one.nodes), str(one.nodes)))
    left_out = {"in no partition": alone, "not there yet (FUTURE or CLOUD)": absent}
    sets = {
        name: nodesets.of(of_place)
        for features in places.values()
        for name, of_place in features.items()
    }
    return Grouped(
        _with_others(_named(found), partitions),
        {_name(name): members for name, members in sets.items()},
        {why: members for why, members in left_out.items() if members},
    )


def _places(nodes: Iterable[ConfiguredNode]) -> dict[str, dict[str, list[str]]]:
    """Numbered features of which each node has at most one: {"rack": {"rack1": [nodes]}}."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    several: set[str] = set()
    for node in nodes:
        stems = []
        for feature in node.features:
            if match := _NUMBERED.fullmatch(feature):
                found[match[1]][feature].append(node.name)
                stems.append(match[1])
        several.update(stem for stem, count in Counter(stems).items() if count > 1)
    return {
        stem: features
        for stem, features in sorted(found.items())
        if len(features) >= PLACES and stem not in several
    }


def _kinds(nodes: Sequence[ConfiguredNode], places: set[str]) -> dict[Kind, list[str]]:
    """The nodes by what they are: hardware first, then the features that divide it."""
    least = _memory_classes({node.memory for node in nodes})
    found: dict[Kind, list[ConfiguredNode]] = defaultdict(list)
    for node in nodes:
        kind = Kind(
            node.architecture,
            node.sockets,
            node.cores_per_socket,
            node.threads_per_core,
            least[node.memory],
            node.gres,
        )
        found[kind].append(node)
    divided: dict[Kind, list[str]] = {}
    for kind, members in found.items():
        divided |= _by_features(kind, members, places)
    return divided


def _memory_classes(sizes: set[int]) -> dict[int, int]:
    """Each size with the least of those that are nearly the same."""
    least: dict[int, int] = {}
    current = 0
    for size in sorted(sizes):
        if not current or size > current * SAME_MEMORY:
            current = size
        least[size] = current
    return least


def _by_features(
    kind: Kind, members: Sequence[ConfiguredNode], places: set[str]
) -> dict[Kind, list[str]]:
    common = frozenset.intersection(*(node.features for node in members))
    found: dict[frozenset[str], list[str]] = defaultdict(list)
    for node in members:
        found[node.features - common - places].append(node.name)
    if len(found) > MOST_KINDS:
        return {kind: [node.name for node in members]}
    return {
        replace(kind, features=features | (common - places)): names
        for features, names in found.items()
    }


def _reached(
    nodes: NodeSet, partitions: Mapping[str, ConfiguredPartition]
) -> list[tuple[str, NodeSet]]:
    """Partitions that together reach these nodes, each with its own part; "" reaches the rest."""
    found, rest = [], nodes.copy()
    while rest:
        candidates = {name: part.nodes & rest for name, part in partitions.items()}
        best = max(candidates, key=lambda name: _rank(partitions[name], len(candidates[name])))
        reached = candidates[best]
        if not reached:
            found.append(("", rest))
            break
        found.append((best, reached))
        rest = rest - reached
    return found


def _rank(partition: ConfiguredPartition, reached: int) -> tuple[object, ...]:
    """Which partition is preferred: one that everybody may use, that reaches many, few others."""
    usable = partition.up and reached > 0
    return (
        usable,
        reached > 0,
        reached,
        not partition.hidden,
        not partition.restricted,
        _minutes(partition.limit) >= LONG,
        -len(partition.nodes),
        partition.default,
        _minutes(partition.limit),
    )


def _minutes(limit: str) -> float:
    """`2-00:00:00` in minutes; no limit is the longest."""
    days, dash, rest = limit.rpartition("-")
    parts = rest.split(":")
    if not all(part.isdigit() for part in (*parts, days or "0")):
        return float("inf")
    hours, minutes = (int(parts[0]), int(parts[1])) if len(parts) > 1 else (0, int(parts[0]))
    return (int(days or 0) * 24 + hours) * 60 + minutes


def _named(groups: Sequence[Group]) -> list[Group]:
    """The groups with names: the partition's, and what distinguishes several of one partition."""
    by_partition = Counter(one.partition for one in groups)
    taken: dict[str, int] = {}
    hardware: dict[str, str] = {}
    found = []
    for one in groups:
        parts = [one.partition]
        if by_partition[one.partition] > 1:
            alike = [other for other in groups if other.partition == one.partition]
            parts += _differences(one, alike)
        name = _name("-".join(parts))
        taken[name] = taken.get(name, 0) + 1
        if taken[name] > 1:
            name = f"{name}-{taken[name]}"
        kind = hardware.setdefault(one.hardware, name)
        found.append(replace(one, name=name, hardware=kind))
    return found


def _differences(one: Group, alike: Sequence[Group]) -> list[str]:
    """Words for what distinguishes a kind of node from the others of its partition."""
    own = _words(one.kind)
    others = [_words(other.kind) for other in alike]
    return [
        word
        for place, word in enumerate(own)
        if word and len({words[place] for words in others}) > 1
    ]


def _words(kind: Kind) -> list[str]:
    """What may distinguish a kind: GRES, cores, memory, features, architecture."""
    return [
        "-".join(name.rpartition(":")[2] + count for name, count in kind.gres),
        f"{kind.sockets * kind.cores_per_socket}c",
        f"{round(kind.memory / 1024)}g",
        "-".join(sorted(kind.features)),
        kind.architecture,
    ]


def _name(text: str) -> str:
    """A name that ReFrame accepts: letters, digits, _ and -, and no digit first."""
    plain = _BAD.sub("-", text).strip("-").lower()[:60].strip("-")
    return plain if plain[:1].isalpha() else f"nodes-{plain}".strip("-")


def _with_others(
    groups: Sequence[Group], partitions: Mapping[str, ConfiguredPartition]
) -> list[Group]:
    """Each group with the other partitions over its nodes."""
    found = []
    for one in groups:
        others = {
            name: len(part.nodes & one.nodes)
            for name, part in partitions.items()
            if name != one.partition and part.nodes & one.nodes
        }
        found.append(Group(one.name, one.hardware, one.kind, one.nodes, one.partition, others))
    return found
