"""A limit on a node's memory, as a container has it, or a job where Slurm constrains memory."""

import node
import values
from cgroups import MEMORY
from state import State

_SEEN = "/sys/fs/cgroup"  # where a node has nothing otherwise


def check(text: str) -> int:
    """Bytes. Raises UsageError for what is no size, and where this machine can give no limit."""
    MEMORY.tree()
    return values.size(text)


def limit_memory(state: State, name: str, value: str) -> None:
    """Put all processes of the node under the limit, and let them see the files of their group."""
    group = MEMORY.make_group(state, name)
    state.node_file(name, MEMORY.note).touch()
    (group / _file()).write_text(str(values.size(value)))
    MEMORY.move(state, name, lambda: node.processes(state, name))
    kinds = [("cgroup2", "rw", _SEEN)]
    if not MEMORY.is_v2():
        kinds = [("tmpfs", "mode=755", _SEEN), ("cgroup", "memory", f"{_SEEN}/memory")]
    for kind, options, where in kinds:
        node.must_run(state, name, ["mkdir", "-p", where])
        node.must_run(state, name, ["mount", "-t", kind, "-o", options, "none", where])


def unlimit_memory(state: State, name: str, _before: object) -> None:
    """No limit; the group stays until `down`, and is harmless."""
    group = MEMORY.make_group(state, name)
    (group / _file()).write_text("max" if MEMORY.is_v2() else "-1")
    node.run(state, name, ["umount", "--recursive", _SEEN])  # gone if the node lost its power


def _file() -> str:
    return "memory.max" if MEMORY.is_v2() else "memory.limit_in_bytes"
