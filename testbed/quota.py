"""A share of the CPUs for a node."""

import os

import node
import values
from cgroups import CPU
from errors import UsageError
from state import State

_TURN = 2_000  # microseconds of processor time in a period; the kernel takes no less than 1,000
_LEAST = 0.01  # cores: the kernel takes no less than 1 ms in a period of at most 100 ms
_SHORTEST, _LONGEST = 10_000, 100_000  # microseconds of a period; the kernel's default is 100,000


def cores(text: str) -> float:
    """A number of cores. Raises UsageError for what is none."""
    try:
        number = float(text)
    except ValueError:
        number = 0
    if not _LEAST <= number <= 1024:
        raise UsageError(f"'{text}' is not a number of cores from {_LEAST} to 1024")
    return number


def cores_or_share(text: str, whole: float) -> float:
    """A number of cores, or a share such as 25% of what a whole node has."""
    return max(values.percent(text) * whole, _LEAST) if text.endswith("%") else cores(text)


def of_whole_node(state: State) -> float:
    """The cores of a node without a fault: its quota, or its part of the machine's processors."""
    return state.settings.cpu_quota or len(os.sched_getaffinity(0)) / state.settings.size


def check() -> None:
    """Raises UsageError if this machine cannot give quotas."""
    CPU.tree()


def remember(state: State, name: str, cores: float | None) -> None:
    """Set the quota of a node, now and for its later boots; no process is moved."""
    note = state.node_file(name, CPU.note)
    if cores is not None:
        note.write_text(f"{cores}\n")
    elif note.exists():
        note.unlink()  # the group stays until `down`, without a limit: it may hold processes
    else:
        return
    group = CPU.make_group(state, name)
    period = _period(cores)
    limit = None if cores is None else round(cores * period)
    if CPU.is_v2():
        (group / "cpu.max").write_text(f"{'max' if limit is None else limit} {period}")
    else:
        (group / "cpu.cfs_period_us").write_text(f"{period}")
        (group / "cpu.cfs_quota_us").write_text(f"{-1 if limit is None else limit}")


def _period(cores: float | None) -> int:
    """Microseconds. A figure that is measured over a few long periods jumps by one of them."""
    if cores is None:
        return _LONGEST
    return round(min(max(_TURN / cores, _SHORTEST), _LONGEST))


def change(state: State, name: str, cores: float | None) -> None:
    """Limit a node from now on to a number of cores, which may be a fraction; None: no limit."""
    remember(state, name, cores)
    if cores is None:
        CPU.leave(state, name)
    else:
        CPU.move(state, name, lambda: node.processes(state, name))
