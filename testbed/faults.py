"""The faults a testbed can be given. Each one stands beside what undoes it.

All are called within the room.
"""

import time
from collections.abc import Sequence

import node
import quota
import slurm
from state import State

_PATIENCE = 60  # seconds for a node to register
_PATIENCE_FOR_LOSS = 240  # seconds; thrice the longest SlurmdTimeout and some


def power_off(state: State, nodes: Sequence[str]) -> None:
    """Power loss: links and processes are gone at once. Undone by power_on."""
    node.kill(state, nodes)


def power_on(state: State, nodes: Sequence[str]) -> None:
    """Boot what is off, start slurmd where it is dead, wait until slurmctld has them back.

    If a node lost jobs, slurmctld first has to notice that: SlurmdTimeout and some more.
    """
    off = [name for name in nodes if node.pid(state, name) is None]
    dead = [name for name in nodes if name not in off and not slurm.slurmd_pid(state, name)]
    slurm.wait_until_missed(state, off, _PATIENCE_FOR_LOSS)
    start = time.time()
    node.boot(state, off)
    node.for_all(state, slurm.boot_slurmd, off)
    node.for_all(state, slurm.start_slurmd, dead)
    slurm.wait_until_in_service(state, off + dead, _PATIENCE, start)
    slurm.wait_until_in_service(state, nodes, _PATIENCE)


def kill_slurmd(state: State, nodes: Sequence[str]) -> None:
    """kill -9 of slurmd only. Undone by power_on."""
    for name in nodes:
        slurm.kill_slurmd(state, name)


def restart_slurmctld(state: State) -> None:
    """Stop it, start it, and wait until it has found its nodes again; no job is lost."""
    answered = [name for name, (word, _) in slurm.states(state).items() if slurm.is_up(word)]
    slurm.stop_slurmctld(state)
    slurm.start_slurmctld(state)
    on = [name for name in answered if slurm.slurmd_pid(state, name)]
    slurm.wait_until_in_service(state, on, _PATIENCE)


def set_quota(state: State, name: str, cores: float | None) -> None:
    """Limit a node to a number of cores, which may be a fraction. Undone by None."""
    quota.remember(state, name, cores)
    if (first := node.pid(state, name)) is not None:
        quota.move(state, name, first)
