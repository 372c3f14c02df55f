"""The faults that can be injected, how each is undone, and which node has which.

inject, mend and what else acts on a node are called within the room.
"""

import json
import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import disguises
import disks
import limits
import links
import node
import outages
import quota
import slurm
import values
from errors import UsageError
from state import State


@dataclass(frozen=True)
class Fault:
    """do(state, node, value) returns what undo(state, node, it) has to know.

    default: the value if none is given. check(value) raises UsageError for a wrong one.
    lasts: over a power loss; the others are gone with the node's namespaces.
    outage: it takes the node out of service, so that to mend it is also to wait for the node.
    of_guest: it is one of a virtual machine's processes, and not of what is in the machine.
    """

    name: str
    sentence: str
    do: Callable[[State, str, str], object]
    undo: Callable[[State, str, Any], None]  # what it has to know comes back as JSON
    default: str = ""
    check: Callable[[str], object] = lambda _value: None
    lasts: bool = False
    outage: bool = False
    of_guest: bool = False


def _nothing(_state: State, _name: str, _before: object) -> None:
    """For faults that power_on undoes for all nodes at once."""


def _own_quota(state: State, name: str, _before: object) -> None:
    quota.change(state, name, state.settings.cpu_quota)


def _slow_cpu(state: State, name: str, value: str) -> None:
    quota.change(state, name, quota.cores_or_share(value, quota.of_whole_node(state)))


def _cores(text: str) -> float:
    quota.check()
    return quota.cores_or_share(text, 1)


RESTART = "restarted-slurmctld"  # of the cluster, not of a node, and over when it is done
_TABLE = (
    Fault("slow-cpu", "the node may use only this number of cores, or this share of its own: "
          "of --cpu-quota, or of the machine's processors by the number of nodes",
          _slow_cpu, _own_quota, "25%", _cores, lasts=True, of_guest=True),
    Fault("capped-link", "the node's link is slower, both ways",
          links.cap, links.uncap, "1gbit", values.rate),
    Fault("lossy-link", "the node's link loses this share of all packets, each way, at random",
          links.lose, links.unlose, "1%", values.percent),
    Fault("wrong-mtu", "the node's end of its link has another MTU; bigger packets to it are lost",
          links.set_mtu, links.unset_mtu, "1500", values.mtu),
    Fault("wrong-sysctl", "a sysctl of net.ipv4.* or net.ipv6.* has another value",
          links.set_sysctl, links.restore_sysctls, "net.ipv4.tcp_window_scaling=0", values.sysctl),
    Fault("small-buffers", "the largest values of tcp_rmem and tcp_wmem have this size",
          links.shrink_buffers, links.restore_sysctls, "64KiB", values.size),
    Fault("full-disk", "/tmp has only this much free space",
          disks.fill, disks.empty, "0", values.size),
    Fault("slow-disk", "reads and writes of the disk of /var/tmp are limited to this rate each",
          disks.slow, disks.unslow, "10MB/s", values.disk_rate, lasts=True),
    Fault("little-memory", "the node's processes have this much memory; the kernel kills what "
          "needs more, and the limit shows below /sys/fs/cgroup",
          limits.limit_memory, limits.unlimit_memory, "512MiB", limits.check, lasts=True),
    Fault("hung", "no process of the node runs; its kernel answers ping",
          outages.hang, outages.wake, outage=True, of_guest=True),
    Fault("power-loss", "links and processes are gone at once; mend boots the node",
          lambda state, name, _value: _lose_power(state, name), _nothing, outage=True,
          of_guest=True),
    Fault("killed-slurmd", "kill -9 of slurmd; its jobs go on",
          lambda state, name, _value: slurm.kill_slurmd(state, name), _nothing, outage=True),
    Fault(RESTART, "slurmctld is stopped and started; no node, nothing to mend",
          lambda state, _name, _value: outages.restart_slurmctld(state), _nothing),
    Fault("wrong-memory", "/proc/meminfo, and so free, show another size; sysinfo(2) does not",
          disguises.memory, disguises.drop, "2GiB", values.size),
    Fault("other-kernel", "/proc/version and /proc/sys/kernel/osrelease show another release; "
          "uname does not",
          disguises.kernel, disguises.drop, f"{platform.release()}-other", values.release),
    Fault("other-package", "dpkg shows another version of a package",
          disguises.package, disguises.drop, "munge=0.0.1-other", values.pair),
    Fault("flapping", "slurmd is killed and started in turn, at this interval",
          outages.flap, outages.stop_flapping, "5s", values.seconds, outage=True),
)  # fmt: skip
FAULTS = {fault.name: fault for fault in _TABLE}


def _note(state: State, name: str, fault: str) -> Path:
    return state.node_file(name, f"fault.{fault}")


def _remember(state: State, name: str, fault: str, value: str, before: object = None) -> None:
    note = _note(state, name, fault)
    note.write_text(json.dumps({"value": value, "before": before}))


def value_of(state: State, name: str, fault: str) -> str | None:
    """The value of a fault that the node has; None if it does not have it."""
    try:
        return str(json.loads(_note(state, name, fault).read_text())["value"])
    except FileNotFoundError:
        return None


def present(state: State) -> Iterator[tuple[str, str, list[str]]]:
    """(fault, value, nodes) of all that was injected and not mended."""
    for fault in FAULTS:
        known = {name: value_of(state, name, fault) for name in state.names()}
        for value in sorted({value for value in known.values() if value is not None}):
            yield fault, value, [name for name, other in known.items() if other == value]


def inject(state: State, fault: Fault, nodes: Sequence[str], value: str) -> None:
    """Give the fault to all these nodes, or to none if one of them cannot have it."""
    for name in nodes:
        if node.pid(state, name) is None:
            raise UsageError(f"{name} is off")
        if name in state.settings.guests and not fault.of_guest:
            raise UsageError(f"{name} is a guest, which cannot have {fault.name}")
        if value_of(state, name, fault.name) is not None:
            raise UsageError(f"{name} has {fault.name} already; 'testbed mend {name}' undoes it")
    if fault.name == RESTART:
        outages.restart_slurmctld(state)
    for name in dict.fromkeys(nodes):
        before = fault.do(state, name, value)
        _remember(state, name, fault.name, value, before)


def mend(state: State, nodes: Sequence[str], fault: str | None = None) -> None:
    """Undo a fault, or all that the nodes have, and wait until they are in service again."""
    out = []
    for name in dict.fromkeys(nodes):
        mended = _mend_node(state, name, fault)
        if any(known.outage for known in mended):
            out.append(name)
    outages.power_on(state, out)


def _mend_node(state: State, name: str, fault: str | None) -> list[Fault]:
    """Undo a fault of a node, or all that it has; which ones."""
    had = [known for known in FAULTS.values() if _note(state, name, known.name).exists()]
    wanted = [known for known in had if fault in (None, known.name)]
    if fault and not wanted:
        raise UsageError(f"{name} does not have {fault}; 'testbed status' names its faults")
    for known in wanted:
        note = _note(state, name, known.name)
        known.undo(state, name, json.loads(note.read_text())["before"])
        note.unlink()
    return wanted


def _lose_power(state: State, name: str) -> None:
    """The other faults go with the node's namespaces, and what they left in the room."""
    for fault in FAULTS.values():
        if fault.lasts or value_of(state, name, fault.name) is None:
            continue
        if fault.name == "flapping":
            outages.stop_flapping(state, name)
        _note(state, name, fault.name).unlink()
    outages.power_off(state, [name])


# What is called for itself, and is known as a fault all the same.


def power_off(state: State, nodes: Sequence[str]) -> None:
    """Power loss; a node may be off already. Undone by power_on."""
    for name in nodes:
        _lose_power(state, name)
        _remember(state, name, "power-loss", "")


def power_on(state: State, nodes: Sequence[str]) -> None:
    """Undo power_off and kill_slurmd."""
    outages.power_on(state, nodes)
    for name in nodes:
        for fault in ("power-loss", "killed-slurmd"):
            _note(state, name, fault).unlink(missing_ok=True)


def kill_slurmd(state: State, nodes: Sequence[str]) -> None:
    """kill -9 of slurmd only. Undone by power_on."""
    for name in nodes:
        slurm.kill_slurmd(state, name)
        _remember(state, name, "killed-slurmd", "")


def set_quota(state: State, name: str, cores: float | None) -> None:
    """Limit a node to a number of cores, which may be a fraction. Undone by None."""
    quota.change(state, name, cores)
    if cores in (None, state.settings.cpu_quota):
        _note(state, name, "slow-cpu").unlink(missing_ok=True)
    else:
        _remember(state, name, "slow-cpu", str(cores))
