"""Mistakes that no single key shows: references, bounds that decide nothing, node sets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from itertools import combinations

from ClusterShell.NodeSet import NodeSet

from siteproof import nodesets
from siteproof.schema.shapes import hint
from siteproof.schema.yamlfile import Document, Loc, clip
from siteproof.sites.catalogue import ROOT
from siteproof.sites.system import Hardware, Link, System

SPACK_ENVS = ROOT / "spack-envs"
NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]*")  # ReFrame's rule for systems, partitions …
SECTIONS = ("hardware", "nodes", "groups", "file_systems", "partitions", "environments", "links")
NAME_RULE = "a letter or _, then letters, digits, _ and -"
_DEVICE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,14}")  # IFNAMSIZ: 15 characters
_SYSCTL = re.compile(r"[a-z0-9_]+([./][A-Za-z0-9_.:-]+)+")


def lint_system(document: Document, system: System, folder: str) -> None:
    """Check system.yaml on its own."""
    _name(document, system.system, folder)
    _recognise(document, system)
    for section in SECTIONS:
        for key in known(document, section) or ():
            if not NAME.fullmatch(key):
                document.add((section, key), f"'{clip(key)}' is no name", NAME_RULE)
    for section in ("nodes", "partitions", "environments"):
        if known(document, section) == []:
            document.add((section,), "nothing")
            document.spoil((section,))
    for key, hardware in system.hardware.items():
        _peak(document, ("hardware", key), hardware)
    _groups(document, system, _nodes(document, system))
    _parameters(document, system)
    _partitions(document, system)
    _file_systems(document, system)


def known(document: Document, section: str) -> list[str] | None:
    """The keys of a section, whether or not what they hold is right; None: it cannot be known."""
    if document.data is None or document.spoilt((section,)):
        return None
    return list(document.data.get(section, {}))


def reference(document: Document, loc: Loc, word: str, what: str, names: list[str] | None) -> None:
    """Note a mistake if a key names something that does not exist."""
    if names is not None and word not in names:
        document.follow_up(loc, f"unknown {what} '{clip(word)}'{hint(word, names)}", names)


def _file_systems(document: Document, system: System) -> None:
    for key, file_system in system.file_systems.items():
        if not file_system.path.startswith("/"):
            loc = ("file_systems", key, "path")
            document.follow_up(loc, f"'{clip(file_system.path)}' is no absolute path")
        for role in file_system.roles or ():
            loc = ("file_systems", key, "roles")
            reference(document, loc, role, "role", known(document, "nodes"))
        if file_system.servers is not None:
            loc = ("file_systems", key, "servers")
            reference(document, loc, file_system.servers, "role", known(document, "nodes"))


def _name(document: Document, name: str, folder: str) -> None:
    loc = ("system",)
    if not NAME.fullmatch(name):
        document.follow_up(loc, f"'{clip(name)}' is no name of a system", NAME_RULE)
    elif name == "generic":
        document.follow_up(loc, "'generic' is ReFrame's own system", "any other name")
    elif name != folder:
        document.follow_up(loc, f"'{name}' is not the folder's name", folder)


def _recognise(document: Document, system: System) -> None:
    loc: Loc = ("recognise",)
    rule = system.recognise
    others = [rule.cluster, rule.hostname, rule.file]
    if not rule.fallback and not any(others):
        document.follow_up(loc, "nothing that tells machines apart", type(rule).model_fields)
    if rule.fallback and any(others):
        document.follow_up(loc, "fallback beside other keys", "fallback alone, or the others")
    try:
        re.compile(rule.hostname or "")
    except (re.error, OverflowError, RecursionError) as error:
        loc = ("recognise", "hostname")
        document.follow_up(loc, f"bad regular expression '{clip(rule.hostname)}' ({error})")


def _peak(document: Document, loc: Loc, hardware: Hardware) -> None:
    """The peak is what the contract counts, but it must follow from its own factors."""
    names = ("sockets", "cores_per_socket", "flops_per_cycle")
    factors = [getattr(hardware, name) for name in names]
    if not (hardware.peak and hardware.avx_base and all(factors)):
        return
    flops = hardware.avx_base.to("Hz")
    for factor in factors:
        flops *= factor
    if flops != hardware.peak.to("FLOPS"):
        right = flops / Fraction(10**9)
        what = f"peak {hardware.peak} is not {' * '.join(names)} * avx_base"
        document.follow_up((*loc, "peak"), what, f"{float(right):.10g} GFLOPS")


def _nodes(document: Document, system: System) -> dict[str, NodeSet]:
    """Check the inventory: the set of each role that has no mistake."""
    sets: dict[str, NodeSet] = {}
    for key, role in system.nodes.items():
        loc = ("nodes", key)
        problems = nodesets.problems(role.set)
        for problem in problems:
            document.follow_up((*loc, "set"), clip_problem(problem))
        if not problems:
            sets[key] = role.nodes
        if role.hardware is not None:
            names = known(document, "hardware")
            reference(document, (*loc, "hardware"), role.hardware, "hardware", names)
        for other in role.overlaps:
            names = known(document, "nodes")
            reference(document, (*loc, "overlaps"), other, "role", names)
    for (one, first), (other, second) in combinations(sets.items(), 2):
        on_purpose = other in system.nodes[one].overlaps or one in system.nodes[other].overlaps
        if not on_purpose and (both := first & second):
            what = f"{clip(both)} also in role '{one}'"
            advice = f"Name each node in one role, or write 'overlaps: [{one}]'"
            document.follow_up(("nodes", other, "set"), what, hint=advice)
    return sets


def _groups(document: Document, system: System, sets: Mapping[str, NodeSet]) -> None:
    """A node of a group must be in the inventory, as far as the inventory has no mistake."""
    known_nodes = nodesets.of()
    for nodes in sets.values():
        known_nodes.update(nodes)
    for name, text in system.groups.items():
        problems = nodesets.problems(text)
        for problem in problems:
            document.follow_up(("groups", name), clip_problem(problem))
        if problems or len(sets) < len(system.nodes):
            continue
        if strangers := system.group(name) - known_nodes:
            document.follow_up(("groups", name), f"{clip(strangers)} in no role", clip(known_nodes))


def clip_problem(text: str) -> str:
    """A node set's problem as one line."""
    return " ".join(text.split())[:200]


def _parameters(document: Document, system: System) -> None:
    for key, parameters in system.parameters.items():
        loc = ("parameters", key)
        reference(document, loc, key, "role", known(document, "nodes"))
        for name in parameters.sysctl:
            if not _SYSCTL.fullmatch(name):
                example = "a dotted name such as net.core.rmem_max"
                document.add((*loc, "sysctl", name), f"'{clip(name)}' is no sysctl", example)
        for kind, devices in (("nic", parameters.nic), ("bond", parameters.bond)):
            for name in devices:
                if not _DEVICE.fullmatch(name):
                    what = f"'{clip(name)}' is no name of an interface"
                    document.add((*loc, kind, name), what, "a name such as eth0 or bond0")


def _partitions(document: Document, system: System) -> None:
    for key, partition in system.partitions.items():
        loc: Loc = ("partitions", key)
        reference(document, (*loc, "role"), partition.role, "role", known(document, "nodes"))
        names = known(document, "environments")
        for name in partition.environments:
            reference(document, (*loc, "environments"), name, "environment", names)
        if not partition.environments:
            document.follow_up((*loc, "environments"), "no environment", names or ())
    built = sorted(path.parent.name for path in SPACK_ENVS.glob("*/spack.yaml"))
    for key, environment in system.environments.items():
        if environment.spack is not None:
            loc = ("environments", key, "spack")
            reference(document, loc, environment.spack, "folder of spack-envs", built)
        for feature in environment.features:
            if not NAME.fullmatch(feature):
                loc = ("environments", key, "features")
                document.follow_up(loc, f"'{clip(feature)}' is no name of a feature", NAME_RULE)


def lint_links(document: Document, system: System) -> None:
    """Check the links of system.yaml, as far as the inventory has no mistake."""
    roles = system.nodes.values() if known(document, "nodes") else ()
    sound = roles and not any(nodesets.problems(role.set) for role in roles)
    for key, link in system.links.items():
        loc = ("links", key, "partition")
        reference(document, loc, link.partition, "partition", known(document, "partitions"))
        partition = system.partitions.get(link.partition)
        if partition and partition.scheduler != "slurm":
            with_jobs = [n for n, p in system.partitions.items() if p.scheduler == "slurm"]
            what = f"partition '{link.partition}' has no jobs, which can run on both ends"
            document.follow_up(loc, what, with_jobs, "The partition must have 'scheduler: slurm'")
        if sound:
            _ends(document, system, key, link)


def _ends(document: Document, system: System, key: str, link: Link) -> None:
    """Servers and clients must be nodes of the link's partition, and two at least."""
    ends = [_end(document, system, key, link, end) for end in ("servers", "clients")]
    if ends[0] is None or ends[1] is None:
        return
    if len(ends[0] | ends[1]) < 2:
        what = f"{clip(ends[0])} is both server and client, so there is no pair"
        document.follow_up(("links", key, "clients"), what, "at least two nodes")


def _end(document: Document, system: System, key: str, link: Link, end: str) -> NodeSet | None:
    """The nodes of one end; None if it has a mistake."""
    loc, text = ("links", key, end), getattr(link, end)
    found = [] if text in system.nodes else nodesets.problems(text)
    for problem in found:
        document.follow_up(loc, clip_problem(problem))
    if found or document.spoilt(loc):
        return None
    nodes, inventory = system.members(text), nodesets.of()
    for role in system.nodes.values():
        inventory.update(role.nodes)
    if strangers := nodes - inventory:
        what = f"{clip(strangers)} in no role{hint(text, system.nodes)}"
        document.follow_up(loc, what, [*system.nodes, "a set of their nodes"])
        return None
    partition = system.partitions.get(link.partition)
    reached = system.nodes.get(partition.role) if partition else None
    if reached and (strangers := nodes - reached.nodes):
        what = f"{clip(strangers)} not in partition '{link.partition}'"
        document.follow_up(loc, what, clip(reached.nodes))
        return None
    return nodes
