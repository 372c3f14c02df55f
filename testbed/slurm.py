"""Munge, slurmctld and slurmd: their settings, their start, and their health.

The bed runs on the distribution's Python without packages, so siteproof/slurm cannot be used here.
"""

import os
import secrets
import signal
import time
from collections.abc import Sequence

import cgroups
import guest
import node
from accounting import PATIENCE, wait_for
from errors import TestbedError
from state import ENVIRONMENT, LOGIN, State

_MOST_MEMORY, _LEAST_MEMORY = 4096, 64  # MiB of a node
_SMALL = 16  # nodes; more than these need a patient slurmctld on one machine


def write_configuration(state: State) -> None:
    """slurm.conf, cgroup.conf and mpi.conf."""
    size = state.settings.size
    # UnkillableStepTimeout: with Slurm's default of 60 s it drains a healthy batch host of a busy
    # machine for "Kill task failed".
    # Debian 12's Slurm looks for a cgroup tree even where nothing uses it, unless told which.
    shape = state.settings.slurm or _shape(state)
    (state.etc / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
    # By default a fence without data takes Slurm 22.05.8's tree, which does not wait for all nodes:
    # OpenMPI 4.1.4 then crashes in MPI_Init by messages of ranks that were faster.
    (state.etc / "mpi.conf").write_text("PMIxCollFence=ring\n")
    state.slurm_conf.write_text(f"""\
SlurmctldHost={LOGIN}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={state.path}/munge/socket
CredType=cred/munge
StateSaveLocation={state.data}/slurmctld
SlurmdSpoolDir={state.data}/spool/%n
SlurmctldPidFile={state.data}/slurmctld.pid
SlurmdPidFile={state.data}/spool/%n.pid
SlurmctldLogFile={state.log}/slurmctld.log
SlurmdLogFile={state.log}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=5
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=5,bf_interval=5
SlurmdParameters=config_overrides
ReturnToService=2
SlurmctldTimeout=30
SlurmdTimeout={60 if size > _SMALL or state.settings.guests else 15}
MessageTimeout=30
KillWait=5
UnkillableStepTimeout=150
MinJobAge=300
MailProg=/bin/true
MaxJobCount=20000
MaxArraySize=2001
TreeWidth=64
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost={LOGIN}
AccountingStoragePass={state.path}/munge/socket
AccountingStoreFlags=job_comment
{shape}""")


def _shape(state: State) -> str:
    """Cluster, nodes and partitions: one of all nodes, and with guests one of each kind."""
    cores, size = len(os.sched_getaffinity(0)), state.settings.size
    kinds: dict[str, list[str]] = {}
    for name in state.names():
        kinds.setdefault(state.settings.guests.get(name, "bare"), []).append(name)
    lines = [f"ClusterName={'testbed' if state.settings.wan is None else 'testbed-wan'}"]
    if not state.settings.guests:
        kinds = {"bare": [f"node[001-{size:03}]"]}
    for kind, names in kinds.items():
        cpus, memory = (cores, memory_of_node(size)) if kind == "bare" else (1, guest.MEMORY)
        lines.append(
            f"NodeName={','.join(names)} CPUs={cpus} Sockets=1 CoresPerSocket={cpus} "
            f"ThreadsPerCore=1 RealMemory={memory} State=UNKNOWN"
        )
    lines.append("PartitionName=compute Nodes=ALL Default=YES MaxTime=INFINITE State=UP")
    if state.settings.guests:
        for kind, names in kinds.items():
            lines.append(f"PartitionName={kind} Nodes={','.join(names)} State=UP")
    return "".join(f"{line}\n" for line in lines)


def memory_of_node(size: int) -> int:
    """MiB that Slurm says of each of so many nodes: half of the machine's memory is for all."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    return max(_LEAST_MEMORY, min(_MOST_MEMORY, machine // 2 // size))


def make_key(state: State) -> None:
    """The key that every munged shares."""
    key = state.secrets / "munge.key"
    key.touch(mode=0o600)
    key.write_bytes(secrets.token_bytes(128))


def start_munge(state: State, name: str) -> None:
    """A node's own munged, so that a credential says on which node it was made."""
    node.must_run(state, name, _munged(state, name))


def _munged(state: State, name: str) -> list[str]:
    return [
        "munged", f"--socket={state.path}/munge/socket", f"--key-file={state.secrets}/munge.key",
        f"--log-file={state.log}/munged.{name}.log",
        f"--pid-file={state.secrets}/munged.{name}.pid",
        f"--seed-file={state.secrets}/munged.{name}.seed", "--num-threads=2", "--force",
    ]  # fmt: skip


def start_slurmctld(state: State) -> None:
    """Start it, and wait until it answers."""
    node.must_run(state, LOGIN, ["slurmctld"])
    wait_for(
        lambda: node.run(state, LOGIN, ["scontrol", "ping"]).returncode == 0,
        f"slurmctld does not answer; see {state.log}/slurmctld.log",
    )


def stop_slurmctld(state: State) -> None:
    """Stop it in good order, and wait for its end. It may be dead already."""
    pid_file = state.data / "slurmctld.pid"
    if not pid_file.exists():
        return
    pid = pid_file.read_text().strip()
    node.run(state, LOGIN, ["kill", "-TERM", pid])
    wait_for(
        lambda: node.run(state, LOGIN, ["kill", "-0", pid]).returncode != 0,
        f"slurmctld does not end; see {state.log}/slurmctld.log",
    )


def start_slurmd(state: State, name: str) -> None:
    """Start a node's slurmd, which finds the jobs that are still there."""
    _start_slurmd(state, name)


def boot_slurmd(state: State, name: str) -> None:
    """Start a node's munged and slurmd, and report to slurmctld that the node has booted."""
    if name in state.settings.guests:
        guest.boot(state, name, _start_in_guest(state, name))
        return
    start_munge(state, name)
    _start_slurmd(state, name, "-b")


def _start_slurmd(state: State, name: str, *options: str) -> None:
    cgroups.join(state, name)
    node.must_run(state, name, ["slurmd", *options, "-N", name])


def _start_in_guest(state: State, name: str) -> str:
    """What starts both in a guest, as a script of sh. Its spool is empty at each boot."""
    return f"""\
export PATH={ENVIRONMENT["PATH"]} SLURM_CONF={state.slurm_conf}
mkdir {state.data}/spool/{name}
{" ".join(_munged(state, name))} && slurmd -b -N {name}
"""


def slurmd_pid(state: State, name: str) -> str | None:
    """Pid, as seen on the node, of its running slurmd."""
    try:
        pid = (state.data / "spool" / f"{name}.pid").read_text().strip()
    except FileNotFoundError:
        return None
    # The file outlives its daemon, and after a boot the number may be another process's.
    done = node.run(state, name, ["cat", f"/proc/{pid}/comm"])
    return pid if done.stdout.strip() == "slurmd" else None


def kill_slurmd(state: State, name: str) -> None:
    """kill -9 of a node's slurmd; its jobs go on."""
    if pid := slurmd_pid(state, name):
        node.must_run(state, name, ["kill", f"-{signal.SIGKILL.value}", pid])


def states(state: State) -> dict[str, tuple[str, int]]:
    """Of each node: its state as slurmctld sees it, and when its slurmd started.

    The time is in seconds since 1970; 0 as long as slurmctld has not heard of it.
    """
    words = ["env", "SLURM_TIME_FORMAT=%s", "timeout", "30", "scontrol", "-o", "show", "node"]
    known = {}
    for line in node.run(state, LOGIN, words).stdout.splitlines():
        facts = dict(word.split("=", 1) for word in line.split() if "=" in word)
        if "NodeName" in facts:
            start = facts.get("SlurmdStartTime", "")
            known[facts["NodeName"]] = (facts["State"], int(start) if start.isdecimal() else 0)
    return known


def wait_until_in_service(state: State, nodes: Sequence[str], since: float = 0) -> None:
    """Wait until slurmctld has heard of all nodes. A drained node counts: it answers.

    since: a slurmd that started before this time does not count.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        now = states(state)
        missing = [name for name in nodes if not _serves(*now.get(name, ("DOWN", 0)), since)]
        if not missing:
            return
        if time.monotonic() > deadline:
            raise TestbedError(
                f"{len(missing)} nodes are not in service after {PATIENCE} s; "
                f"see {state.log}/slurmd.{missing[0]}.log"
            )
        time.sleep(0.2)


def wait_until_missed(state: State, nodes: Sequence[str]) -> None:
    """Wait until slurmctld has given up on nodes that are off, or they had no job to lose.

    Slurm takes a node that is back at once for one that is still starting its job, and then the
    job stays `running` for minutes. No real machine boots that fast.
    """

    def missed() -> bool:
        now = states(state)
        words = [now.get(name, ("DOWN", 0))[0] for name in nodes]
        return all(w.startswith("DOWN") or (w.startswith("IDLE") and "+" not in w) for w in words)

    wait_for(missed, "slurmctld does not notice that the nodes are off")


def _serves(word: str, start: int, since: float) -> bool:
    return is_up(word) and start > 0 and start >= int(since)


def is_up(word: str) -> bool:
    """Whether a state, as scontrol writes it, is one of a node that answers."""
    return not word.startswith(("DOWN", "UNKNOWN")) and "*" not in word
