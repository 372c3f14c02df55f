"""One node: its namespaces, its view of the file system, and its first process."""

import os
import select
import signal
import socket
import subprocess
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import cgroups
import kernel
import network
from errors import TestbedError
from state import ENVIRONMENT, State

PRIVATE = (Path("/tmp"), Path("/dev/shm"))
_AT_ONCE = 2 * (os.cpu_count() or 1)
_LARGEST_CACHE = 32 * 1024  # KiB of a node
_KILL_PATIENCE = 120  # seconds


def pid(state: State, node: str) -> int | None:
    """Pid, as seen in the room, of the node's first process; None if the node is off."""
    try:
        return int(state.node_file(node, "pid").read_text())
    except (FileNotFoundError, ValueError):
        return None


def processes(state: State, node: str) -> set[int]:
    """All processes of a node, as seen in the room; none if it is off."""
    wanted = _pid_namespace(Path(f"/proc/{pid(state, node)}"))
    if wanted is None:
        return set()
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


def command(state: State, node: str, words: Sequence[str]) -> list[str]:
    """The command line that runs words on a node, for use in the room."""
    return ["nsenter", "-t", str(pid(state, node)), "-m", "-u", "-i", "-n", "-p", "--", *words]


def run(
    state: State, node: str, words: Sequence[str], stdin: str = "", timeout: float = 240
) -> subprocess.CompletedProcess[str]:
    """Run words on a node from within the room, with root's rights, and collect the output."""
    return subprocess.run(
        command(state, node, words),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout,
        env=ENVIRONMENT | {"SLURM_CONF": str(state.slurm_conf)},
    )


def must_run(state: State, node: str, words: Sequence[str], stdin: str = "") -> str:
    """As run, but raises TestbedError if the command fails. Returns stdout."""
    done = run(state, node, words, stdin)
    if done.returncode:
        why = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        raise TestbedError(f"{node}: {Path(words[0]).name} failed: {why[-1]}")
    return done.stdout


def for_all(state: State, function: Callable[[State, str], None], nodes: Iterable[str]) -> None:
    """Call function(state, node) for each node, in processes of their own, a few at a time."""
    running: deque[int] = deque()
    failed = 0
    for node in nodes:
        if len(running) == _AT_ONCE:
            failed += _fails(running.popleft())
        child = os.fork()
        if child == 0:
            os._exit(attempt(state, function, node))
        running.append(child)
    failed += sum(map(_fails, running))
    if failed:
        last = (state.log / "nodes.log").read_text().splitlines()[-1]
        raise TestbedError(f"{failed} of the nodes failed; the last: {last}")


def attempt(state: State, function: Callable[[State, str], None], node: str) -> int:
    """Call function(state, node), for use right after a fork; an error goes to nodes.log."""
    try:
        function(state, node)
    except BaseException as error:  # a fork must never return into its parent's code
        with (state.log / "nodes.log").open("a") as log:
            log.write(f"{node}: {error}\n")
        return 1
    return 0


def _fails(child: int) -> bool:
    """Wait for this child and no other: the caller may have more."""
    return os.waitpid(child, 0)[1] != 0


def boot(state: State, nodes: Sequence[str]) -> None:
    """Start the namespaces of nodes, from within the room; no daemon yet."""
    for_all(state, _build, nodes)
    network.make_taps([node for node in nodes if node in state.settings.guests])
    network.connect_router(state, list(nodes))


def _build(state: State, node: str) -> None:
    """Build a node around this process; its first process stays when this one ends."""
    cgroups.join(state, node)
    kernel.unshare(kernel.NEWNS | kernel.NEWUTS | kernel.NEWIPC | kernel.NEWNET)
    socket.sethostname(node)
    if node not in state.settings.guests:
        network.connect_node(state, node)
    _mount(state, node)
    read, write = os.pipe()
    # Only now: the next child, whichever it is, is the first process of the node.
    kernel.unshare(kernel.NEWPID)
    first = os.fork()
    if first == 0:
        _become_first(state, node, write)
    os.close(write)
    if complaint := os.read(read, 4096):  # nothing comes, and the pipe closes, at exec
        raise TestbedError(complaint.decode())
    state.node_file(node, "pid").write_text(f"{first}\n")


def _mount(state: State, node: str) -> None:
    """What differs from the host's file system, but for /proc."""
    kernel.mount("", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
    # A sysfs of the node's own: /sys/class/net must show its links, not the host's.
    kernel.mount("sysfs", "/sys", "sysfs", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)
    shares = {path: os.open(path, os.O_PATH) for path in hidden(state)}
    for path in PRIVATE:
        kernel.mount("tmpfs", path, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=1777")
    for path, fd in shares.items():
        path.mkdir(parents=True, exist_ok=True)
        kernel.bind(f"/proc/self/fd/{fd}", path)
        os.close(fd)
    kernel.mount("tmpfs", state.path / "munge", "tmpfs", kernel.MS_NOSUID, "mode=0755,size=64k")
    hostname = state.node_file(node, "hostname")
    hostname.write_text(node + "\n")
    kernel.bind(hostname, "/etc/hostname")
    kernel.bind(state.path / "hosts", "/etc/hosts")
    _share_caches(state, node)


def _share_caches(state: State, node: str) -> None:
    """Smaller caches than those that all nodes have together.

    Benchmarks take several times as much memory, and all nodes at once more than the machine has.
    """
    share = state.node_file(node, "cache")
    share.write_text(f"{_LARGEST_CACHE}K\n")
    for size in Path("/sys/devices/system/cpu").glob("cpu[0-9]*/cache/index*/size"):
        if int(size.read_text().strip().removesuffix("K")) > _LARGEST_CACHE:
            kernel.bind(share, size)


def hidden(state: State) -> list[Path]:
    """Folders that the private /tmp and /dev/shm would hide, outer ones first."""
    wanted = {Path(share) for share in state.settings.shares}
    return sorted(path for path in wanted if any(top in path.parents for top in PRIVATE))


def _become_first(state: State, node: str, write: int) -> None:
    """The first process of a node: sleeps for ever; when it is killed, the node is off."""
    try:
        kernel.mount("proc", "/proc", "proc", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)
        os.setsid()
        os.chdir("/")
        null = os.open("/dev/null", os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        os.set_inheritable(write, False)
        os.closerange(3, write)
        os.closerange(write + 1, 256)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        # Ignored, the kernel buries the node's orphans by itself; this survives exec.
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        environment = ENVIRONMENT | {"SITEPROOF_TESTBED": state.settings.mark}
        os.execve("/usr/bin/sleep", [f"testbed-{node}", "infinity"], environment)
    except BaseException as error:  # a fork must never return into its parent's code
        os.write(write, repr(error).encode())
    os._exit(1)


def kill(state: State, nodes: Sequence[str]) -> None:
    """Take the power from nodes, from within the room: no goodbye on the network."""
    network.disconnect(list(nodes))
    for node in nodes:
        first = pid(state, node)
        if first is None:
            continue
        watch = os.pidfd_open(first)
        os.kill(first, signal.SIGKILL)
        ended, _, _ = select.select([watch], [], [], _KILL_PATIENCE)
        os.close(watch)
        if not ended:
            raise TestbedError(f"{node} does not end although it was killed")
        state.node_file(node, "pid").unlink()
