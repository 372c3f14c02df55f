"""Limits on a node's processes: one cgroup a node and controller, for nodes that have a limit."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from errors import UsageError
from state import State

_TOP = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Controller:
    """A controller of cgroup v1 or v2, whichever this machine has.

    v1: the names of its own tree in v1. v2: its name in v2.
    note: ends the name of the file that says that a node has a group. purpose: for complaints.
    """

    v1: tuple[str, ...]
    v2: str
    note: str
    purpose: str

    def tree(self) -> Path:
        """Where its groups are. Raises UsageError if there is none to write to."""
        for top in (_TOP / name for name in self.v1):
            if (top / "cgroup.procs").exists():
                return self._writable(top)
        controllers = _TOP / "cgroup.controllers"
        if controllers.exists() and self.v2 in controllers.read_text().split():
            return self._writable(_TOP)
        raise UsageError(
            f"{self.purpose} needs the {self.v2} controller of cgroup v1 or v2, which is not here"
        )

    def is_v2(self) -> bool:
        """Which of the two interfaces its files have."""
        return self.tree() == _TOP

    def make_group(self, state: State, name: str) -> Path:
        """The node's group, without any process and limit if it is new."""
        if self.is_v2():
            self._enable_v2()
        group = self._group(state, name)
        group.mkdir(exist_ok=True)
        return group

    def join(self, state: State, name: str) -> None:
        """Put this process, and so its children, in the node's group, if it has one."""
        if state.node_file(name, self.note).exists():
            (self._group(state, name) / "cgroup.procs").write_text("0")

    def move(self, state: State, name: str, processes: Callable[[], set[int]]) -> None:
        """Put all processes of a node, which processes() returns, in its group."""
        members = self._group(state, name) / "cgroup.procs"
        while outside := processes() - {int(pid) for pid in members.read_text().split()}:
            for pid in outside:
                try:
                    members.write_text(str(pid))
                except ProcessLookupError:
                    continue  # it has ended

    def leave(self, state: State, name: str) -> None:
        """Take all processes out of the node's group, which has no time for real-time programs."""
        group = self._group(state, name)
        while group.exists() and (left := (group / "cgroup.procs").read_text().split()):
            for pid in left:
                try:
                    (self.tree() / "cgroup.procs").write_text(pid)
                except ProcessLookupError:
                    continue  # it has ended

    def _group(self, state: State, name: str) -> Path:
        return self.tree() / f"siteproof-testbed.{state.settings.mark}.{name}"

    def _writable(self, top: Path) -> Path:
        if not os.access(top / "cgroup.procs", os.W_OK):
            raise UsageError(f"{self.purpose} needs write access to {top}")
        return top

    def _enable_v2(self) -> None:
        """Let groups at the top have these limits; where systemd runs they mostly have already."""
        control = _TOP / "cgroup.subtree_control"
        if self.v2 in control.read_text().split():
            return
        try:
            control.write_text(f"+{self.v2}")
        except OSError as error:
            raise UsageError(f"{control}: {error.strerror}") from None


CPU = Controller(("cpu", "cpu,cpuacct"), "cpu", "quota", "a CPU quota")
DISK = Controller(("blkio",), "io", "disk", "a slow disk")
MEMORY = Controller(("memory",), "memory", "memory", "a limit on memory")


def join(state: State, name: str) -> None:
    """Put this process, and so its children, under all limits that the node has."""
    for controller in (CPU, DISK, MEMORY):
        controller.join(state, name)


def remove_all(state: State) -> None:
    """Delete the groups of all nodes, after their processes have ended."""
    for top in (_TOP, *(_TOP / name for kind in (CPU, DISK, MEMORY) for name in kind.v1)):
        for group in top.glob(f"siteproof-testbed.{state.settings.mark}.*"):
            group.rmdir()
