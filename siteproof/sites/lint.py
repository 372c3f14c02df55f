"""Mistakes in system.yaml that no single key shows: references, node sets, links."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import prod
from typing import Any

from ClusterShell.NodeSet import NodeSet

from siteproof import nodesets
from siteproof.installed import SUITE
from siteproof.sites.catalogue import Metric
from siteproof.sites.job_keys import lint_jobs
from siteproof.sites.key_types import Graded
from siteproof.sites.schema.shapes import near
from siteproof.sites.schema.yamlfile import Document, Loc, clip
from siteproof.sites.stated import FIELDS, is_read
from siteproof.sites.system import NO_NETWORK, Hardware, Link, Recognise, System

# What must not be left empty.
NEEDED = (
    *("nodes", "partitions", "environments", "workload.applications"),
    *("partitions.*.role", "partitions.*.environments"),
)
# Fields of nodes: one that no node reports would be missing on every node.
FACTS = ("hardware.*.facts.*.fields", "nodes.*.facts.*.fields", "requested.*.*.facts")
SPACK_ENVS = SUITE / "spack-envs"
# Keys that name something: what that is, and the section or list that has it. * is any key, or
# any place of a list.
REFERENCES = {
    "nodes.*.hardware": ("hardware", "hardware"),
    "nodes.*.overlaps": ("role", "nodes"),
    "partitions.*.role": ("role", "nodes"),
    "partitions.*.environments": ("environment", "environments"),
    "environments.*.spack": ("folder of spack-envs", "spack"),
    "environments.*.features": ("feature", "features"),
    "file_systems.*.roles": ("role", "nodes"),
    "file_systems.*.servers": ("role", "nodes"),
    "file_systems.*.network": ("link", "networks"),
    "workload.file_systems": ("file system", "file_systems"),
    "scaling.*.environments": ("environment", "environments"),
    "links.*.partition": ("partition", "partitions"),
    "requested.*.*.metric": ("metric", "metrics"),
    "requested.*.*.nodes": ("role", "nodes"),
    "requested.*.*.links": ("link", "links"),
    "services.*.partition": ("partition", "partitions"),
}


@dataclass(frozen=True)
class Around:
    """What the files of a site may name: metrics, and what system.yaml has.

    system: None if nothing of it is right. document: system.yaml, with its mistakes.
    """

    metrics: Mapping[str, Metric]
    system: System | None
    document: Document

    @property
    def broken(self) -> bool:
        """Whether system.yaml has mistakes."""
        return self.system is None or bool(self.document.mistakes)

    def names(self, section: str) -> list[str] | None:
        """The keys of a section, whether what they hold is right or not; None: not known."""
        if self.document.data is None or self.document.spoilt((section,)):
            return None
        return list(self.document.data.get(section, {}))

    @cached_property
    def inventory(self) -> NodeSet | None:
        """All nodes of all roles; None if one of them has a mistake."""
        if self.system is None or self.names("nodes") != list(self.system.nodes):
            return None
        try:
            return self.system.inventory
        except ValueError:
            return None


def lint_system(around: Around, folder: str, features: Collection[str]) -> None:
    """Check system.yaml. folder: the site's name. features: what an environment may offer."""
    document, system = around.document, around.system
    if system is None:
        return
    _name(document, system.system, folder)
    if not document.spoilt(("recognise",)) and "recognise" in document.data:
        _recognise(document, document.data["recognise"])
    for place in NEEDED:
        for loc, given in at(document.data, place):
            if not given:
                document.add(loc, "nothing given", "at least one entry")
                document.spoil(loc)
    for key, hardware in system.hardware.items():
        _peak(document, ("hardware", key), hardware)
    _facts(document, system)
    _references(around, system, features)
    sets = _nodes(document, system)
    for key, text in system.groups.items():
        node_set(document, ("groups", key), text, around.inventory)
    _measured_twice(document, system, sets)
    lint_jobs(document, system)
    _file_systems(document, system)
    _probes(document, system)
    _links(around, system)
    _graded(around.document, system)


def _references(around: Around, system: System, features: Collection[str]) -> None:
    """Note what a key of REFERENCES names and nothing has."""
    others: dict[str, Collection[str]] = {
        "metrics": around.metrics,
        "features": sorted(features),
        "spack": sorted(path.parent.name for path in SPACK_ENVS.glob("*/spack.yaml")),
        "networks": [*system.links, NO_NETWORK],
    }
    for place, (what, section) in REFERENCES.items():
        names = others[section] if section in others else around.names(section)
        for loc, given in at(system, place):
            for name in [given] if isinstance(given, str) else given:
                reference(around.document, loc, name, what, names)
    _other_references(around, system)


def _other_references(around: Around, system: System) -> None:
    """The same where it depends on another key what a key names."""
    document = around.document
    for section in ("parameters", "health"):
        for role in getattr(system, section):
            reference(document, (section, role), role, "role", around.names("nodes"))
    for key, partition in system.partitions.items():
        for role in partition.measures or ():
            loc = ("partitions", key, "measures")
            reference(document, loc, role, f"role of partition '{key}'", partition.roles)
    for key, probe in system.probes.items():
        if probe.kind == "service":
            loc = ("probes", key, "target")
            reference(document, loc, probe.target, "service", around.names("services"))


def at(given: Any, place: str, loc: Loc = ()) -> Iterator[tuple[Loc, Any]]:
    """What stands at a place below a model, or plain data, with the keys that lead to it."""
    first, _, rest = place.partition(".")
    if not place and given is not None:
        yield loc, given
    elif first == "*" and isinstance(given, dict | list):
        for key, below in given.items() if isinstance(given, dict) else enumerate(given):
            yield from at(below, rest, (*loc, key))
    elif place:
        below = given.get(first) if isinstance(given, dict) else getattr(given, first, None)
        yield from at(below, rest, (*loc, first))


def reference(
    document: Document, loc: Loc, name: str, what: str, names: Collection[str] | None
) -> None:
    """Note a mistake if a key names something that does not exist."""
    if names is not None and name not in names:
        close = near(document, loc, name, names)
        document.add(loc, f"unknown {what} '{clip(name)}'{close}", names)


def node_set(
    document: Document,
    loc: Loc,
    text: str,
    inventory: NodeSet | None = None,
    allowed: Sequence[str] = (),
) -> NodeSet | None:
    """The nodes of a set as written; None, and a mistake in the document, if it is not valid.

    inventory: the nodes that it may have. allowed: what may be given instead, for the mistake.
    """
    try:
        nodes = nodesets.checked(text)
    except ValueError as error:
        document.add(loc, " ".join(str(error).split())[:200])
        return None
    if inventory is not None and (strangers := nodes - inventory):
        what = f"{clip(strangers)} not in any role{near(document, loc, text, allowed)}"
        document.add(loc, what, allowed or clip(inventory))
        return None
    return nodes


def belongs_to(document: Document, loc: Loc, what: str, owner: object, site: str) -> bool:
    """Note a mistake if a file is of another site, as in a folder that was copied."""
    if owner != site:
        hint = "Remove what is not of this site, or correct the name"
        document.add(loc, f"{what} of '{clip(owner)}'", site, hint)
    return owner == site


def _name(document: Document, name: str, folder: str) -> None:
    if name == "generic":
        document.add(("system",), "'generic' is ReFrame's own system", "any other name")
    elif name != folder:
        document.add(("system",), f"'{name}' is not the folder's name", folder)


def _recognise(document: Document, written: Mapping[str, str]) -> None:
    """written: the keys as they stand, as a wrong one is a mistake already."""
    keys = [key for key in written if key != "fallback" and written[key]]
    is_fallback = written.get("fallback", "false") != "false"
    if is_fallback and keys:
        hint = "Give fallback alone, or the other keys"
        document.add(("recognise",), "fallback together with other keys", hint=hint)
    if not is_fallback and not keys and not document.gap_below(("recognise",)):
        what = "no key that distinguishes machines"
        document.add(("recognise",), what, Recognise.model_fields)


def _peak(document: Document, loc: Loc, hardware: Hardware) -> None:
    """Note a peak that is not the product of its factors, where all of them are given."""
    names = ("sockets", "cores_per_socket", "flops_per_cycle")
    factors = [getattr(hardware, name) for name in names]
    if not (hardware.peak and hardware.avx_base and all(factors)):
        return
    if (flops := hardware.avx_base.to("Hz") * prod(factors)) != hardware.peak.to("FLOPS"):
        what = f"peak {hardware.peak} is not {' * '.join(names)} * avx_base"
        document.add((*loc, "peak"), what, f"{float(flops / 10**9):.10g} GFLOPS")


def _facts(document: Document, system: System) -> None:
    for place in FACTS:
        for loc, fields in at(system, place):
            for field in (name for name in fields if not is_read(name)):
                what = f"'{clip(field)}' is not a field that 'siteproof describe' reads"
                document.add((*loc, field), what, FIELDS, inside=True)


def _nodes(document: Document, system: System) -> dict[str, NodeSet]:
    """Check the inventory: the set of each role that has no mistake."""
    sets: dict[str, NodeSet] = {}
    for key, role in system.nodes.items():
        nodes = node_set(document, ("nodes", key, "set"), role.set)
        if nodes is not None:
            sets[key] = nodes
    for (one, first), (other, second) in combinations(sets.items(), 2):
        on_purpose = other in system.nodes[one].overlaps or one in system.nodes[other].overlaps
        if not on_purpose and (both := first & second):
            what = f"{clip(both)} also in role '{one}'"
            advice = f"Name each node in one role, or write 'overlaps: [{one}]'"
            document.add(("nodes", other, "set"), what, hint=advice)
    return sets


def _measured_twice(document: Document, system: System, sets: Mapping[str, NodeSet]) -> None:
    """Note partitions that measure the same nodes: a run would measure and show them twice."""
    advice = "Write 'measures: []' in one of them, or as a list the roles that it measures"
    for (one, first), (other, second) in combinations(system.partitions.items(), 2):
        one_has, other_has = (
            nodesets.union(sets[role] for role in partition.measured if role in sets)
            for partition in (first, second)
        )
        if both := one_has & other_has:
            what = f"{clip(both)} measured by {one} and {other}"
            document.add(("partitions", other), what, hint=advice)


def _file_systems(document: Document, system: System) -> None:
    for key, there in system.file_systems.items():
        loc = ("file_systems", key)
        if there.network == NO_NETWORK and there.servers is not None:
            document.add((*loc, "network"), "no network, and `servers`", "one of the two")
        if there.striping is not None and there.kind not in ("lustre", "any"):
            what = f"a striping, and kind is {clip(there.kind)}"
            document.add((*loc, "striping"), what, "striping with kind lustre")


def _probes(document: Document, system: System) -> None:
    """A service is either a gateway or a part of the system."""
    kinds: dict[str, bool] = {}
    for key, probe in system.probes.items():
        service = probe.service or key
        if kinds.setdefault(service, probe.gateway) != probe.gateway:
            what = f"only some probes of service '{clip(service)}' have gateway: true"
            document.add(("probes", key), what, hint="Give it to all of them or to none")
    if "all" in system.probes:
        document.add(("probes", "all"), "'all' means all services", "any other name")


def _links(around: Around, system: System) -> None:
    """Check the links; their ends only where the inventory has no mistake."""
    document = around.document
    for key, link in system.links.items():
        partition = system.partitions.get(link.partition)
        if partition and partition.scheduler != "slurm":
            with_jobs = [n for n, p in system.partitions.items() if p.scheduler == "slurm"]
            what = f"partition '{link.partition}' runs no jobs"
            hint = "The partition must have 'scheduler: slurm'"
            document.add(("links", key, "partition"), what, with_jobs, hint)
        if not around.inventory:
            continue
        servers, clients = (_end(around, system, key, link, end) for end in ("servers", "clients"))
        if servers is not None and clients is not None and len(servers | clients) < 2:
            what = f"{clip(servers)} is both server and client, so there is no pair"
            document.add(("links", key, "clients"), what, "at least two nodes")


def _graded(document: Document, system: System) -> None:
    """A pair that is bad is worth a look, too."""
    parts: list[tuple[Loc, Graded]] = [(("mesh",), system.mesh)]
    parts += [(("links", key), link) for key, link in system.links.items()]
    parts += [(("services", key), one) for key, one in system.services.items() if one.transfers]
    for loc, part in parts:
        if not part.model_fields_set & Graded.model_fields.keys():
            continue  # both rates are the mesh's
        rates = system.graded(part)
        if rates.warn and rates.critical and rates.critical.to("b/s") >= rates.warn.to("b/s"):
            what = f"critical {rates.critical} is not below warn {rates.warn}"
            document.add((*loc, "critical"), what, "a rate below warn")


def _end(around: Around, system: System, key: str, link: Link, end: str) -> NodeSet | None:
    """The nodes of one end, all in the link's partition; None if it has a mistake."""
    document, loc, text = around.document, ("links", key, end), getattr(link, end)
    if text in system.nodes:
        nodes = None if document.spoilt(loc) else system.nodes[text].nodes
    else:
        allowed = [*system.nodes, "a set of their nodes"]
        nodes = node_set(document, loc, text, around.inventory, allowed)
    partition = system.partitions.get(link.partition)
    roles = partition.roles if partition else []
    if nodes is None or not roles or not all(role in system.nodes for role in roles):
        return nodes
    reached = nodesets.union(system.nodes[role].nodes for role in roles)
    if strangers := nodes - reached:
        what = f"{clip(strangers)} not in partition '{link.partition}'"
        document.add(loc, what, clip(reached))
        return None
    return nodes
