"""A share of the CPUs for a node: one cgroup a node, only for nodes that have a quota."""

import os
from pathlib import Path

from errors import UsageError
from state import State

_V1 = (Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup/cpu,cpuacct"))
_V2 = Path("/sys/fs/cgroup")
_PERIOD = 100_000  # microseconds, the kernel's default


def _hierarchy() -> Path:
    """The folder of the cpu controller. Raises UsageError if there is none to write to."""
    for top in _V1:
        if (top / "cpu.cfs_quota_us").exists() or (top / "cgroup.procs").exists():
            return _writable(top)
    controllers = _V2 / "cgroup.controllers"
    if controllers.exists() and "cpu" in controllers.read_text().split():
        return _writable(_V2)
    raise UsageError("a CPU quota needs the cpu controller of cgroup v1 or v2, which is not here")


def _writable(top: Path) -> Path:
    if not os.access(top / "cgroup.procs", os.W_OK):
        raise UsageError(f"a CPU quota needs {top} writable, which it is not")
    return top


def check() -> None:
    """Raises UsageError if this machine cannot give quotas."""
    _hierarchy()


def _group(state: State, node: str) -> Path:
    return _hierarchy() / f"siteproof-testbed.{state.settings.mark}.{node}"


def remember(state: State, node: str, cores: float | None) -> None:
    """Note the quota of a node, now and for its later boots; no process is moved."""
    note = state.node_file(node, "quota")
    if cores is not None:
        note.write_text(f"{cores}\n")
    elif note.exists():
        # The group stays until `down`: it may hold processes, and without a limit it is harmless.
        note.write_text("none\n")
    else:
        return
    group = _group(state, node)
    if group.parent == _V2:
        _enable_v2()
    group.mkdir(exist_ok=True)
    limit = None if cores is None else round(cores * _PERIOD)
    if group.parent == _V2:
        (group / "cpu.max").write_text(f"{'max' if limit is None else limit} {_PERIOD}")
    else:
        (group / "cpu.cfs_period_us").write_text(f"{_PERIOD}")
        (group / "cpu.cfs_quota_us").write_text(f"{-1 if limit is None else limit}")


def _enable_v2() -> None:
    """Let groups at the top have CPU limits; where systemd runs they have already."""
    control = _V2 / "cgroup.subtree_control"
    if "cpu" in control.read_text().split():
        return
    try:
        control.write_text("+cpu")
    except OSError as error:
        raise UsageError(f"{control}: {error.strerror}") from None


def join(state: State, node: str) -> None:
    """Put this process, and so its children, under the node's quota, if it has one."""
    if state.node_file(node, "quota").exists():
        (_group(state, node) / "cgroup.procs").write_text("0")


def move(state: State, node: str, first: int) -> None:
    """Put all processes of a running node under its quota, from within the room.

    first: the node's first process.
    """
    if not state.node_file(node, "quota").exists():
        return
    members = _group(state, node) / "cgroup.procs"
    while outside := _processes(first) - {int(pid) for pid in members.read_text().split()}:
        for pid in outside:
            try:
                members.write_text(str(pid))
            except ProcessLookupError:
                continue  # it has ended


def _processes(first: int) -> set[int]:
    """All processes in the pid namespace of first, which is no zombie of it."""
    wanted = _pid_namespace(Path(f"/proc/{first}"))
    return {
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and _pid_namespace(entry) == wanted
    }


def _pid_namespace(process: Path) -> Path | None:
    """What names its pid namespace; None once it has ended."""
    try:
        return (process / "ns" / "pid").readlink()
    except OSError:
        return None


def remove_all(state: State) -> None:
    """Delete the groups of all nodes, after their processes have ended."""
    for top in (*_V1, _V2):
        for group in top.glob(f"siteproof-testbed.{state.settings.mark}.*"):
            group.rmdir()
