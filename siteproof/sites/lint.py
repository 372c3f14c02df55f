"""Mistakes in system.yaml that no single key shows: references, node sets, links."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from itertools import combinations
from math import prod

from ClusterShell.NodeSet import NodeSet

from siteproof import nodesets
from siteproof.schema.shapes import near
from siteproof.schema.yamlfile import Document, Loc, clip
from siteproof.sites.catalogue import ROOT, Metric
from siteproof.sites.lint_jobs import lint_jobs
from siteproof.sites.read_fields import FIELDS, is_read
from siteproof.sites.stated import FactSection
from siteproof.sites.system import NO_NETWORK, FileSystem, Hardware, Link, Recognise, System

SPACK_ENVS = ROOT / "spack-envs"
NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]*")  # ReFrame's rule for systems, partitions …
SECTIONS = (
    *("hardware", "nodes", "groups", "file_systems", "partitions"),
    *("environments", "links", "probes", "services"),
)
NAME_RULE = "a letter or _, then letters, digits, _ and -"
LONGEST_SERVICE = 40  # its name is part of names at the far end


def lint_system(document: Document, system: System, folder: str) -> None:
    """Check system.yaml on its own."""
    _name(document, system.system, folder)
    if not document.spoilt(("recognise",)) and "recognise" in document.data:
        _recognise(document, document.data["recognise"])
    for section in SECTIONS:
        for key in known(document, section) or ():
            if not NAME.fullmatch(key):
                document.add((section, key), f"'{clip(key)}' is not a valid name", NAME_RULE)
    for section in ("nodes", "partitions", "environments"):
        if known(document, section) == []:
            document.add((section,), f"no {section}", hint="Describe at least one")
            document.spoil((section,))
    for key, hardware in system.hardware.items():
        _peak(document, ("hardware", key), hardware)
        _facts(document, ("hardware", key, "facts"), hardware.facts)
    for key, role in system.nodes.items():
        _facts(document, ("nodes", key, "facts"), role.facts)
    sets = _nodes(document, system)
    _groups(document, system, sets)
    for key in system.parameters:
        reference(document, ("parameters", key), key, "role", known(document, "nodes"))
    _partitions(document, system)
    _measured_twice(document, system, sets)
    _environments(document, system)
    lint_jobs(document, system)
    _file_systems(document, system)
    _probes(document, system)
    _services(document, system)


def known(document: Document, section: str) -> list[str] | None:
    """The keys of a section, whether or not what they hold is right; None: it cannot be known."""
    if document.data is None or document.spoilt((section,)):
        return None
    return list(document.data.get(section, {}))


def reference(document: Document, loc: Loc, name: str, what: str, names: list[str] | None) -> None:
    """Note a mistake if a key names something that does not exist."""
    if names is not None and name not in names:
        document.follow_up(
            loc, f"unknown {what} '{clip(name)}'{near(document, loc, name, names)}", names
        )


def node_set(document: Document, loc: Loc, text: str) -> NodeSet | None:
    """The nodes of a set as written; None, and a mistake in the document, if it is not valid."""
    try:
        return nodesets.checked(text)
    except ValueError as error:
        document.follow_up(loc, " ".join(str(error).split())[:200])
        return None


def belongs_to(document: Document, loc: Loc, what: str, owner: object, site: str) -> bool:
    """Note a mistake if a file is of another site, as in a folder that was copied."""
    if owner != site:
        hint = "Remove what is not of this site, or correct the name"
        document.add(loc, f"{what} of '{clip(owner)}'", site, hint)
    return owner == site


def _name(document: Document, name: str, folder: str) -> None:
    loc = ("system",)
    if not NAME.fullmatch(name):
        document.follow_up(loc, f"'{clip(name)}' is not a valid name of a system", NAME_RULE)
    elif name == "generic":
        document.follow_up(loc, "'generic' is ReFrame's own system", "any other name")
    elif name != folder:
        document.follow_up(loc, f"'{name}' is not the folder's name", folder)


def _recognise(document: Document, written: Mapping[str, str]) -> None:
    """written: the keys as they stand, as a wrong one is a mistake already."""
    keys = [key for key in written if key != "fallback" and written[key]]
    is_fallback = written.get("fallback", "false") != "false"
    if is_fallback and keys:
        hint = "Give fallback alone, or the other keys"
        document.follow_up(("recognise",), "fallback together with other keys", hint=hint)
    if not is_fallback and not keys and not document.gap_below(("recognise",)):
        what = "no key that distinguishes machines"
        document.follow_up(("recognise",), what, Recognise.model_fields)


def _peak(document: Document, loc: Loc, hardware: Hardware) -> None:
    """Note a peak that is not the product of its factors, where all of them are given."""
    names = ("sockets", "cores_per_socket", "flops_per_cycle")
    factors = [getattr(hardware, name) for name in names]
    if not (hardware.peak and hardware.avx_base and all(factors)):
        return
    flops = hardware.avx_base.to("Hz") * prod(factors)
    if flops != hardware.peak.to("FLOPS"):
        what = f"peak {hardware.peak} is not {' * '.join(names)} * avx_base"
        document.follow_up((*loc, "peak"), what, f"{float(flops / 10**9):.10g} GFLOPS")


def _facts(document: Document, loc: Loc, facts: Mapping[str, FactSection]) -> None:
    """Note a field that no node ever reports: it would be missing on every node."""
    for section, stated in facts.items():
        for field in stated.fields:
            if not is_read(field):
                what = f"'{clip(field)}' is not a field that 'siteproof describe' reads"
                document.add((*loc, section, "fields", field), what, FIELDS, inside=True)


def _nodes(document: Document, system: System) -> dict[str, NodeSet]:
    """Check the inventory: the set of each role that has no mistake."""
    sets: dict[str, NodeSet] = {}
    for key, role in system.nodes.items():
        nodes = node_set(document, ("nodes", key, "set"), role.set)
        if nodes is not None:
            sets[key] = nodes
        if role.hardware is not None:
            names = known(document, "hardware")
            reference(document, ("nodes", key, "hardware"), role.hardware, "hardware", names)
        for other in role.overlaps:
            names = known(document, "nodes")
            reference(document, ("nodes", key, "overlaps"), other, "role", names)
    for (one, first), (other, second) in combinations(sets.items(), 2):
        on_purpose = other in system.nodes[one].overlaps or one in system.nodes[other].overlaps
        if not on_purpose and (both := first & second):
            what = f"{clip(both)} also in role '{one}'"
            advice = f"Name each node in one role, or write 'overlaps: [{one}]'"
            document.follow_up(("nodes", other, "set"), what, hint=advice)
    return sets


def _groups(document: Document, system: System, sets: Mapping[str, NodeSet]) -> None:
    """A node of a group must be in the inventory, as far as the inventory has no mistake."""
    inventory = nodesets.of()
    for nodes in sets.values():
        inventory.update(nodes)
    is_whole = len(sets) == len(system.nodes)
    for name, text in system.groups.items():
        members = node_set(document, ("groups", name), text)
        if members is not None and is_whole and (strangers := members - inventory):
            what = f"{clip(strangers)} not in any role"
            document.follow_up(("groups", name), what, clip(inventory))


def _partitions(document: Document, system: System) -> None:
    for key, partition in system.partitions.items():
        loc: Loc = ("partitions", key)
        for role in partition.roles:
            reference(document, (*loc, "role"), role, "role", known(document, "nodes"))
        if not partition.roles:
            document.follow_up((*loc, "role"), "no role", known(document, "nodes") or ())
        for role in partition.measured:
            what = f"role of partition '{key}'"
            reference(document, (*loc, "measures"), role, what, partition.roles)
        names = known(document, "environments")
        for name in partition.environments:
            reference(document, (*loc, "environments"), name, "environment", names)
        if not partition.environments:
            document.follow_up((*loc, "environments"), "no environment", names or ())


def _measured_twice(document: Document, system: System, sets: Mapping[str, NodeSet]) -> None:
    """Note partitions that measure the same nodes: a run would measure and show them twice."""
    before: dict[str, NodeSet] = {}
    for key, partition in system.partitions.items():
        nodes = nodesets.of()
        for role in partition.measured:
            nodes.update(sets.get(role, nodesets.of()))
        for other, theirs in before.items():
            if both := nodes & theirs:
                what = f"{clip(both)} measured by {other} and {key}"
                advice = (
                    "Write 'measures: []' in one of them, or as a list the roles that it measures"
                )
                document.follow_up(("partitions", key), what, hint=advice)
        before[key] = nodes


def _environments(document: Document, system: System) -> None:
    built = sorted(path.parent.name for path in SPACK_ENVS.glob("*/spack.yaml"))
    for key, environment in system.environments.items():
        loc: Loc = ("environments", key)
        if environment.spack is not None:
            what = "folder of spack-envs"
            reference(document, (*loc, "spack"), environment.spack, what, built)


def _file_systems(document: Document, system: System) -> None:
    for key, file_system in system.file_systems.items():
        loc, names = ("file_systems", key), known(document, "nodes")
        for role in file_system.roles or ():
            reference(document, (*loc, "roles"), role, "role", names)
        if file_system.servers is not None:
            reference(document, (*loc, "servers"), file_system.servers, "role", names)
        _network(document, system, loc, file_system)
        if file_system.striping is not None and file_system.kind not in ("lustre", "any"):
            what = f"a striping, and kind is {clip(file_system.kind)}"
            document.add((*loc, "striping"), what, "striping with kind lustre")
    for name in system.workload.file_systems if system.workload else ():
        loc = ("workload", "file_systems")
        reference(document, loc, name, "file system", known(document, "file_systems"))


def _network(document: Document, system: System, loc: Loc, file_system: FileSystem) -> None:
    """What carries a file system: a link, or none where it has no servers either."""
    network = file_system.network
    if network is None:
        return
    reference(document, (*loc, "network"), network, "link", [*system.links, NO_NETWORK])
    if network == NO_NETWORK and file_system.servers is not None:
        document.add((*loc, "network"), "no network, and `servers`", "one of the two")


def lint_features(document: Document, system: System, names: Collection[str]) -> None:
    """A feature that no check asks for is a mistake: what it stands for would never run."""
    for key, environment in system.environments.items():
        for feature in environment.features:
            loc = ("environments", key, "features")
            reference(document, loc, feature, "feature", sorted(names))


def lint_requested(document: Document, system: System, table: Mapping[str, Metric]) -> None:
    """Check the lists of requested measurements."""
    for name, requests in system.requested.items():
        for number, request in enumerate(requests):
            loc = ("requested", name, number)
            reference(document, (*loc, "metric"), request.metric, "metric", list(table))
            for role in request.nodes:
                reference(document, (*loc, "nodes"), role, "role", known(document, "nodes"))
            for link in request.links:
                reference(document, (*loc, "links"), link, "link", known(document, "links"))


def _probes(document: Document, system: System) -> None:
    """A service is either a gateway or a part of the system."""
    kinds: dict[str, bool] = {}
    for key, probe in system.probes.items():
        service = probe.service or key
        if kinds.setdefault(service, probe.gateway) != probe.gateway:
            what = f"only some probes of service '{clip(service)}' have gateway: true"
            document.follow_up(("probes", key), what, hint="Give it to all of them or to none")
        if probe.kind == "service":
            loc = ("probes", key, "target")
            reference(document, loc, probe.target, "service", known(document, "services"))
    if "all" in system.probes:
        document.add(("probes", "all"), "'all' stands for all services", "any other name")


def _services(document: Document, system: System) -> None:
    for key, service in system.services.items():
        if len(key) > LONGEST_SERVICE:
            what = f"'{clip(key)}' is not a valid name of a service"
            document.add(("services", key), what, f"at most {LONGEST_SERVICE} characters")
        if service.partition is not None:
            loc = ("services", key, "partition")
            partitions = known(document, "partitions")
            reference(document, loc, service.partition, "partition", partitions)


def lint_links(document: Document, system: System) -> None:
    """Check the links of system.yaml; their ends only where the inventory has no mistake."""
    inventory_is_valid = bool(known(document, "nodes")) and inventory_of(system) is not None
    for key, link in system.links.items():
        loc = ("links", key, "partition")
        reference(document, loc, link.partition, "partition", known(document, "partitions"))
        partition = system.partitions.get(link.partition)
        if partition and partition.scheduler != "slurm":
            with_jobs = [n for n, p in system.partitions.items() if p.scheduler == "slurm"]
            what = f"partition '{link.partition}' runs no jobs"
            document.follow_up(loc, what, with_jobs, "The partition must have 'scheduler: slurm'")
        if inventory_is_valid:
            _ends(document, system, key, link)


def inventory_of(system: System) -> NodeSet | None:
    """All nodes of all roles; None if a role's set has a mistake."""
    try:
        return system.inventory
    except ValueError:
        return None


def _ends(document: Document, system: System, key: str, link: Link) -> None:
    """Servers and clients must be nodes of the link's partition, and two at least."""
    servers, clients = (_end(document, system, key, link, end) for end in ("servers", "clients"))
    if servers is not None and clients is not None and len(servers | clients) < 2:
        what = f"{clip(servers)} is both server and client, so there is no pair"
        document.follow_up(("links", key, "clients"), what, "at least two nodes")


def _end(document: Document, system: System, key: str, link: Link, end: str) -> NodeSet | None:
    """The nodes of one end; None if it has a mistake."""
    loc, text = ("links", key, end), getattr(link, end)
    is_role = text in system.nodes
    nodes = system.nodes[text].nodes if is_role else node_set(document, loc, text)
    if nodes is None or document.spoilt(loc):
        return None
    if strangers := nodes - system.inventory:
        what = f"{clip(strangers)} not in any role{near(document, loc, text, system.nodes)}"
        document.follow_up(loc, what, [*system.nodes, "a set of their nodes"])
        return None
    partition = system.partitions.get(link.partition)
    roles = partition.roles if partition else []
    if not roles or not all(role in system.nodes for role in roles):
        return nodes
    reached = nodesets.of()
    for role in roles:
        reached.update(system.nodes[role].nodes)
    if strangers := nodes - reached:
        what = f"{clip(strangers)} not in partition '{link.partition}'"
        document.follow_up(loc, what, clip(reached))
        return None
    return nodes
