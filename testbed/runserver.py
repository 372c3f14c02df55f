"""Runs commands inside the testbed for whoever asks, root or not, always as the one who asks.

An ordinary user may not enter a namespace, so a server in the room does it. It listens on a
socket that all may connect to. For each caller it forks a worker, which
  - asks the kernel, not the caller, who the caller is (SO_PEERCRED, SO_PEERGROUPS),
  - takes three file descriptors (SCM_RIGHTS) and a request: node, cwd, umask, argv, environment,
  - enters the node's namespaces, becomes the caller for good, and only then forks the command.
The request has no user in it: nothing that a caller can send changes whom it runs as.
Afterwards the caller sends signals, a byte each, and gets the exit code as the last answer.
"""

import contextlib
import json
import os
import select
import signal
import socket
import struct
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NoReturn

import cgroups
import kernel
import node
import outages
from errors import TestbedError, UsageError
from state import LOGIN, State

_SO_PEERGROUPS = 59  # Linux; not in Python's socket module
_MAX_GROUPS = 256  # Python asks for 1024 bytes at most; a user in more groups gets an error
_MAX_REQUEST = 8 << 20  # bytes; the kernel allows argv and environment 6 MiB together
_PATIENCE = 60  # seconds for a caller to send its request
_GRACE = 5  # seconds between SIGTERM and SIGKILL for a command whose caller is gone
_PASSED_ON = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP)
_NOT_FOUND, _NOT_EXECUTABLE, _BY_SIGNAL = 127, 126, 128  # as in a shell
_STANDARD_PATH = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin")


@dataclass(frozen=True)
class Request:
    """What to run, and where."""

    node: str
    cwd: str
    umask: int
    argv: list[str]
    environment: dict[str, str]

    def __post_init__(self) -> None:
        texts = [self.node, self.cwd, *self.argv, *self.environment, *self.environment.values()]
        if not self.argv or not all(isinstance(text, str) and "\0" not in text for text in texts):
            raise UsageError("not a request")


@dataclass(frozen=True)
class Peer:
    """The caller, as the kernel knows it."""

    uid: int
    gid: int
    groups: tuple[int, ...]

    @classmethod
    def of(cls, connection: socket.socket) -> "Peer":
        """The process that connected, with the rights it had then."""
        raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        _, uid, gid = struct.unpack("iII", raw)
        raw = connection.getsockopt(socket.SOL_SOCKET, _SO_PEERGROUPS, _MAX_GROUPS * 4)
        return cls(uid, gid, struct.unpack(f"{len(raw) // 4}I", raw))

    def become(self) -> None:
        """Take on the caller's rights, with no way back."""
        os.setgroups(self.groups)
        os.setresgid(self.gid, self.gid, self.gid)
        os.setresuid(self.uid, self.uid, self.uid)


def listen(state: State) -> socket.socket:
    """The server's socket, open to every user."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(state.socket))
    state.socket.chmod(0o666)
    listener.listen(128)
    return listener


def serve(listener: socket.socket, state: State) -> NoReturn:
    """Answer for ever."""
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            os._exit(_work(connection, state))
        connection.close()


def _work(connection: socket.socket, state: State) -> int:
    """One caller, from request to answer."""
    answer: dict[str, object] = {}
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        connection.settimeout(_PATIENCE)
        peer = Peer.of(connection)
        request, fds = _receive(connection)
        first = _first_process(state, request.node)
        cgroups.join(state, request.node)
        slurm_conf = str(state.slurm_conf)
        kernel.enter(Path(f"/proc/{first}"))
        peer.become()
        child = os.fork()
        if child == 0:
            connection.close()
            _execute(request, fds, slurm_conf)
        for fd in fds:
            os.close(fd)
        answer["exit"] = _supervise(connection, child)
    except TestbedError as error:
        answer["error"] = str(error)
    except BaseException as error:  # a fork must never return into its parent's code
        answer["error"] = f"the run server failed: {error!r}"
        print(answer["error"], file=sys.stderr, flush=True)
    try:
        connection.sendall(json.dumps(answer).encode())
    except OSError:  # the caller has gone
        return 1
    return 0


def _receive(connection: socket.socket) -> tuple[Request, list[int]]:
    head, fds, _, _ = socket.recv_fds(connection, 4, 3)
    size = int.from_bytes(head, "big")
    if len(fds) != 3 or len(head) != 4 or size > _MAX_REQUEST:
        raise UsageError("not a request")
    body = bytearray()
    while len(body) < size:
        part = connection.recv(size - len(body))
        if not part:
            raise UsageError("not a whole request")
        body += part
    try:
        return Request(**json.loads(body)), fds
    except (TypeError, ValueError, AttributeError):
        raise UsageError("not a request") from None


def _first_process(state: State, name: str) -> int:
    if name != LOGIN:
        state.check_nodes([name])
    first = node.pid(state, name)
    if first is None:
        raise TestbedError(f"{name} is off")
    if name in state.settings.guests:
        raise UsageError(f"{name} is a guest: 'testbed run srun -w {name} CMD' reaches it")
    if outages.hangs(state, name):
        raise TestbedError(f"{name} hangs")
    return first


def _execute(request: Request, fds: list[int], slurm_conf: str) -> NoReturn:
    """In the child, with the caller's rights: become the command."""
    complaint, code = f"{request.cwd} on {request.node} (see 'up --share')", _NOT_EXECUTABLE
    try:
        os.setsid()
        for target, fd in enumerate(fds):
            # Received numbers are above 2, for the room keeps 0, 1 and 2 open.
            os.dup2(fd, target)
            os.close(fd)
        os.umask(request.umask & 0o777)
        os.chdir(request.cwd)
        complaint = request.argv[0]
        for number in (*_PASSED_ON, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        environment = request.environment | {"SLURM_CONF": slurm_conf}
        os.execvpe(request.argv[0], request.argv, environment)
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            code = _NOT_FOUND
        os.write(2, f"testbed: {complaint}: {error.strerror}\n".encode())
    finally:
        os._exit(code)


def _supervise(connection: socket.socket, child: int) -> int:
    """Pass signals on until the command ends; end it if the caller goes. Returns its exit code.

    This process has the caller's rights only, so it can signal no more than the caller could.
    """
    ended = os.pidfd_open(child)
    sources: list[socket.socket | int] = [connection, ended]
    patience = None
    while True:
        ready, _, _ = select.select(sources, [], [], patience)
        if ended in ready:
            break
        if not ready:
            _signal_group(child, signal.SIGKILL)
            break
        wanted = connection.recv(64)
        for number in wanted:
            if number in _PASSED_ON:
                _signal_group(child, number)
        if not wanted:
            _signal_group(child, signal.SIGTERM)
            sources.remove(connection)
            patience = _GRACE
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else _BY_SIGNAL - code


def _signal_group(child: int, number: int) -> None:
    """The child may have ended, or not yet have made its group."""
    for send in (os.killpg, os.kill):
        try:
            send(child, number)
            break
        except (ProcessLookupError, PermissionError):
            continue


def call(
    state: State,
    name: str,
    argv: list[str],
    *,
    cwd: str = "/",
    environment: Mapping[str, str] = os.environ,
    stdout: int = 1,
) -> int:
    """Run argv on a node as this process's user. Returns the command's exit code.

    Raises TestbedError if it could not be started.
    """
    request = Request(name, cwd, os.umask(0o022), argv, _filtered(environment))
    body = json.dumps(asdict(request)).encode()
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(str(state.socket))
    except OSError:
        raise TestbedError("the testbed is only half there; 'testbed down' clears it") from None

    def pass_on(number: int, _frame: object) -> None:
        connection.send(bytes([number]))

    for number in _PASSED_ON:
        signal.signal(number, pass_on)
    socket.send_fds(connection, [len(body).to_bytes(4, "big")], [0, stdout, 2])
    connection.sendall(body)
    return _answer(connection)


def _answer(connection: socket.socket) -> int:
    raw = bytearray()
    # A reset is an end too: the command ended before the worker had read our last signal.
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(4096):
            raw += part
    if not raw:
        raise TestbedError("the testbed was taken away")
    answer = json.loads(raw)
    if "error" in answer:
        raise TestbedError(answer["error"])
    return int(answer["exit"])


def _filtered(environment: Mapping[str, str]) -> dict[str, str]:
    """The caller's environment without what belongs to another cluster or host."""
    kept = {
        key: value
        for key, value in environment.items()
        if not key.startswith(("SLURM_", "SBATCH_", "SITEPROOF_TESTBED")) and key != "HOSTNAME"
    }
    path = [entry for entry in kept.get("PATH", "").split(":") if entry]
    path += [entry for entry in _STANDARD_PATH if entry not in path]
    return kept | {"PATH": ":".join(path)}
