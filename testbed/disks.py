"""Faults of a node's disks: /tmp, which is its own, and the host's, which all share."""

import os
from pathlib import Path

import node
import values
from cgroups import DISK
from errors import UsageError
from state import State

_FILLER = "/tmp/.testbed-full"
_PAGE = os.sysconf("SC_PAGE_SIZE")


def fill(state: State, name: str, value: str) -> str:
    """Make /tmp as small as what is in it, but for value bytes. Returns its old size.

    The filler is there because a size of 0 would mean no limit.
    """
    free = values.size(value)
    node.must_run(state, name, ["dd", "if=/dev/zero", f"of={_FILLER}", f"bs={_PAGE}", "count=1"])
    words = ["stat", "--file-system", "--format=%b %f %S", "/tmp"]
    blocks, empty, block = map(int, node.must_run(state, name, words).split())
    _resize(state, name, (blocks - empty) * block + free)
    return str(blocks * block)


def empty(state: State, name: str, before: str) -> None:
    """As before, with what is in it."""
    _resize(state, name, int(before))
    node.must_run(state, name, ["rm", "-f", _FILLER])


def _resize(state: State, name: str, size: int) -> None:
    node.must_run(state, name, ["mount", "-o", f"remount,size={size}", "/tmp"])


def slow(state: State, name: str, value: str) -> None:
    """Throttle what the node's processes read from and write to the disk of the data folder."""
    device = _device(state.data)
    group = DISK.make_group(state, name)
    speed = values.disk_rate(value)
    state.node_file(name, DISK.note).touch()
    if DISK.is_v2():
        (group / "io.max").write_text(f"{device} rbps={speed} wbps={speed}")
    else:
        for way in ("read", "write"):
            (group / f"blkio.throttle.{way}_bps_device").write_text(f"{device} {speed}")
    DISK.move(state, name, lambda: node.processes(state, name))


def unslow(state: State, name: str, _before: object) -> None:
    """No limit; the group stays until `down`, and is harmless."""
    group, device = DISK.make_group(state, name), _device(state.data)
    if DISK.is_v2():
        (group / "io.max").write_text(f"{device} rbps=max wbps=max")
    else:
        for way in ("read", "write"):
            (group / f"blkio.throttle.{way}_bps_device").write_text(f"{device} 0")


def _device(folder: Path) -> str:
    """The numbers of the whole disk that holds a folder. Raises UsageError if none does."""
    number = folder.stat().st_dev
    entry = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if not entry.exists():
        raise UsageError(f"{folder} is not on a disk whose rate the kernel can limit")
    entry = entry.resolve()
    if (entry / "partition").exists():
        entry = entry.parent
    return (entry / "dev").read_text().strip()
