"""What a node's files say of it, and what is not so: bind mounts in the node alone.

They hide a file from all processes of the node, jobs that start later too, and change nothing
else: what asks the kernel by a system call (uname, sysinfo) gets the truth.
"""

import platform
import re
from pathlib import Path

import node
import values
from errors import UsageError
from state import State

_MEMINFO = "/proc/meminfo"
_RELEASE = "/proc/sys/kernel/osrelease"
_VERSION = "/proc/version"
_PACKAGES = "/var/lib/dpkg/status"
_KIB = 1024


def memory(state: State, name: str, value: str) -> list[str]:
    """Another MemTotal; no other figure is above it, and none moves any more."""
    total = values.size(value) // _KIB

    def figure(match: re.Match[str]) -> str:
        number = total if match[1] == "MemTotal" else min(int(match[3]), total)
        return f"{match[1]}{match[2]}{number:>{len(match[3])}} kB"

    text = re.sub(r"(Mem\w+)(: *)(\d+) kB", figure, Path(_MEMINFO).read_text())
    return _hide(state, name, {_MEMINFO: text})


def kernel(state: State, name: str, value: str) -> list[str]:
    """Another release, where files name it."""
    other = values.release(value)
    version = Path(_VERSION).read_text().replace(platform.release(), other)
    return _hide(state, name, {_RELEASE: other + "\n", _VERSION: version})


def package(state: State, name: str, value: str) -> list[str]:
    """Another version of one package, as dpkg knows it.

    If the host installs packages meanwhile, dpkg replaces the file, and the disguise falls.
    """
    wanted, version = values.pair(value)
    block = rf"(^Package: {re.escape(wanted)}\n(?:.+\n)*?Version: ).*"
    text, found = re.subn(block, lambda m: m[1] + version, Path(_PACKAGES).read_text(), flags=re.M)
    if not found:
        raise UsageError(f"no package '{wanted}' is installed")
    return _hide(state, name, {_PACKAGES: text})


def drop(state: State, name: str, before: list[str]) -> None:
    """As before. A disguise that has fallen by itself is no error."""
    for path in before:
        node.run(state, name, ["umount", path])


def _hide(state: State, name: str, files: dict[str, str]) -> list[str]:
    """Show these texts instead of what is in the files. Returns the files' paths."""
    for path, text in files.items():
        mask = state.node_file(name, Path(path).name)
        mask.write_text(text)
        node.must_run(state, name, ["mount", "--bind", str(mask), path])
    return list(files)
