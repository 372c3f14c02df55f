"""What is possible in system.yaml and not plausible: warnings of lint, each with its arithmetic."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fractions import Fraction

from ClusterShell.NodeSet import NodeSet

from siteproof.schema.yamlfile import Document, clip
from siteproof.sites.system import FileSystem, Hardware, Link, System

CLOCK = (Fraction(8, 10), Fraction(6))  # GHz: from many-core processors to the fastest
PER_CORE = (Fraction(1), Fraction(200))  # GFLOPS of a core
MEMORY_PER_CORE = (Fraction(1, 4), Fraction(1024))  # GiB
LOCAL = (
    *("tmpfs", "ramfs", "xfs", "ext2", "ext3", "ext4", "btrfs", "zfs", "f2fs", "bcachefs"),
    *("overlay", "jfs"),
)
SHARED = (
    *("lustre", "nfs", "nfs4", "gpfs", "ceph", "beegfs", "panfs", "glusterfs", "pvfs2", "wekafs"),
    *("cifs", "smb3", "afs", "dvs", "ocfs2", "gfs2", "fuse.glusterfs", "fuse.ceph", "fuse.dfuse"),
    *("9p", "virtiofs", "cvmfs2", "fuse.cvmfs2", "fuse.sshfs"),
)
_UNUSUAL = re.compile(
    r"/(?:(?:bin|boot|dev(?!/shm)|etc|lib|lib64|proc|root|run|sbin|sys|usr)(?:/.*)?)?"
)


def short(number: Fraction | int) -> str:
    """A number in a warning: four digits, or all before the point."""
    return f"{float(number):.4g}" if abs(float(number)) < 10_000 else f"{float(number):.0f}"


def between(limits: Iterable[Fraction | int], unit: str) -> str:
    """Two limits in a warning."""
    return f"{' to '.join(map(short, limits))} {unit}"


def system(document: Document, found: System) -> None:
    """Note the warnings of system.yaml."""
    for key, hardware in found.hardware.items():
        for name, what in _of_hardware(hardware):
            document.warn(("hardware", key, name), what)
    for key, link in found.links.items():
        for name, what in dict.fromkeys(_of_link(found, link)):
            document.warn(("links", key, name), what)
    for key, there in found.file_systems.items():
        for name, what in _of_file_system(there):
            document.warn(("file_systems", key, name), what)


def _of_hardware(hardware: Hardware) -> Iterator[tuple[str, str]]:
    """Keys of a kind of node, each with what is not plausible."""
    yield from _of_peak(hardware)
    for key in ("avx_base", "highest_clock"):
        clock = hardware.quantities.get(key)
        if clock and not CLOCK[0] <= clock.to("GHz") <= CLOCK[1]:
            yield key, f"a clock of {clock}, and processors have {between(CLOCK, 'GHz')}"
    yield from _of_memory(hardware)


def _of_peak(hardware: Hardware) -> Iterator[tuple[str, str]]:
    """A peak that no processor has; what belongs to accelerators is not counted by cores."""
    has_gpu = any(
        field.startswith("gpu.") for facts in hardware.facts.values() for field in facts.fields
    )
    if not hardware.cores or hardware.peak is None or has_gpu:
        return
    each = hardware.peak.to("GFLOPS") / hardware.cores
    if not PER_CORE[0] <= each <= PER_CORE[1]:
        text = f"{hardware.peak} / ({hardware.sockets} x {hardware.cores_per_socket} cores)"
        limits = between(PER_CORE, "GFLOPS a core")
        yield "peak", f"{text} = {short(each)} GFLOPS a core, and processors have {limits}"


def _of_memory(hardware: Hardware) -> Iterator[tuple[str, str]]:
    memory, cores = hardware.memory, hardware.cores
    if not memory or not cores:
        return
    each = memory.to("GiB") / cores
    if not MEMORY_PER_CORE[0] <= each <= MEMORY_PER_CORE[1]:
        limits = between(MEMORY_PER_CORE, "GiB")
        yield "memory", f"{memory} / {cores} cores = {short(each)} GiB, and nodes have {limits}"


def _of_link(found: System, link: Link) -> Iterator[tuple[str, str]]:
    """Keys of a link, each with what its ends cannot do."""
    if link.slow_below and link.speed and link.slow_below.to("b/s") >= link.speed.to("b/s"):
        yield "slow_below", f"{link.slow_below} is not below the speed of {link.speed}"
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
    if there.shared and there.kind in LOCAL:
        yield "shared", f"'shared: true', but {there.kind} is a file system of one node"
    if not there.shared and there.kind in SHARED:
        yield "kind", f"{there.kind} without 'shared: true', so all nodes write to it at once"
