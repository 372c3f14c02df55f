"""The four system calls that Python 3.11 does not have."""

import ctypes
import os
import signal
from pathlib import Path

NEWNS = 0x00020000
NEWUTS = 0x04000000
NEWIPC = 0x08000000
NEWPID = 0x20000000
NEWNET = 0x40000000

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18

_PR_SET_PDEATHSIG = 1
# The mount namespace last: after it /proc is another one.
_NAMESPACES = ("net", "uts", "ipc", "pid", "mnt")

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")


def unshare(flags: int) -> None:
    """Leave the named namespaces for new ones; NEWPID holds for children only."""
    _check(_libc.unshare(flags), "unshare")


def enter(process: Path) -> None:
    """Join the five namespaces of a process, given as its folder in a /proc.

    The pid namespace holds for children only, so fork afterwards.
    """
    fds = [os.open(process / "ns" / name, os.O_RDONLY | os.O_CLOEXEC) for name in _NAMESPACES]
    for fd in fds:
        _check(_libc.setns(fd, 0), "setns")
        os.close(fd)


def mount(source: str | Path, target: str | Path, kind: str, flags: int, data: str = "") -> None:
    """mount(2); data is the file system's own options."""
    result = _libc.mount(
        os.fsencode(source),
        os.fsencode(target),
        kind.encode(),
        ctypes.c_ulong(flags),
        data.encode(),
    )
    _check(result, f"mount {target}")


def bind(source: str | Path, target: str | Path) -> None:
    """Show source, with all that is mounted beneath it, at target too."""
    mount(source, target, "", MS_BIND | MS_REC)


def die_with_parent() -> None:
    """Let the kernel kill this process when the one that forked it ends."""
    _check(_libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")
