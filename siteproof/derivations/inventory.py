"""What the nodes are, added up: from the fields that `siteproof describe` shows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from fractions import Fraction

from siteproof import nodesets, units
from siteproof.analysis import uniformity
from siteproof.answers.inputs import ROLE
from siteproof.derivations.given import Given, Lack, Result
from siteproof.errors import UserError
from siteproof.record.samples import Sample
from siteproof.sites import hardware_read
from siteproof.units import convert

FIELDS = "SystemDescription.fields"
GROUP = "group"
BASE = {"rate": "B/s"}  # units of amounts that are no counts
LESS_MEMORY = Fraction(92, 100)  # of what is built in: firmware and kernel keep the rest
_BYTES = re.compile(r"(\d{1,20}) B")
_AMOUNT = re.compile(r"(\d{1,9}(?:\.\d{1,6})?) (GB|TB|MB)\b")
NEARLY = Fraction(97, 100)
_VIRTUAL = ("disk.loop*", "disk.ram*", "disk.dm-*", "disk.md*", "disk.zram*", "disk.sr*")

Fields = Mapping[str, str]
OfNode = Callable[[Given, str, Fields], "Fraction | str | None"]


def nodes(given: Given) -> Iterator[Result]:
    """How many nodes of the roles have described themselves."""
    _, _, described = given.material.descriptions
    kind = given.input(FIELDS)
    wanted, attempted = given.units(kind), given.answers(kind)
    there = [described[node] for node in wanted if node in described]
    if unasked := nodesets.of(node for node in wanted if node not in attempted):
        yield given.missing([f"{FIELDS} of {unasked}"])
        return
    silent = [attempted[node][0] for node in wanted if node not in described]
    names = nodesets.of(sample.node for sample in silent)
    why = f"without an answer: {names}" if silent else "all nodes of the inventory answer"
    yield given.sample(Fraction(len(there)), [*there, *silent], why)


def total(given: Given) -> Iterator[Result]:
    """The sum of an amount over all nodes of the roles; each must be known."""
    described, lacks = of_nodes(given)
    of_node, what = AMOUNTS[given.of]
    read = {node: of_node(given, node, fields) for node, (fields, _) in described.items()}
    values = {node: value for node, value in read.items() if isinstance(value, Fraction)}
    unread = nodesets.of(read.keys() - values.keys())
    unasked = nodesets.of(lack.unit for lack in lacks)
    if lacking := [f"{one} of {of}" for one, of in ((FIELDS, unasked), (what, unread)) if of]:
        yield given.missing(lacking)
        return
    why = f"the sum of {what} of {len(values)} nodes"
    samples = [sample for _, sample in described.values()]
    yield given.sample(sum(values.values(), Fraction(0)), samples, why)


def each(given: Given) -> Iterator[Result]:
    """The amount of each node by itself."""
    described, lacks = of_nodes(given)
    of_node, what = AMOUNTS[given.of]
    yield from lacks
    for node, (fields, sample) in described.items():
        value = of_node(given, node, fields)
        if value is None:
            yield given.missing([f"{what} of {node}"], node)
        else:
            yield given.sample(value, [sample], f"from {what}", node)


def of_nodes(given: Given) -> tuple[dict[str, tuple[Fields, Sample]], list[Lack]]:
    """The fields of each node that owes them, with their sample; and those that have none."""
    fields, _, samples = given.material.descriptions
    wanted = given.units(given.input(FIELDS))
    lacks = [given.missing([f"{FIELDS} of {node}"], node) for node in wanted if node not in fields]
    return {node: (fields[node], samples[node]) for node in wanted if node in fields}, lacks


def amount(given: Given, node: str, _fields: Fields) -> Fraction | None:
    """One of the amounts that follow from the fields: cores, threads, gpus, interfaces, rate."""
    found = given.material.amounts[node].get(given.of)
    return found and convert(found, BASE.get(given.of, given.unit), given.unit)


def peak(given: Given, node: str, fields: Fields) -> Fraction | None:
    """The cores that were read, by the site's avx_base and flops_per_cycle, in the metric's unit.

    Neither clock nor width can be read: lscpu prints the clock without vector load.
    """
    role = given.site.role_of(node)
    known = given.site.hardware_of(role) if role else None
    there = given.material.amounts[node].get("cores")
    if known is None or there is None or not (known.avx_base and known.flops_per_cycle):
        return None
    flops = there * known.avx_base.to("Hz") * known.flops_per_cycle
    return convert(flops / 10**9, "GFLOPS", given.unit)


def memory(given: Given, node: str, fields: Fields) -> Fraction | None:
    """What is built in: the DIMMs if they were read; else what the kernel has.

    Firmware and kernel keep some of it, so the site's figure counts where a little less is there.
    """
    dimms = [value for name, value in fields.items() if fnmatchcase(name, "memory.dimm.*.size")]
    sizes = [size for text in dimms if (size := _size(text)) is not None]
    if dimms and len(sizes) == len(dimms):
        return convert(sum(sizes, Fraction(0)), "B", given.unit)
    found = given.material.amounts[node].get("memory")
    if found is None:
        return None
    role = given.site.role_of(node)
    stated = given.site.hardware_of(role).memory if role else None
    if stated and LESS_MEMORY * stated.to("B") <= found < stated.to("B"):
        found = stated.to("B")
    return convert(found, "B", given.unit)


def disk(given: Given, node: str, fields: Fields) -> Fraction | None:
    """The sizes of all disks that are no device of software, from the size `disks_from` on."""
    least = units.parse(given.stated("disks_from") or "0 B").to("B")
    found = [
        _BYTES.fullmatch(value)
        for name, value in fields.items()
        if fnmatchcase(name, "disk.*.size") and not any(fnmatchcase(name, v) for v in _VIRTUAL)
    ]
    if not found or None in found:
        return None
    sizes = [Fraction(match[1]) for match in found if match]
    return convert(sum(s for s in sizes if s >= least), "B", given.unit)


def driver(_given: Given, _node: str, fields: Fields) -> str | None:
    """The drivers of the interfaces that are devices, each once."""
    return hardware_read.drivers(fields) or None


def missing_flags(given: Given) -> Iterator[Result]:
    """The flags that all hosts of `against: {nodes: ROLE}` have, and an instance lacks."""
    known, _, samples = given.material.descriptions
    role = given.criterion.against.get(ROLE, "")
    hosts = [node for node in given.site.expected(role) if node in known]
    if not hosts:
        yield given.missing([f"{FIELDS} of {role}"])
        return
    common = dict.fromkeys(set.intersection(*(set(known[host]) for host in hosts)), "")
    described, lacking = of_nodes(given)
    yield from lacking
    for node, (fields, sample) in described.items():
        lacks = hardware_read.missing_flags(fields, common)
        why = f"it lacks {', '.join(lacks)}" if lacks else "it has those of its hosts"
        inputs = [sample, *(samples[host] for host in hosts)]
        yield given.sample(Fraction(len(lacks)), inputs, why, node)


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
        yield given.missing([f"{FIELDS} of {lacking}"])
        return
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
    found: dict[str, list[str]] = {}
    covered = set(given.site.promised(given.criterion))
    for node in system.group(group):
        role = given.site.role_of(node)
        if role and node in covered:
            found.setdefault(system.nodes[role].hardware or role, []).append(node)
    return found


def _majority(
    fields: Mapping[str, Fields], unread: Mapping[str, Fields], nodes: list[str]
) -> dict[str, str]:
    voted = uniformity.vote(
        {node: fields[node] for node in nodes}, {n: list(unread.get(n, ())) for n in nodes}
    )
    known = {name: one.value for name, one in voted.majority.items() if one.value is not None}
    return known | {name: "no majority" for name in voted.undecided}


def _size(text: str) -> Fraction | None:
    """A DIMM's size, as dmidecode prints it."""
    try:
        return units.parse(text.replace("MB", "MiB").replace("GB", "GiB")).to("B")
    except UserError:
        return None


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
    """The fields of such names with a size among their words, in bytes."""
    found = []
    for name, text in fields.items():
        match = _AMOUNT.search(text) if fnmatchcase(name, glob) else None
        if match:
            found.append((text, units.convert(Fraction(match[1]), match[2], "B")))
    return found


AMOUNTS: Mapping[str, tuple[OfNode, str]] = {  # each with the fields that it is read from
    "cores": (amount, "cpu.cores"),
    "threads": (amount, "cpu.threads"),
    "gpus": (amount, "gpu.count"),
    "interfaces": (amount, "nic.*.driver"),
    "rate": (amount, "nic.*.speed"),
    "peak": (peak, "cpu.cores, avx_base and flops_per_cycle"),
    "memory": (memory, "memory.total"),
    "disk": (disk, "disk.*.size"),
    "driver": (driver, "nic.*.driver"),
    "raid": (raid, "raid.*.level"),
}
