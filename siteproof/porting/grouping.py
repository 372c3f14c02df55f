"""The nodes that Slurm lists, as roles: nodes with the same hardware that one partition reaches.

What one node of a kind is, from its own output: that of description.sh, or of lscpu.

It is read from a file, or a short job through Slurm prints it.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ClusterShell.NodeSet import NodeSet

from siteproof import files, nodesets
from siteproof.errors import OutputError, UserError, harmless
from siteproof.parsers import description
from siteproof.sites.catalogue import FOLDER, Feature
from siteproof.sites.system import is_of_network
from siteproof.slurm import client, records
from siteproof.slurm.configured import ConfiguredNode, ConfiguredPartition

SAME_MEMORY = 1.05  # RealMemory of equal nodes differs by what firmware and kernel keep
MAX_KINDS = 6  # more combinations of features in one kind of hardware are no kinds
PLACES = 3  # numbered features such as pod1, pod2, pod3 are places, from this many on
WIDEST = 64  # nodes of one job of a check
LONG = 4 * 3600  # seconds: a partition with a shorter limit is for tests of users
# rack7, row-b, island_2a; x1000c0s3, r1u7; a bare 7.
_PLACE = re.compile(
    r"(.*(?:rack|row|island|switch|cab|cabinet|chassis|leaf|cell|blade|enclosure|pdu|room|hall|zone"
    r"|block|aisle)[-_]?)(?:[0-9]+[a-z]?|(?<=[-_])[a-z]|(?-i:[A-Z]))|(?:[bcijlnprsux][0-9]+[-_.]?){2,}|[0-9]+",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"(.*?[A-Za-z_-])([0-9]+)")
_BAD = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True)
class NewRole:
    """A role of the new site. partition: Slurm's, which reaches all its nodes; "" for none.

    kind: what its nodes have in common, with the least memory, and features that divide them.
    others: other partitions over the same nodes, each with how many of them it has.
    restricted: what its partition asks of a job.
    """

    name: str
    hardware: str
    kind: ConfiguredNode
    nodes: NodeSet
    partition: str
    others: Mapping[str, int] = field(default_factory=dict)
    restricted: Sequence[str] = ()


@dataclass(frozen=True)
class Grouped:
    """All roles, the places of nodes (racks), and the nodes that are left out, each with why."""

    roles: Sequence[NewRole]
    places: Mapping[str, NodeSet]
    left_out: Mapping[str, NodeSet]


def group(
    nodes: Mapping[str, ConfiguredNode],
    partitions: Mapping[str, ConfiguredPartition],
    *,
    apart: bool = False,
) -> Grouped:
    """Each node in one role, and each role in one partition, so that no node is measured twice.

    apart: no partition has a part of a role.
    """
    there = [node for node in nodes.values() if not node.absent]
    absent = nodesets.of(node.name for node in nodes.values() if node.absent)
    places, divide_nothing = _places(there)
    found = [
        NewRole("", str(number), kind, reached, partition)
        for number, (kind, members) in enumerate(_kinds(there, divide_nothing).items())
        for partition, reached in _parts(members, partitions, apart=apart)
    ]
    alone = NodeSet.fromlist(one.nodes for one in found if not one.partition)
    reachable = [one for one in found if one.partition]
    reachable.sort(key=lambda one: (-len(one.nodes), str(one.nodes)))
    listed = nodesets.of(nodes)
    unlisted = nodesets.of(n for part in partitions.values() for n in part.nodes - listed)
    left_out = {
        "in no partition": alone,
        "not there now (FUTURE, or a cloud's node that is powered down)": absent,
        "in a partition, but not in the list of nodes": unlisted,
    }
    return Grouped(
        _named(reachable, partitions),
        _named_places({place: set(names) - set(alone) for place, names in places.items()}),
        {why: members for why, members in left_out.items() if members},
    )


def _places(nodes: Sequence[ConfiguredNode]) -> tuple[dict[str, list[str]], set[str]]:
    """The nodes of each place, such as rack7, of which no node has two; all features that name one.

    A feature that one node alone has names the node, where several nodes have such ones.
    """
    having: dict[str, list[str]] = defaultdict(list)
    for node in nodes:
        for feature in node.features:
            having[feature].append(node.name)
    places = {
        feature: having[feature]
        for features in _numbered(nodes, sorted(having))
        if len(features) >= PLACES or _PLACE.fullmatch(features[0])
        for feature in features
    }
    own = [feature for feature, names in having.items() if len(names) == 1]
    if len({having[feature][0] for feature in own}) < PLACES:
        own = []
    named = {place: names for place, names in places.items() if place not in own or _word(place)}
    return named, {*places, *own}


def _numbered(nodes: Iterable[ConfiguredNode], features: Iterable[str]) -> list[list[str]]:
    """Features that differ in a number or a letter only, and of which no node has two."""
    several: set[str] = set()
    for node in nodes:
        stems = Counter(map(_stem, node.features))
        several.update(stem for stem, count in stems.items() if count > 1)
    alike: dict[str, list[str]] = defaultdict(list)
    for feature in features:
        alike[_stem(feature)].append(feature)
    return [found for stem, found in sorted(alike.items()) if stem and stem not in several]


def _stem(feature: str) -> str:
    """What numbered features of one kind have in common; empty: it is not numbered."""
    if match := _PLACE.fullmatch(feature):
        return match[1] or re.sub("[0-9]+", "0", feature)
    match = _NUMBERED.fullmatch(feature)
    return match[1] if match else ""


def _word(place: str) -> bool:
    """Whether it is called a rack, a row or the like, and is not only a node's number."""
    return bool((match := _PLACE.fullmatch(place)) and match[1])


def _named_places(places: Mapping[str, Collection[str]]) -> dict[str, NodeSet]:
    """The nodes of each place by a name of its own; Rack1 and rack1 are two."""
    found: dict[str, NodeSet] = {}
    for name, members in places.items():
        if members:
            found[_free(_name(name), found)] = nodesets.of(members)
    return found


def _kinds(nodes: Sequence[ConfiguredNode], places: set[str]) -> dict[ConfiguredNode, list[str]]:
    """The nodes by what they are: hardware first, then the features that divide it."""
    least = _memory_classes({node.memory for node in nodes})
    of_shape = {_shape(node): node.architecture for node in nodes if node.architecture}
    of_shape = {_shape(node): "" for node in nodes} | of_shape
    found: dict[ConfiguredNode, list[ConfiguredNode]] = defaultdict(list)
    for node in nodes:
        architecture = node.architecture or of_shape[_shape(node)]
        alike = replace(node, name="", architecture=architecture, features=frozenset(), unread=())
        kind = replace(alike, memory=least[node.memory])
        found[kind].append(node)
    divided: dict[ConfiguredNode, list[str]] = {}
    for kind, members in found.items():
        divided |= _by_features(kind, members, places)
    return divided


def _shape(node: ConfiguredNode) -> tuple[object, ...]:
    """What a node that was never up has in common with its sisters, whose architecture is known."""
    return node.sockets, node.cores_per_socket, node.threads_per_core, node.gres, node.features


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
    kind: ConfiguredNode, members: Sequence[ConfiguredNode], places: set[str]
) -> dict[ConfiguredNode, list[str]]:
    common = frozenset.intersection(*(node.features for node in members))
    found: dict[frozenset[str], list[str]] = defaultdict(list)
    for node in members:
        found[node.features - common - places].append(node.name)
    if len(found) > MAX_KINDS:
        return {kind: [node.name for node in members]}
    return {
        replace(kind, features=features | (common - places)): names
        for features, names in found.items()
    }


def _parts(
    members: Sequence[str], partitions: Mapping[str, ConfiguredPartition], *, apart: bool
) -> list[tuple[str, NodeSet]]:
    """As _reached; apart: of nodes that the same partitions have."""
    if not apart:
        return _reached(nodesets.of(members), partitions)
    alike: dict[frozenset[str], list[str]] = defaultdict(list)
    for node in members:
        alike[frozenset(name for name, one in partitions.items() if node in one.nodes)].append(node)
    return [part for names in alike.values() for part in _reached(nodesets.of(names), partitions)]


def _reached(
    nodes: NodeSet, partitions: Mapping[str, ConfiguredPartition]
) -> list[tuple[str, NodeSet]]:
    """Partitions that together reach these nodes, each with its own part; "" reaches the rest."""
    found, rest = [], nodes.copy()
    while rest:
        candidates = {name: part.nodes & rest for name, part in partitions.items()}
        ranks = {name: _rank(partitions[name], len(part)) for name, part in candidates.items()}
        best = max(ranks, key=lambda name: ranks[name], default="")
        if not (best and candidates[best]):
            found.append(("", rest))
            break
        found.append((best, candidates[best]))
        rest = rest - candidates[best]
    return found


def _rank(partition: ConfiguredPartition, reached: int) -> tuple[object, ...]:
    """Which partition is preferred: one that everybody may use, that reaches many, few others."""
    limit = records.seconds(partition.limit) or math.inf  # UNLIMITED is the longest
    return (
        partition.up and reached > 0,
        reached > 0,
        not partition.is_closed,
        min(partition.max_nodes, reached, WIDEST),
        reached,
        not partition.restricted,
        limit >= LONG,
        -len(partition.nodes),
        partition.default,
        limit,
    )


def _named(
    groups: Sequence[NewRole], partitions: Mapping[str, ConfiguredPartition]
) -> list[NewRole]:
    """The groups with names: the partition's, and what distinguishes several of one partition."""
    taken: set[str] = set()
    hardware: dict[str, str] = {}
    found = []
    for one in groups:
        used = partitions[one.partition]
        alike = [other for other in groups if other is not one and other.nodes & used.nodes]
        name = _free(_name("-".join([one.partition, *_differences(one.kind, alike)])), taken)
        taken.add(name)
        kind = hardware.setdefault(one.hardware, name)
        shared = {name: len(part.nodes & one.nodes) for name, part in partitions.items()}
        others = {other: n for other, n in shared.items() if n and other != one.partition}
        asked = used.restricted
        found.append(replace(one, name=name, hardware=kind, others=others, restricted=asked))
    return found


def _free(name: str, taken: Container[str]) -> str:
    """The name, or the first of NAME-2, NAME-3 … that is not taken."""
    numbered = (f"{name}-{number}" for number in itertools.count(2))
    return next(one for one in itertools.chain([name], numbered) if one not in taken)


def _differences(kind: ConfiguredNode, alike: Sequence[NewRole]) -> list[str]:
    """The fewest words that distinguish a kind of node from the others of its partition."""
    own, others = _words(kind), [_words(other.kind) for other in alike]
    marks = []
    for place, mark in enumerate(own):
        if mark and any(words[place] != mark for words in others):
            marks.append(mark)
            others = [words for words in others if words[place] == mark]
    return marks


def _words(kind: ConfiguredNode) -> list[str]:
    """What may distinguish a kind: GRES, features, memory, cores, architecture."""
    return [
        "-".join(f"{count}x{name.rpartition(':')[2]}" for name, count in kind.gres),
        "-".join(sorted(kind.features)),
        f"{round(kind.memory / 1024)}g",
        f"{kind.sockets * kind.cores_per_socket}c",
        kind.architecture,
    ]


def _name(text: str) -> str:
    """A name that ReFrame accepts: letters, digits, _ and -, and no digit first."""
    plain = _BAD.sub("-", text).strip("-").lower()[:60].strip("-")
    return plain if plain[:1].isalpha() and plain != "null" else f"nodes-{plain}".strip("-")


SCRIPT = FOLDER / "system/description.sh"
OTHER = Path(__file__).resolve().parents[1] / "checks/on_node/other_tools.sh"
SOURCED = '. "$1/other_tools.sh"'
_FOUND = re.compile(r"^found ([A-Za-z0-9_.-]{1,60})$", re.MULTILINE)
_LSCPU = {
    "Model name": "cpu.model",
    "Socket(s)": "cpu.sockets",
    "Core(s) per socket": "cores_per_socket",
    "Thread(s) per core": "cpu.threads_per_core",
    "CPU(s)": "cpu.threads",
    "Architecture": "kernel.machine",
}


@dataclass(frozen=True)
class OneNode:
    """A node that was looked at. programs: those of checks that are on its PATH; None: unknown."""

    name: str
    fields: Mapping[str, str] = field(default_factory=dict)
    programs: frozenset[str] | None = None

    def number(self, name: str) -> int:
        """A field as a whole number; 0 if it is none."""
        text = self.fields.get(name, "")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0

    @property
    def model(self) -> str:
        """The processor's name; empty if it was not read."""
        return " ".join(self.fields.get("cpu.model", "").split())

    @property
    def last_level_cache(self) -> str:
        """All of the highest level together, as a size; empty if it was not read."""
        caches = sorted(n for n in self.fields if re.fullmatch(r"cpu\.cache\.l[2-4]", n))
        text = self.fields[caches[-1]] if caches else ""
        match = re.match(r"([0-9]{1,9})K .*shared by ([0-9,-]+)", text)
        shared = _how_many(match[2]) if match else 0
        if not match or not shared or not self.number("cpu.threads"):
            return ""
        return f"{int(match[1]) * max(1, self.number('cpu.threads') // shared)} KiB"

    @property
    def interfaces(self) -> dict[str, tuple[str, str]]:
        """The devices that are up: speed as Gb/s, or empty, and MTU."""
        found = {}
        for name in self.fields:
            match = re.fullmatch(r"nic\.([A-Za-z0-9_.:-]{1,15})\.operstate", name)
            if not match or self.fields[name] != "up" or match[1] == "lo":
                continue
            speed = re.fullmatch(r"([0-9]{1,9}) Mb/s", self.fields.get(f"nic.{match[1]}.speed", ""))
            rate = f"{int(speed[1]) / 1000:g} Gb/s" if speed and int(speed[1]) > 0 else ""
            found[match[1]] = rate, str(self.number(f"nic.{match[1]}.mtu") or "")
        return found

    @property
    def shared_file_systems(self) -> list[tuple[str, str]]:
        """Mounts that all nodes see, by their kind: (path, kind)."""
        found = []
        for name, value in self.fields.items():
            kind = value.partition(" ")[0]
            if name.startswith("mount./") and is_of_network(kind):
                found.append((name.removeprefix("mount."), kind))
        return found


def read(name: str, text: str) -> OneNode:
    """What a node printed. Raises UserError if it is neither a description nor lscpu's output."""
    if re.search(r"^Architecture:\s", text, re.MULTILINE):
        return OneNode(name, _of_lscpu(text))
    try:
        fields = {one.metric: str(one.value) for one in description.parse(text)}
    except OutputError as error:
        hint = "Save what 'lscpu' prints with LC_ALL=C, or description.sh"
        raise UserError(f"--node {name}", str(error), hint=hint) from None
    programs = frozenset(_FOUND.findall(text)) if "\nfound" in f"\n{text}" else None
    return OneNode(name, fields, programs)


def _of_lscpu(text: str) -> dict[str, str]:
    lines = (line.partition(":") for line in text.splitlines())
    values = {label.strip(): harmless(value.strip())[:200] for label, _, value in lines}
    found = {name: values[label] for label, name in _LSCPU.items() if label in values}
    node = OneNode("", found)
    if cores := node.number("cpu.sockets") * node.number("cores_per_socket"):
        found["cpu.cores"] = str(cores)
    return found


def _how_many(processors: str) -> int:
    """The length of a list such as `0-7,64-71`; 0 if it is none."""
    try:
        return len(nodesets.numbers(processors))
    except ValueError:
        return 0


def script(features: Iterable[Feature]) -> str:
    """A shell text that describes the node on which it runs, in a folder of its own there."""
    programs = sorted({program for one in features for program in one.programs})
    text, other = (files.read_named(path).decode() for path in (SCRIPT, OTHER))
    looks = "\n".join(
        f"command -v {name} >/dev/null 2>&1 && echo 'found {name}'" for name in programs
    )
    begin = 'cd "$(mktemp -d)" || exit 1\ntrap \'rm -rf "$PWD"\' EXIT\necho "found none"\n'
    return f"{begin}{looks}\n{text.replace(SOURCED, other)}"


END = "end description"
_REFUSED = re.compile(r"Invalid (?:account|qos)[\w /]*", re.IGNORECASE)  # of every job alike


def through_slurm(
    roles: Iterable[NewRole], features: Mapping[str, Feature], options: Iterable[str]
) -> tuple[dict[str, OneNode], dict[str, str]]:
    """An idle node of each kind of hardware; and of which none could be looked at, with why."""
    found: dict[str, OneNode] = {}
    why: dict[str, str] = {}
    look = ["sh", "-c", script(features.values())]
    states = client.node_states()
    for role in roles:
        if role.hardware in found:
            continue
        idle = [n for n in role.nodes if n in states and states[n].state.idle]
        if not idle:
            why[role.hardware] = "no idle node"
            continue
        words = [f"--partition={role.partition}", *options]
        done = client.on_each(nodesets.of(idle[:1]), words, look, lambda text: text.count(END))
        try:
            found[role.hardware] = read(idle[0], done.stdout)
        except UserError as error:
            printed = " ".join(harmless(done.stderr).split())[:200]
            if refused := _REFUSED.search(printed):
                hint = "'sacctmgr show associations user=$USER' lists yours"
                raise UserError("--describe", f"Slurm refuses: '{refused[0]}'", hint=hint) from None
            why[role.hardware] = f"{idle[0]}: {printed or error.what}"
    return found, why
