"""What the nodes are, by the fields that `siteproof describe` shows: added up, and as bought."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from fractions import Fraction

from siteproof import nodesets, units
from siteproof.analysis import uniformity
from siteproof.answers.expected import ROLE
from siteproof.errors import UserError
from siteproof.record import finding
from siteproof.record.finding import Kind
from siteproof.record.pair_units import grouped
from siteproof.record.samples import TOOL_MISSING, Sample
from siteproof.sites import bought
from siteproof.sites.bought import OF_A_PART, FactResult, Outcome
from siteproof.sites.site_tables import SECTIONS
from siteproof.sites.stated import number_of
from siteproof.units import convert
from siteproof.verdict.derived.given import FIELDS, Given, Lack, Result, of_each_unit

GROUP, SECTION, BELOW = "group", "section", "disks_below"
FLAG = "cpu.flag."
MAX_NAMED = 4  # facts in a reason
LESS_MEMORY = Fraction(92, 100)  # of what is built in: firmware and kernel keep the rest
_AMOUNT = re.compile(r"(\d{1,9}(?:\.\d{1,6})?) (GB|TB|MB)\b")
_SWITCH = re.compile(r"lldp\.(.+)\.switch_description")
NEARLY = Fraction(97, 100)
_VIRTUAL = ("disk.loop*", "disk.ram*", "disk.dm-*", "disk.md*", "disk.zram*", "disk.sr*")

Fields = Mapping[str, str]
OfNode = Callable[[Given, str, Fields], "Fraction | str | None"]


def nodes(given: Given) -> Iterator[Result]:
    """How many nodes of the roles have described themselves."""
    _, _, described = given.material.descriptions
    wanted, attempted = given.units(given.input(FIELDS)), given.answered(FIELDS)
    there = [described[node] for node in wanted if node in described]
    if unasked := nodesets.of(node for node in wanted if node not in attempted):
        raise given.missing([f"{FIELDS} of {unasked}"])
    silent = [attempted[node][0] for node in wanted if node not in described]
    names = nodesets.of(sample.node for sample in silent)
    why = f"without an answer: {names}" if silent else "all nodes of the inventory answer"
    yield given.sample(Fraction(len(there)), [*there, *silent], why)


def total(given: Given) -> Iterator[Result]:
    """The sum of an amount over all nodes of the roles; each must be known."""
    fields, _, samples = given.material.descriptions
    wanted = given.units(given.input(FIELDS))
    of_node, what = AMOUNTS[given.of]
    read = {node: of_node(given, node, fields[node]) for node in wanted if node in fields}
    values = {node: value for node, value in read.items() if isinstance(value, Fraction)}
    unread = nodesets.of(read.keys() - values.keys())
    unasked = nodesets.of(set(wanted) - read.keys())
    if lacking := [f"{one} of {of}" for one, of in ((FIELDS, unasked), (what, unread)) if of]:
        raise given.missing(lacking)
    why = f"the sum of {what} of {len(values)} nodes"
    described = [samples[node] for node in values]
    yield given.sample(sum(values.values(), Fraction(0)), described, why)


@of_each_unit
def each(given: Given, node: str) -> Iterator[Result]:
    """The amount of each node by itself."""
    fields, sample = given.described(node)
    of_node, what = AMOUNTS[given.of]
    value = of_node(given, node, fields)
    if value is None:
        raise given.missing([f"{what} of {node}"], node)
    yield given.sample(value, [sample], f"from {what}", node)


def number(field: str) -> Callable[[Given, str, Fields], Fraction | None]:
    """What reads an amount from the field that holds it, in its base unit."""

    def of_node(_given: Given, _node: str, fields: Fields) -> Fraction | None:
        found = number_of(fields.get(field, ""), field)
        return found.value if found and found.value else None

    return of_node


def peak(given: Given, node: str, fields: Fields) -> Fraction | None:
    """The cores that were read, by the site's avx_base and flops_per_cycle, in the metric's unit.

    Neither clock nor width can be read: lscpu prints the clock without vector load.
    """
    role = given.site.role_of(node)
    known = given.site.hardware_of(role) if role else None
    there = number("cpu.cores")(given, node, fields)
    if known is None or there is None or not (known.avx_base and known.flops_per_cycle):
        return None
    flops = there * known.avx_base.to("Hz") * known.flops_per_cycle
    return convert(flops / 10**9, "GFLOPS", given.unit)


def memory(given: Given, node: str, fields: Fields) -> Fraction | None:
    """What is built in: the DIMMs if they were read; else what the kernel has.

    Firmware and kernel keep some of it, so the site's figure counts where a little less is there.
    """
    dimms = [number_of(fields[name], name) for name in _named(fields, "memory.dimm.*")]
    if sizes := [dimm.value for dimm in dimms if dimm]:  # an empty slot has none
        return convert(sum(sizes, Fraction(0)), "B", given.unit)
    found = number("memory.total")(given, node, fields)
    if found is None:
        return None
    role = given.site.role_of(node)
    stated = given.site.hardware_of(role).memory if role else None
    if stated and LESS_MEMORY * stated.to("B") <= found < stated.to("B"):
        found = stated.to("B")
    return convert(found, "B", given.unit)


def disk(given: Given, _node: str, fields: Fields) -> Fraction | None:
    """The sizes of all disks that are no device of software, from `disks_from` to `disks_below`."""
    least = units.parse(given.stated("disks_from") or "0 B").to("B")
    below = units.parse(given.stated(BELOW)).to("B") if given.stated(BELOW) else None
    real = [
        name
        for name in _named(fields, "disk.*.size")
        if not any(fnmatchcase(name, virtual) for virtual in _VIRTUAL)
    ]
    sizes = [size.value for name in real if (size := number_of(fields[name]))]
    if not real or len(sizes) < len(real):
        return None
    wanted = (s for s in sizes if s >= least and (below is None or s < below))
    return convert(sum(wanted, Fraction(0)), "B", given.unit)


def system_disk(given: Given, _node: str, fields: Fields) -> Fraction | None:
    """The disks at RAID controllers that are smaller than `disks_below`, each by itself.

    Each of two disks that are mirrored counts.
    """
    drives = _sizes(fields, "raid.*.disk.*")
    most = units.parse(given.stated(BELOW) or "1 TB").to("B")
    if not drives:
        return None
    return convert(sum((size for _, size in drives if size < most), Fraction(0)), "B", given.unit)


def interfaces(_given: Given, _node: str, fields: Fields) -> Fraction:
    """The network interfaces that are devices, also of virtual machines: no bond, no loopback."""
    return Fraction(len(_cards(fields)))


def rate(given: Given, _node: str, fields: Fields) -> Fraction | None:
    """The rate of all interfaces that are devices; each must be known."""
    speeds = [number_of(fields.get(f"{card}.speed", "")) for card in _cards(fields)]
    known = [speed.value for speed in speeds if speed]
    if not speeds or len(known) < len(speeds):
        return None
    return convert(sum(known, Fraction(0)), "B/s", given.unit)


def driver(_given: Given, _node: str, fields: Fields) -> str | None:
    """The drivers of the interfaces that are devices, each once: `virtio_net`."""
    found = {fields.get(f"{card}.driver", "") for card in _cards(fields)}
    return None if "" in found else " ".join(sorted(found)) or None


def _named(fields: Fields, glob: str) -> list[str]:
    """The fields whose names match, without serial numbers."""
    return [n for n in fields if fnmatchcase(n, glob) and not n.endswith(OF_A_PART)]


def _cards(fields: Fields) -> list[str]:
    return [name.removesuffix(".pci") for name in _named(fields, "nic.*.pci")]


def oversubscription(given: Given) -> Iterator[Result]:
    """The rate of the nodes' ports at a switch, as a multiple of that of its uplinks; the highest.

    Which ports are at a switch is by LLDP, their rate by the kernel; its uplinks are as stated.
    """
    fields, _, samples = given.material.descriptions
    ports: dict[tuple[str, Fraction], Fraction] = {}
    wanted = given.units(given.input(FIELDS))
    known = {node: _ports(given, fields[node]) for node in wanted if node in fields}
    if unread := nodesets.of(node for node in wanted if not known.get(node)):
        raise given.missing([f"nic.*.speed and a switch of system.yaml by LLDP of {unread}"])
    for switch, uplinks, speed in (port for own in known.values() for port in own):
        ports[switch, uplinks] = ports.get((switch, uplinks), Fraction(0)) + speed
    most, switch = max((speed / uplinks, switch) for (switch, uplinks), speed in ports.items())
    why = f"{switch}, of {len(ports)} switches; its uplinks are stated and not measured"
    yield given.sample(most, [samples[node] for node in known], why)


def _ports(given: Given, fields: Fields) -> list[tuple[str, Fraction, Fraction]]:
    """The switch of each port, and the rates of its uplinks and of the port, in b/s."""
    found = []
    for name, text in fields.items():
        match = _SWITCH.fullmatch(name)
        own = [one for one in given.site.system.switches.values() if match and one.is_one(text)]
        if match and own:
            speed = number_of(fields.get(f"nic.{match[1]}.speed", ""))
            if speed is None:
                return []
            switch = fields.get(f"lldp.{match[1]}.switch", "a switch without a name")
            found.append((switch, own[0].rate, convert(speed.value, "B/s", "b/s")))
    return found


def missing_flags(given: Given) -> Iterator[Result]:
    """The flags that all hosts of `against: {nodes: ROLE}` have, and an instance lacks."""
    known, _, samples = given.material.descriptions
    role = given.criterion.against.get(ROLE, "")
    hosts = [host for host in given.site.expected(role) if host in known]
    if not hosts:
        raise given.missing([f"{FIELDS} of {role}"])
    flags = ({name for name in known[host] if name.startswith(FLAG)} for host in hosts)
    common = set.intersection(*flags)

    @of_each_unit
    def of_guest(given: Given, node: str) -> Iterator[Result]:
        fields, sample = given.described(node)
        lacks = sorted(name.removeprefix(FLAG) for name in common - fields.keys())
        why = f"it lacks {', '.join(lacks)}" if lacks else "it has those of its hosts"
        inputs = [sample, *(samples[host] for host in hosts)]
        yield given.sample(Fraction(len(lacks)), inputs, why, node)

    yield from of_guest(given)


def between(given: Given) -> Iterator[Result]:
    """The fields in which a kind of node differs between two groups, and no majority is alike.

    The groups are those of `against: {group: …}` and of the condition of that name; nodes are
    compared with those of the same hardware, a field by what most nodes of each group have.
    """
    fields, unread, described = given.material.descriptions
    names = given.stated(GROUP), given.criterion.against.get(GROUP, "")
    sides = [_by_hardware(given, name) for name in names]
    wanted = [node for side in sides for nodes in side.values() for node in nodes]
    if lacking := nodesets.of(node for node in wanted if node not in fields):
        raise given.missing([f"{FIELDS} of {lacking}"])
    differing = [
        name
        for kind in sides[0].keys() | sides[1].keys()
        for name in _differing(kind, fields, unread, sides)
    ]
    shown = ", ".join(sorted(differing)[:5])
    why = f"{shown}{' and more' if len(differing) > 5 else ''}" if differing else "all fields alike"
    yield given.sample(Fraction(len(differing)), [described[node] for node in wanted], why)


def _differing(
    kind: str,
    fields: Mapping[str, Fields],
    unread: Mapping[str, Fields],
    sides: Sequence[Mapping[str, list[str]]],
) -> list[str]:
    """The fields in which the majorities of a kind of node differ between two sides."""
    if not all(kind in side for side in sides):
        return [f"{kind} at one end only"]
    one, other = (_majority(fields, unread, side[kind]) for side in sides)
    changes = uniformity.drift({kind: one}, {kind: other})
    return [f"{kind} {c.field}" for c in changes if not uniformity.is_identity(c.field)]


def _by_hardware(given: Given, group: str) -> dict[str, list[str]]:
    """The nodes of a group by their hardware. Raises UserError for one that is not there."""
    system = given.site.system
    if group not in system.groups:
        raise UserError(given.criterion.metric, f"unknown group '{group}'", system.groups)
    covered = set(given.site.promised(given.criterion))
    roles = [(given.site.role_of(node), node) for node in system.group(group) if node in covered]
    return grouped((system.nodes[role].hardware or role, node) for role, node in roles if role)


def _majority(
    fields: Mapping[str, Fields], unread: Mapping[str, Fields], nodes: list[str]
) -> dict[str, str]:
    voted = uniformity.vote(
        {node: fields[node] for node in nodes}, {n: list(unread.get(n, ())) for n in nodes}
    )
    known = {name: one.value for name, one in voted.majority.items() if one.value is not None}
    return known | {name: "no majority" for name in voted.undecided}


@of_each_unit
def missed(given: Given, node: str) -> Iterator[Result]:
    """The facts of a node that are not as stated.

    Those of a `section` that the condition names, or of the column of `hosts.csv` that the metric
    is named after; else all of them.
    """
    name, source = given.stated(SECTION), "facts of system.yaml"
    if given.of == "section":
        source = f"facts: {name}"
    elif given.of:
        name, source = SECTIONS[given.criterion.metric.partition(".")[2]], given.of
    _, sample = given.described(node)
    results = given.material.facts.get(node, [])
    own = bought.of_section(results, name) if given.of else results
    if not own:
        raise given.missing([f"{source}, which does not state it"], node)
    yield _of_node(given, node, own, sample)


def _of_node(given: Given, node: str, results: Sequence[FactResult], described: Sample) -> Result:
    """How many facts are not as stated; a node that is not known to be wrong must have read all."""
    wrong = [result for result in results if result.missed]
    unread = [result for result in results if result.outcome is Outcome.NOT_READ]
    if wrong:
        texts = [f"{one.field}: expected {one.expected}, found {one.found}" for one in wrong]
        return given.sample(Fraction(len(wrong)), [described], _first(texts), node)
    if len(unread) == len(results):
        why = _first([f"{one.field}: {one.why}" for one in unread])
        return given.sample(None, [described], why, node, whole=[described], status=TOOL_MISSING)
    if unread:
        first = unread[0]
        details = {"section": first.section, "field": first.field, "expected": first.expected}
        return Lack(finding.of(Kind.FACT_NOT_READ, details, message=first.why), node)
    return given.sample(Fraction(0), [described], f"all {len(results)} facts are as stated", node)


def _first(texts: Sequence[str]) -> str:
    more = f"; and {len(texts) - MAX_NAMED} more" if len(texts) > MAX_NAMED else ""
    return "; ".join(texts[:MAX_NAMED]) + more


def raid(given: Given, node: str, fields: Fields) -> str | None:
    """The layout of the disks: how each virtual disk as large as a data disk is made.

    `RAID0 pairs` where a virtual disk has the size of two disks; `no RAID` where a controller was
    read and has none.
    """
    disks = _sizes(fields, "raid.*.disk.*")
    volumes = _sizes(fields, "raid.*.virtual.*")
    if not disks:
        return None
    largest = max(size for _, size in disks)
    layouts = {
        _layout(text.split()[0], size / largest)
        for text, size in volumes
        if size >= largest * NEARLY
    }
    return ", ".join(sorted(layouts)) or "no RAID"


def _layout(level: str, disks: Fraction) -> str:
    number = round(disks)
    return f"{level} pairs" if number == 2 else f"{level} of {number}"


def _sizes(fields: Fields, glob: str) -> list[tuple[str, Fraction]]:
    """The fields of such names with a size among their words, in bytes.

    storcli and perccli print GB and TB of 1024s.
    """
    found = []
    for name, text in fields.items():
        match = _AMOUNT.search(text) if fnmatchcase(name, glob) else None
        if match:
            found.append((text, units.convert(Fraction(match[1]), f"{match[2][0]}iB", "B")))
    return found


AMOUNTS: Mapping[str, tuple[OfNode, str]] = {  # each with the fields that it is read from
    "cores": (number("cpu.cores"), "cpu.cores"),
    "processors": (number("cpu.sockets"), "cpu.sockets"),
    "threads": (number("cpu.threads"), "cpu.threads"),
    "gpus": (number("gpu.count"), "gpu.count"),
    "interfaces": (interfaces, "nic.*.driver"),
    "rate": (rate, "nic.*.speed"),
    "peak": (peak, "cpu.cores, avx_base and flops_per_cycle"),
    "memory": (memory, "memory.total"),
    "disk": (disk, "disk.*.size"),
    "system_disk": (system_disk, "raid.*.disk.*"),
    "driver": (driver, "nic.*.driver"),
    "raid": (raid, "raid.*.level"),
}
