"""Nodes and daemons that are dead, hang, or come and go."""

import itertools
import os
import signal
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import node
import slurm
import values
from accounting import wait_for
from state import State

_TICK = 0.1  # seconds between two looks of a flapping node at whether it shall stop


def power_off(state: State, nodes: Sequence[str]) -> None:
    """Links and processes are gone at once."""
    node.kill(state, nodes)
    for name in nodes:
        _hung(state, name).unlink(missing_ok=True)


def power_on(state: State, nodes: Sequence[str]) -> None:
    """Boot what is off, start slurmd where it is dead, wait until slurmctld has them back.

    If a node lost jobs, slurmctld first has to notice that: SlurmdTimeout and some more.
    """
    off = [name for name in nodes if node.pid(state, name) is None]
    on = [name for name in nodes if name not in [*off, *state.settings.guests]]
    dead = [name for name in on if not slurm.slurmd_pid(state, name)]
    slurm.wait_until_missed(state, off)
    start = time.time()
    node.boot(state, off)
    node.for_all(state, slurm.boot_slurmd, off)
    node.for_all(state, slurm.start_slurmd, dead)
    slurm.wait_until_in_service(state, off + dead, start)
    slurm.wait_until_in_service(state, nodes)


def restart_slurmctld(state: State) -> None:
    """Stop it, start it, and wait until it has found its nodes again; no job is lost."""
    answered = [name for name, (word, _) in slurm.states(state).items() if slurm.is_up(word)]
    slurm.stop_slurmctld(state)
    slurm.start_slurmctld(state)
    guests = state.settings.guests
    on = [name for name in answered if name in guests or slurm.slurmd_pid(state, name)]
    slurm.wait_until_in_service(state, on)


def hang(state: State, name: str, _value: str) -> None:
    """Stop all processes of a node; returns when all stand still.

    What is forked meanwhile is found in the next round. A process that has its signal may still
    be within a call of the kernel, and write or fork there; only one that waits for a disk, or for
    a stopped child of vfork(), is not waited for.
    """
    _hung(state, name).touch()

    def stands_still() -> bool:
        moving = {pid: _state_of(pid) for pid in node.processes(state, name)}
        moving = {pid: letter for pid, letter in moving.items() if letter not in "TtZX"}
        _send(moving, signal.SIGSTOP)
        return all(letter == "D" for letter in moving.values())

    wait_for(stands_still, f"{name} does not stand still")


def wake(state: State, name: str, _before: object) -> None:
    """Let them go on."""
    _hung(state, name).unlink()
    _send(node.processes(state, name), signal.SIGCONT)


def hangs(state: State, name: str) -> bool:
    """Whether a command on the node would hang too."""
    return _hung(state, name).exists()


def _hung(state: State, name: str) -> Path:
    return state.node_file(name, "hung")


def _state_of(pid: int) -> str:
    """Its state as in ps; X where it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return "X"
    return stat.rpartition(")")[2].split()[0]


def _send(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue  # it has ended


def flap(state: State, name: str, value: str) -> None:
    """Leave a process in the room that takes slurmd down and up for ever."""
    period = values.seconds(value)
    go_on = state.node_file(name, "flapping")
    go_on.touch()
    if os.fork():
        return
    try:
        os.setsid()
        null = os.open("/dev/null", os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        os.closerange(3, 256)
        node.attempt(state, lambda state, name: _flap(state, name, period), name)
    finally:
        os._exit(0)


def _flap(state: State, name: str, period: float) -> None:
    go_on = state.node_file(name, "flapping")
    go_on.write_text(f"{os.getpid()}\n")
    for act in itertools.cycle((slurm.kill_slurmd, slurm.start_slurmd)):
        act(state, name)
        end = time.monotonic() + period
        while time.monotonic() < end:
            if not go_on.exists():
                return
            time.sleep(_TICK)


def stop_flapping(state: State, name: str, _before: object = None) -> None:
    """Let that process end; it may have just begun to start slurmd."""
    go_on = state.node_file(name, "flapping")
    wait_for(lambda: go_on.read_text() != "", f"{name} did not begin to flap")
    pid = int(go_on.read_text())
    go_on.unlink()
    wait_for(lambda: not _is_there(pid), f"{name} does not stop flapping")


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
