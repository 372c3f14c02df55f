"""The files of a new site: what Slurm, a node and the modules list, and gaps for the rest."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from siteproof.porting.grouping import Grouped
from siteproof.porting.one_node import OneNode
from siteproof.sites.catalogue import Feature
from siteproof.slurm.configured import ConfiguredNode

MAX_MODULES = 50_000
_MODULE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+/-]{0,199}")
_MIG = re.compile(r"[0-9]g\.[0-9]+gb")
# CUDA-12.1 or gompic in the name of a module, as EasyBuild and Spack give them.
_FOR_GPUS = re.compile(r"cuda|rocm|(?<![a-z])(?:hip|gpu|gompic|goolfc)(?![a-z])", re.IGNORECASE)
_MARK = re.compile(r"(?:\s*(?:\([^()\s]*\)|<[^<>\s]*>))+$")  # (D), (latest:default), <aL>


@dataclass(frozen=True)
class Offer:
    """A module and the features that it brings. for_gpus: to nodes with GPUs only."""

    module: str
    features: tuple[str, ...]
    for_gpus: bool = False


def parse_modules(text: str) -> list[str]:
    """The modules that `module -t avail` prints: no folders, no headers, marks such as (D) cut."""
    found: dict[str, None] = {}
    for line in text.splitlines()[:MAX_MODULES]:
        name = _MARK.sub("", line.strip())
        if not name.endswith((":", "/")) and _MODULE.fullmatch(name):
            found[name] = None
    return list(found)


def offers(
    modules: list[str], known: Mapping[str, Feature], with_gpus: Collection[bool]
) -> list[Offer]:
    """Of each feature the newest module that has its name; one module may bring several.

    with_gpus: whether nodes have GPUs, of each role. A build for GPUs is taken where all have
    them, or where there is no other and some have.
    """
    by_module: dict[str, list[str]] = {}
    for feature, about in known.items():
        named = [module for module in modules if _is_of(module, about.modules)]
        plain = [module for module in named if not _FOR_GPUS.search(module)]
        candidates = named if False not in with_gpus else plain
        if not candidates and True in with_gpus:
            candidates = named
        if candidates:
            by_module.setdefault(max(candidates, key=_version), []).append(feature)
    return [
        Offer(module, tuple(features), bool(_FOR_GPUS.search(module)))
        for module, features in by_module.items()
    ]


def _is_of(module: str, names: list[str]) -> bool:
    """Whether a module is one of these names, whatever its version: `apps/GROMACS/2024.1`."""
    parts = [part.lower() for part in module.split("/")]
    return any(part in names for part in parts[-2:])


def _version(module: str) -> tuple[tuple[int, object], ...]:
    """A version that compares by its numbers: 2024.10 is newer than 2024.9."""
    return tuple(_terms(module.rpartition("/")[2] if "/" in module else ""))


def _terms(version: str) -> Iterator[tuple[int, object]]:
    for term in re.findall(r"[0-9]+|[A-Za-z]+", version):
        yield (1, int(term)) if term.isdigit() else (0, term)


PATTERN = "random:1"  # each node with one partner, all pairs at once: as fast for 40,000 as for 4
# Criteria that only a contract can give: the name of each, and what is to be filled in.
PROMISES = {
    "HPL": "floating-point rate of a node: metric Hpl.gflops, nodes, at_least, source",
    "STREAM": "memory bandwidth of a node: metric Stream.triad, nodes, at_least, source",
    "NETWORK": "rate of each pair: metric TcpBandwidth.throughput, subject pair, links, at_least, "
    "source",
    "STORAGE": "rate of a file system: metric Ior.write and Ior.read, conditions file_system, "
    "at_least, source",
}


@dataclass(frozen=True)
class Sections:
    """What of system.yaml a centre's own settings give, in lines.

    hardware: lines of a kind of node, by its name. nodes: roles that Slurm does not list.
    """

    head: Sequence[str]
    hardware: Mapping[str, Sequence[str]]
    nodes: Sequence[str]
    partitions: Sequence[str]
    environments: Sequence[str]


@dataclass(frozen=True)
class Known:
    """What a new site is made from.

    described: by the name of the hardware. day: of the query, 2026-11-23. slurm: where nodes and
    partitions come from, in words. features: those that checks know. modules_system: what loads the
    modules of the offers, by ReFrame's name. command: which one writes it. given: by a centre's
    settings, in place of what would be made of Slurm's partitions.
    """

    name: str
    cluster: str
    grouped: Grouped
    described: Mapping[str, OneNode]
    offers: Sequence[Offer]
    features: Mapping[str, Feature]
    slurm: str
    day: str
    modules_system: str = "nomod"
    extra: Mapping[str, str] = field(default_factory=dict)
    command: str = "sites new"
    given: Sections | None = None


def files(known: Known) -> dict[str, str]:
    """The text of each file, by its name."""
    return {
        "system.yaml": "\n".join(_system(known)) + "\n",
        "criteria.yaml": "\n".join(_criteria(known)) + "\n",
        "baselines.yaml": "\n".join(_baselines(known)) + "\n",
    }


def marked(text: str) -> str:
    """A gap in YAML, with what to fill in."""
    return f"!gap {in_quotes(text)}"


def in_quotes(text: str) -> str:
    """A text in YAML, in quotes."""
    return "'" + text.replace("'", "''") + "'"


def _list(words: Sequence[str]) -> str:
    return f"[{', '.join(words)}]"


def _system(known: Known) -> Iterator[str]:
    given, roles = known.given, known.grouped.roles
    yield f"# Written by 'siteproof {known.command}' on {known.day} from {known.slurm}."
    yield "# A value with !gap is not known yet: its text is what to fill in. 'siteproof lint"
    yield f"# {known.name}' lists the gaps, 'siteproof sites --keys' explains all keys."
    yield f"system: {known.name}"
    yield from given.head if given else _head(known)
    kinds = dict.fromkeys(one.hardware for one in roles)
    if kinds:
        yield ""
        yield "hardware:"
    for name in kinds:
        yield from _hardware(known, name)
        yield from given.hardware.get(name, ()) if given else ()
    yield ""
    yield "nodes:"
    for one in roles:
        yield f"  {one.name}:"
        yield f"    set: {in_quotes(str(one.nodes))}"
        yield f"    hardware: {one.hardware}"
    yield from given.nodes if given else ()
    for why, nodes in known.grouped.left_out.items():
        yield f"  # Left out, {why}: {nodes}"
    yield from _places(known)
    yield from _file_systems(known)
    yield from _links(known)
    yield ""
    yield "partitions:  # each node is measured in one of them"
    yield from given.partitions if given else _partitions(known)
    yield ""
    yield "environments:  # 'siteproof sites --features' lists what they may offer"
    own = given.environments if given else ()
    if "  system:" not in own:
        yield from _environments(known)
    yield from own


def _head(known: Known) -> Iterator[str]:
    count = sum(len(one.nodes) for one in known.grouped.roles)
    yield f"description: {in_quotes(f'{known.name}, a cluster of {count} nodes')}"
    yield f"recognise: {{cluster: {_cluster(known)}}}"
    yield "mode: quick  # until criteria.yaml holds the contract; then maintenance"
    if known.modules_system != "nomod":
        yield f"modules_system: {known.modules_system}"


def _cluster(known: Known) -> str:
    if known.cluster:
        return in_quotes(known.cluster)
    return marked("ClusterName in slurm.conf, or use hostname: a pattern for the login nodes")


def _hardware(known: Known, name: str) -> Iterator[str]:
    kind = next(one.kind for one in known.grouped.roles if one.hardware == name)
    node = known.described.get(name)
    yield f"  {name}:"
    if node and node.model:
        yield f"    description: {in_quotes(node.model)}"
    else:
        yield f"    description: {marked('maker and model of the node')}"
    yield from _topology(kind, node)
    if kind.memory:
        yield f"    memory: {kind.memory} MiB  # RealMemory of slurm.conf, the least of these nodes"
    else:
        yield f"    memory: {marked('memory of a node; slurm.conf has no RealMemory')}"
    if node and node.last_level_cache:
        yield f"    last_level_cache: {node.last_level_cache}  # as {node.name} reports it"
    else:
        yield f"    last_level_cache: {marked('last-level cache of all sockets of a node')}"
    yield f"    peak: {marked('double-precision peak of a node, as the contract counts it')}"
    yield f"    avx_base: {marked('guaranteed clock under vector load, from the data sheet')}"
    yield f"    flops_per_cycle: {marked('double-precision operations of a core in a cycle')}"
    yield from _nics(node)
    yield from _facts(known, kind)


def _topology(kind: ConfiguredNode, node: OneNode | None) -> Iterator[str]:
    """Sockets, cores and threads of Slurm; where the node reports others, those count."""
    sockets, cores, threads = kind.sockets, kind.cores_per_socket, kind.threads_per_core
    reported = node.number("cpu.sockets") if node else 0
    all_cores = node.number("cpu.cores") if node else 0
    own = (
        reported,
        all_cores // (reported or 1),
        node.number("cpu.threads_per_core") if node else 0,
    )
    if node and all(own) and own != (sockets, cores, threads):
        yield f"    # slurm.conf: {sockets} x {cores} x {threads}; {node.name} reports what follows"
        sockets, cores, threads = own
    elif _only_processors(kind) and not (node and all(own)):
        yield f"    # slurm.conf has CPUs={sockets} only, which Slurm shows as that many sockets."
        yield f"    sockets: {marked('processor sockets of a node')}"
        yield f"    cores_per_socket: {marked('cores of each processor')}"
        return
    yield f"    sockets: {sockets}"
    yield f"    cores_per_socket: {cores}"
    yield f"    threads_per_core: {threads}"


def _nics(node: OneNode | None) -> Iterator[str]:
    interfaces = node.interfaces if node else {}
    if not node or not interfaces:
        yield f"    nics: {marked('network interfaces by name, such as ib0: {speed: 200 Gb/s}')}"
        return
    yield f"    nics:  # up on {node.name}"
    for name, (speed, mtu) in interfaces.items():
        parts = [f"speed: {speed or marked('line rate, which the kernel does not report')}"]
        parts += [f"mtu: {mtu}"] if mtu else []
        yield f"      {name}: {{{', '.join(parts)}}}"


def _facts(known: Known, kind: ConfiguredNode) -> Iterator[str]:
    """What slurm.conf states and each node reports: a node with less is not as stated."""
    yield "    facts:"
    yield "      slurm:"
    yield "        description: What slurm.conf states of the node"
    yield f"        source: {in_quotes(f'scontrol show nodes, {known.day}')}"
    yield "        fields:"
    if threads := _threads(kind):
        yield f"          cpu.threads: {threads}"
    if kind.memory:
        yield f"          memory.total: {{at_least: {kind.memory} MiB}}"
    if kind.architecture:
        yield f"          kernel.machine: {in_quotes(kind.architecture)}"
    if there := gpus(kind):
        yield f"          gpu.count: {there}"


def has_gpus(kind: ConfiguredNode) -> bool:
    """Whether GRES has GPUs, or parts of one."""
    return any(name.partition(":")[0] == "gpu" for name, _ in kind.gres)


def gpus(kind: ConfiguredNode) -> int:
    """GPUs of a node, as GRES counts them; 0 if it has instances of MIG, parts of one."""
    counts = {name: count for name, count in kind.gres if name.partition(":")[0] == "gpu"}
    if any(_MIG.search(name) for name in counts):
        return 0
    return sum(int(count) for count in counts.values() if count.isdigit())


def _only_processors(kind: ConfiguredNode) -> bool:
    """Whether slurm.conf has CPUs alone: Slurm then shows each as a socket."""
    return kind.sockets > 1 and kind.cores_per_socket == kind.threads_per_core == 1


def _threads(kind: ConfiguredNode) -> int:
    """Hardware threads of a node; 0 if CPUs agree neither with them nor with the cores."""
    cores = kind.sockets * kind.cores_per_socket
    found = cores * kind.threads_per_core
    return found if kind.processors in (0, cores, found) else 0


def _places(known: Known) -> Iterator[str]:
    if known.grouped.places:
        yield ""
        yield "groups:  # features of slurm.conf that name a place"
        for name, nodes in known.grouped.places.items():
            yield f"  {name}: {in_quotes(str(nodes))}"


def _file_systems(known: Known) -> Iterator[str]:
    seen = {
        pair: node.name for node in known.described.values() for pair in node.shared_file_systems
    }
    text = (
        "file systems that jobs use: NAME: {path: a folder in which you may write, kind: as mount "
    )
    text += "names it, shared: true, description: what it is for}"
    if seen:
        listed = ", ".join(f"{path} ({kind}, on {node})" for (path, kind), node in seen.items())
        text += f". Mounted: {listed}"
    yield ""
    yield f"file_systems: {marked(text)}"


def _links(known: Known) -> Iterator[str]:
    pairs = [one for one in known.grouped.roles if len(one.nodes) > 1]
    if not pairs:
        return
    yield ""
    yield "links:  # over the network on which the nodes' names are addresses"
    for one in pairs:
        yield f"  {one.name}:"
        yield f"    description: {in_quotes(f'Between two nodes of {one.name}')}"
        yield f"    partition: {one.partition if known.given else one.name}"
        yield f"    servers: {one.name}"
        yield f"    clients: {one.name}"
        yield f"    pattern: {PATTERN}  # one partner for each node, all pairs at once"
        yield f"    speed: {marked('line rate of its slowest part, such as 100 Gb/s')}"


def _partitions(known: Known) -> Iterator[str]:
    for one in known.grouped.roles:
        yield f"  {one.name}:"
        words = f"Nodes of {one.name}, by the partition {one.partition}"
        yield f"    description: {in_quotes(words)}"
        for other, shared in one.others.items():
            yield f"    # The partition {other} has {shared} of these nodes as well."
        for asked in one.restricted:
            yield f"    # Slurm's partition does not admit every job: {asked}."
        yield f"    role: {one.name}"
        yield "    scheduler: slurm"
        options = [f"--partition={one.partition}", *known.extra.values()]
        yield f"    access: {_list(list(map(in_quotes, options)))}"
        usable = [offer for offer in known.offers if has_gpus(one.kind) or not offer.for_gpus]
        if len(usable) < len(known.offers):
            yield f"    environments: {_list(['system', *map(_environment_name, usable)])}"


def _environment_name(offer: Offer) -> str:
    return f"module-{offer.features[0]}"


def _environments(known: Known) -> Iterator[str]:
    yield "  system:"
    yield "    description: What is on PATH of every node"
    yield f"    features: {_offered(known)}"
    for offer in known.offers:
        yield f"  {_environment_name(offer)}:"
        yield f"    description: {in_quotes(f'The module {offer.module}')}"
        yield f"    modules: [{in_quotes(offer.module)}]"
        yield f"    features: {_list(offer.features)}"


def _offered(known: Known) -> str:
    """The features whose programs are on PATH of all nodes that were looked at; else a gap."""
    looked = [node for node in known.described.values() if node.programs is not None]
    if not looked:
        return marked("features whose programs are on PATH of the nodes; [] for none")
    programs = frozenset.intersection(*(node.programs or frozenset() for node in looked))
    found = [name for name, one in known.features.items() if programs & set(one.programs)]
    return f"{_list(found)}  # on PATH of {', '.join(node.name for node in looked)}"


def _criteria(known: Known) -> Iterator[str]:
    roles = _list([one.name for one in known.grouped.roles])
    prefix = known.name.upper()
    yield f"# The contract of {known.name}. Each gap of a criterion"
    yield "# names what to fill in. A criterion with a gap is not in force. 'siteproof sites"
    yield "# --metrics' lists the metrics; 'siteproof port FROM TO' carries criteria from a site."
    if known.grouped.roles:
        yield f"{prefix}-SLURM:"
        yield "  description: Every node has the processors and the memory that slurm.conf states"
        yield "  metric: SystemDescription.drift"
        yield f"  nodes: {roles}"
        yield "  at_most: 0 count"
        yield "  phase: functionality"
        yield f"  source: {in_quotes(f'scontrol show nodes, {known.day}')}"
    for name, text in PROMISES.items():
        yield f"{prefix}-{name}: {marked(text)}"


def _baselines(known: Known) -> Iterator[str]:
    yield "# What this system typically reaches: 'siteproof calibrate' proposes entries once there"
    yield "# is a history. None is invented."
    yield f"system: {known.name}"
