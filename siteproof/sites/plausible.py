"""What is possible in system.yaml and not plausible: warnings of lint, each with its arithmetic."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from fractions import Fraction
from itertools import combinations

from ClusterShell.NodeSet import NodeSet

from siteproof.schema.shapes import hint
from siteproof.schema.yamlfile import Document, Loc, clip
from siteproof.sites.system import FileSystem, Hardware, Link, Nic, NicParameters, Recognise, System

CLOCK = (Fraction(8, 10), Fraction(6))  # GHz: from many-core processors to the fastest
# Operations of a core in a cycle: from scalar code to two units of 1024 bits.
PER_CYCLE = (Fraction(1), Fraction(64))
PER_CORE = (Fraction(1), Fraction(200))  # GFLOPS of a core
THREADS = (1, 2, 4, 8)  # hardware threads of a core, of any maker
MEMORY_PER_CORE = (Fraction(1, 4), Fraction(1024))  # GiB
MTU = (576, 65_536)  # bytes: the smallest of IPv4, and that of the loopback
LOCAL = (
    *("tmpfs", "ramfs", "xfs", "ext2", "ext3", "ext4", "btrfs", "zfs", "f2fs", "bcachefs"),
    *("overlay", "jfs"),
)
SHARED = (
    *("lustre", "nfs", "nfs4", "gpfs", "ceph", "beegfs", "panfs", "glusterfs", "pvfs2", "wekafs"),
    *("cifs", "smb3", "afs", "dvs", "ocfs2", "gfs2", "fuse.glusterfs", "fuse.ceph", "fuse.dfuse"),
    *("9p", "virtiofs", "cvmfs2", "fuse.cvmfs2", "fuse.sshfs"),
)
KINDS = (*LOCAL, *SHARED, "any", "fuse.s3fs", "squashfs", "vfat", "iso9660", "ntfs", "reiserfs")
_GPUS = re.compile(r"--(?:gpus-per-node=|gres=gpu:)(?:[A-Za-z][^:=,]*:)?([0-9]{1,3})$")
_UNEXPANDED = re.compile(r"[$~*?{]")
_UNUSUAL = re.compile(
    r"/(?:(?:bin|boot|dev(?!/shm)|etc|lib|lib64|proc|root|run|sbin|sys|usr)(?:/.*)?)?"
)
_RANGE = re.compile(r"\[[0-9]*(?:[0-9]{2,}-[0-9]+|[0-9]+-[0-9]{2,})[0-9,-]*\]")
_GLOB = re.compile(r"(?<![\\\])}.])(?<!\\[a-zA-Z])\*")
_DOMAIN = re.compile(r"[\w\\\[\]+*?{}-]+?(?:\\?\.[a-z][a-z-]+){1,}")
_NEVER = re.compile(r"[\s/:@,;=!%~#&'\"<>]")  # in no host name
_NO_CLUSTER = re.compile(r"""[\s"'#=]""")
_BEGIN = re.compile(r"\^[\w-]+")


def short(number: Fraction | int) -> str:
    """A number in a warning: four digits, or all before the point."""
    return f"{float(number):.4g}" if abs(float(number)) < 10_000 else f"{float(number):.0f}"


def between(limits: Iterable[Fraction | int], unit: str) -> str:
    """Two limits in a warning."""
    return f"{' to '.join(map(short, limits))} {unit}"


def system(document: Document, found: System) -> None:
    """Note the warnings of system.yaml."""
    _recognise(document, found.recognise)
    for key, hardware in found.hardware.items():
        for name, what in _of_hardware(hardware):
            document.warn(("hardware", key, name), what)
    _interfaces(document, found)
    for loc, what in (*_misspelt(found), *_of_gpus(found)):
        document.warn(loc, what)
    for key, link in found.links.items():
        for name, what in dict.fromkeys(_of_link(found, link)):
            document.warn(("links", key, name), what)
    for key, there in found.file_systems.items():
        for name, what in _of_file_system(there):
            document.warn(("file_systems", key, name), what)
    _same_paths(document, found)


def _recognise(document: Document, rule: Recognise) -> None:
    if rule.hostname is not None and (what := _cannot_match(rule.hostname)):
        document.warn(("recognise", "hostname"), f"'{clip(rule.hostname)}' {what}")
    if rule.cluster is not None and (match := _NO_CLUSTER.search(rule.cluster)):
        what = f"'{clip(rule.cluster)}' cannot match: no ClusterName has '{match[0]}'"
        document.warn(("recognise", "cluster"), what)
    if rule.file is not None and not rule.file.startswith("/"):
        what = f"'{clip(rule.file)}' depends on the current folder"
        document.warn(("recognise", "file"), what, "Give a path that begins with /")


def _cannot_match(pattern: str) -> str:
    """Why a pattern matches no short host name, or not those that were meant; "" if it may."""
    if found := _NEVER.search(re.sub(r"\{[0-9]*,[0-9]*\}|\(\?[:=!]", "", pattern)):
        return f"cannot match: no host name has '{found[0]}'"
    if found := _RANGE.search(pattern):
        return f"is not a node set: {found[0]} stands for one character; write [0-9]+"
    if r"\." in pattern or _DOMAIN.fullmatch(pattern):
        return "cannot match: a short host name has no domain"
    if _BEGIN.fullmatch(pattern):
        return f"matches the one name {pattern.strip('^')}: the whole name must match; write .*"
    if _GLOB.search(pattern) or pattern.startswith("*"):
        return "is not a glob: '*' repeats the character before it; write .*"
    return ""


def _of_hardware(hardware: Hardware) -> Iterator[tuple[str, str]]:
    """Keys of a kind of node, each with what is not plausible."""
    if hardware.peak is not None:
        yield from (("peak", what) for what in _of_peak(hardware))
    for key in ("avx_base", "highest_clock"):
        clock = hardware.quantities.get(key)
        if clock and not CLOCK[0] <= clock.to("GHz") <= CLOCK[1]:
            yield key, f"a clock of {clock}, and processors have {between(CLOCK, 'GHz')}"
    cycle = hardware.flops_per_cycle
    if cycle and not (PER_CYCLE[0] <= cycle <= PER_CYCLE[1] and cycle.bit_count() == 1):
        yield "flops_per_cycle", f"{cycle} is not a power of two up to {PER_CYCLE[1]}"
    threads = hardware.threads_per_core
    if threads and threads not in THREADS:
        yield "threads_per_core", f"{threads}, and cores have {', '.join(map(str, THREADS))}"
    yield from _of_memory(hardware)
    for name, nic in hardware.nics.items():
        if nic.mtu and not MTU[0] <= nic.mtu <= MTU[1]:
            yield "nics", f"{name} with an MTU of {nic.mtu}, and {MTU[0]} to {MTU[1]} exist"


def _of_peak(hardware: Hardware) -> Iterator[str]:
    """A peak that its factors do not explain, where one or two of them are missing."""
    cores = hardware.cores
    has_gpu = any(
        field.startswith("gpu.") for facts in hardware.facts.values() for field in facts.fields
    )
    if not cores or hardware.peak is None or has_gpu:
        return
    gflops, clock, cycle = hardware.peak.to("GFLOPS"), hardware.avx_base, hardware.flops_per_cycle
    begin = f"{hardware.peak} / ({hardware.sockets} x {hardware.cores_per_socket} cores"
    if clock and cycle:
        return  # lint computes it exactly
    if cycle:
        found, limits, unit = gflops / cores / cycle, CLOCK, "GHz"
        begin += f" x {cycle} a cycle"
    elif clock:
        found, limits, unit = gflops / cores / clock.to("GHz"), PER_CYCLE, "a cycle"
        begin += f" x {clock}"
    else:
        found, limits, unit = gflops / cores, PER_CORE, "GFLOPS a core"
    if not limits[0] <= found <= limits[1]:
        yield f"{begin}) = {short(found)} {unit}, and processors have {between(limits, unit)}"


def _of_memory(hardware: Hardware) -> Iterator[tuple[str, str]]:
    memory, cache = hardware.memory, hardware.last_level_cache
    cores = hardware.cores
    if memory and cores:
        each = memory.to("GiB") / cores
        if not MEMORY_PER_CORE[0] <= each <= MEMORY_PER_CORE[1]:
            limits = between(MEMORY_PER_CORE, "GiB")
            yield (
                "memory",
                f"{memory} / {cores} cores = {short(each)} GiB, and nodes have {limits}",
            )
    if memory and cache and cache.to("B") * 16 > memory.to("B"):
        share = short(100 * cache.to("B") / memory.to("B"))
        yield "last_level_cache", f"{cache} is {share} % of the memory of {memory}"


def _misspelt(found: System) -> Iterator[tuple[Loc, str]]:
    """Names of lists that are not closed, where one of the list is close to them."""
    for key, there in found.file_systems.items():
        if near := _near(there.kind, KINDS):
            what = f"'{clip(there.kind)}' is not a type as the kernel names it{near}"
            yield ("file_systems", key, "kind"), what
    for key, hardware in found.hardware.items():
        for name in hardware.devices:
            if near := _near(name, ("gpu",)):
                what = f"'{clip(name)}' is a type of device that nothing compares{near}"
                yield ("hardware", key, "devices"), what


def _near(name: str, known: Collection[str]) -> str:
    """The hint for a name that is not in a list and close to one of it."""
    return "" if name in known else hint(name, known)


def _of_gpus(found: System) -> Iterator[tuple[Loc, str]]:
    """Jobs that request another number of GPUs than the nodes have."""
    for key, partition in found.partitions.items():
        numbers = [int(match[1]) for one in partition.access if (match := _GPUS.match(one))]
        for role in partition.measured if numbers else ():
            gpu = found.hardware_of(role).devices.get("gpu")
            if gpu and gpu.count != numbers[-1]:
                what = f"requests {numbers[-1]} GPUs, and nodes of role '{role}' have {gpu.count}"
                yield ("partitions", key, "access"), what


def _interfaces(document: Document, found: System) -> None:
    """An expected parameter of an interface that contradicts the interface in the hardware."""
    for role, parameters in found.parameters.items():
        nics = found.hardware_of(role).nics
        for device in parameters.nic.keys() & nics.keys():
            for name, what in _of_interface(parameters.nic[device], nics[device]):
                document.warn(("parameters", role, "nic", device, name), what)


def _of_interface(settings: NicParameters, nic: Nic) -> Iterator[tuple[str, str]]:
    if nic.mtu and settings.mtu and not settings.mtu.met_by(nic.mtu):
        yield "mtu", f"{settings.mtu}, and `hardware` has {nic.mtu}"
    speed = nic.speed.to("Mb/s") if nic.speed else None
    if speed and settings.speed and not settings.speed.met_by(short(speed)):
        yield "speed", f"{settings.speed} Mb/s, and `hardware` has {nic.speed}"


def _of_link(found: System, link: Link) -> Iterator[tuple[str, str]]:
    """Keys of a link, each with what its ends cannot do."""
    if link.slow_below and link.speed and link.slow_below.to("b/s") >= link.speed.to("b/s"):
        yield "slow_below", f"{link.slow_below} is not below the speed of {link.speed}"
    if link.mtu and not MTU[0] <= link.mtu <= MTU[1]:
        yield "mtu", f"{link.mtu}, and {MTU[0]} to {MTU[1]} exist"
    for end in ("servers", "clients"):
        for role in _roles_of(found, getattr(link, end)):
            yield from _of_end(found, link, getattr(link, end), role)


def _of_end(found: System, link: Link, end: str, role: str) -> Iterator[tuple[str, str]]:
    """What the interfaces of a role cannot do; of all its nodes together, if all work at once."""
    hardware = found.hardware_of(role)
    sizes = [nic.mtu for nic in hardware.nics.values() if nic.mtu]
    nodes = len(found.nodes[role].nodes & found.members(end)) if link.pattern == "together" else 1
    if link.speed and hardware.rate and link.speed.to("b/s") > nodes * hardware.rate:
        written = " + ".join(str(nic.speed) for nic in hardware.nics.values())
        written += f" on each of {nodes} nodes" if nodes > 1 else ""
        yield "speed", f"{link.speed}, and the interfaces of role '{role}' have {written}"
    if link.mtu and sizes and link.mtu > max(sizes):
        yield "mtu", f"{link.mtu}, and the interfaces of role '{role}' have {max(sizes)}"


def _roles_of(found: System, text: str) -> list[str]:
    """The roles of the nodes of a link's end; none if it has a mistake."""
    try:
        ends: NodeSet = found.members(text)
        return [key for key, role in found.nodes.items() if role.nodes & ends]
    except ValueError:
        return []


def _of_file_system(there: FileSystem) -> Iterator[tuple[str, str]]:
    if _UNUSUAL.fullmatch(there.path):
        yield "path", f"'{clip(there.path)}' belongs to the operating system of a node"
    elif "//" in there.path or {"..", "."} & set(there.path.split("/")):
        yield "path", f"'{clip(there.path)}' is not the shortest form of this path"
    if found := _UNEXPANDED.search(there.path):
        yield "path", f"'{clip(there.path)}' is taken as it is: nothing replaces '{found[0]}'"
    given = there.model_fields_set
    if "most_full" in given and there.kind not in ("lustre", "any"):
        yield "most_full", f"no effect, as kind is {clip(there.kind)}, not lustre"
    if "at_once" in given and not there.shared:
        yield "at_once", "no effect without 'shared: true'"
    if there.shared and there.kind in LOCAL:
        yield "shared", f"'shared: true', but {there.kind} is a file system of one node"
    if not there.shared and there.kind in SHARED:
        yield "kind", f"{there.kind} without 'shared: true', so all nodes write to it at once"


def _same_paths(document: Document, found: System) -> None:
    for (one, first), (other, second) in combinations(found.file_systems.items(), 2):
        same = first.path.rstrip("/") == second.path.rstrip("/")
        roles = [set(there.roles or found.nodes) for there in (first, second)]
        if same and first.kind == second.kind and roles[0] & roles[1]:
            what = f"the path of file system '{one}', so it is measured twice"
            document.warn(("file_systems", other, "path"), what)
