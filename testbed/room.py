"""The room that all nodes stand in: the outermost namespaces, and the router.

Every process of a testbed descends from the room's first process within the room's pid
namespace, every mount and link lives in a namespace of one of them. So killing that one process
takes the whole testbed down, whatever state it is in, and touches nothing else.
"""

import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

import kernel
import network
import runserver
import suite
from errors import TestbedError, UsageError
from state import State

_KILL_PATIENCE = 120  # seconds; the kernel takes 320 nodes apart in one go


def create(state: State) -> None:
    """Start the room. Returns when it can be entered."""
    go_read, go_write = os.pipe()
    ready_read, ready_write = os.pipe()
    kernel.unshare(kernel.NEWPID)
    pid = os.fork()
    if pid == 0:
        os.close(go_write)
        os.close(ready_read)
        _live(state, go_read, ready_write)
    os.close(go_read)
    os.close(ready_write)
    # The room does nothing before `down` can find it; if this process dies first, so does the room.
    state.room_file.write_text(f"{pid} {_start_time(pid)}\n")
    os.write(go_write, b"g")
    os.close(go_write)
    answer = os.read(ready_read, 1)
    os.close(ready_read)
    if not answer:
        raise TestbedError(f"the room did not start; see {state.log}/room.log")


def _live(state: State, go: int, ready: int) -> None:
    """The life of the room's first process."""
    try:
        os.setsid()
        if not os.read(go, 1):
            os._exit(1)
        _redirect(state.log / "room.log")
        kernel.unshare(kernel.NEWNS | kernel.NEWNET | kernel.NEWUTS | kernel.NEWIPC)
        kernel.mount("", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
        kernel.mount("proc", "/proc", "proc", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)
        if state.settings.slurm_from:
            suite.lay(Path(state.settings.slurm_from))
        socket.sethostname("testbed-room")
        network.start_router()
        listener = runserver.listen(state)
        os.chdir("/")
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        # Ignored, the kernel buries all orphans of the room by itself.
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        os.write(ready, b"r")
        os.close(ready)
        runserver.serve(listener, state)
    except BaseException as error:  # a fork must never return into its parent's code
        print(f"room: {error!r}", file=sys.stderr, flush=True)
    os._exit(1)


def _redirect(log: Path) -> None:
    """Give up the terminal, or pipe, of the command that started the room."""
    null = os.open("/dev/null", os.O_RDWR)
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(null, 0)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.close(null)
    os.close(out)


def _start_time(pid: int) -> str:
    """Clock ticks from the machine's start to the process's; empty if it has ended.

    Together with the pid it names one process for ever.
    """
    try:
        # The name, in brackets, may hold blanks.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def process(state: State) -> int | None:
    """Pid of the room's first process; None if there is none."""
    try:
        pid, start = state.room_file.read_text().split()
    except (FileNotFoundError, ValueError):
        return None
    return int(pid) if _start_time(int(pid)) == start else None


def inside(state: State, function: Callable[[State], None]) -> None:
    """Call function(state) in the room, in a process of its own.

    Raises what function raised, as far as it is a TestbedError or a UsageError.
    """
    pid = process(state)
    if pid is None:
        raise TestbedError("the testbed is only half there; 'testbed down' clears it")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        os._exit(_enter_and_call(Path(f"/proc/{pid}"), function, state, write))
    os.close(write)
    try:
        with os.fdopen(read, encoding="utf-8") as pipe:
            message = pipe.read()
    except BaseException:
        os.kill(child, signal.SIGKILL)
        raise
    finally:
        # Never leave it unburied: the room could not end as long as it is there.
        _, status = os.waitpid(child, 0)
    if status:
        kind = UsageError if os.waitstatus_to_exitcode(status) == UsageError.code else TestbedError
        raise kind(message or "the room was taken away")


def _enter_and_call(
    target: Path, function: Callable[[State], None], state: State, write: int
) -> int:
    """Two forks deep: a pid namespace is entered by children only."""
    kernel.die_with_parent()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)  # what is to be done then is the parent's business
    kernel.enter(target)
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        return abs(os.waitstatus_to_exitcode(status))
    kernel.die_with_parent()
    try:
        function(state)
    except BaseException as error:  # a fork must never return into its parent's code
        words = str(error) if isinstance(error, TestbedError) else repr(error)
        os.write(write, words.encode())
        os._exit(getattr(error, "code", TestbedError.code))
    os._exit(0)


def kill(state: State) -> None:
    """Kill the room's first process, and so everything in the room; wait for the end."""
    pid = process(state)
    if pid is None:
        return
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + _KILL_PATIENCE
    while process(state) is not None:
        if time.monotonic() > deadline:
            raise TestbedError(f"process {pid} does not end although it was killed")
        time.sleep(0.02)
