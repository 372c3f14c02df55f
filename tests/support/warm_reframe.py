"""ReFrame, loaded once: each run is a process of its own that a loaded one has forked.

To load ReFrame and Siteproof's side of it takes a second of a processor, and hundreds of tests
would do it. What a run then reads (settings, sites, checks, variables) it reads as always.

    python tests/support/warm_reframe.py SOCKET PROGRAM     what `Warm` starts
"""

from __future__ import annotations

import array
import atexit
import gc
import io
import json
import os
import selectors
import signal
import socket
import struct
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

_LENGTH = struct.Struct("!I")
_ANSWER = struct.Struct("!i")
# An interpreter reads these when it starts, so a run with others needs a start of its own.
AT_START = ("LANG", "LC_", "PYTHON", "LD_")


class Warm:
    """A loaded ReFrame, which ends with the process that has started it."""

    def __init__(self, program: Path, clone: Path) -> None:
        self.owner, self.program = os.getpid(), program
        self.socket, its = socket.socketpair()
        own = {key: value for key, value in os.environ.items() if key.startswith("COVERAGE_")}
        own |= {"LANG": "C.UTF-8", "PYTHONPATH": str(clone), "PYTHONDONTWRITEBYTECODE": "1"}
        words = [sys.executable, __file__, str(its.fileno()), str(program)]
        env = {"PATH": os.environ["PATH"], **own}
        self.process = subprocess.Popen(
            words, env=env, pass_fds=[its.fileno()], stdin=subprocess.DEVNULL
        )
        its.close()
        atexit.register(self.end)

    def end(self) -> None:
        """End it, unless it is that of a process from which this one was forked."""
        self.socket.close()
        if self.owner == os.getpid():
            self.process.wait()

    def run(
        self, words: list[str], env: dict[str, str], cwd: Path, timeout: float
    ) -> tuple[int, str, str]:
        """Run to the end. Returns exit code, stdout and stderr; raises TimeoutExpired."""
        reads, writes = zip(os.pipe(), os.pipe(), strict=True)
        old = os.umask(0o022)
        os.umask(old)
        told = {"words": words, "env": env, "cwd": str(cwd), "umask": old}
        request = json.dumps(told).encode()
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", writes))]
        self.socket.sendmsg([_LENGTH.pack(len(request))], ancillary)
        self.socket.sendall(request)
        for fd in writes:
            os.close(fd)
        pid = self._number()
        try:
            texts = _read(reads, time.monotonic() + timeout)
        except TimeoutError:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            self._number()
            raise subprocess.TimeoutExpired(words, timeout) from None
        finally:
            for fd in reads:
                os.close(fd)
        code = self._number()
        return code, *texts

    def _number(self) -> int:
        return _ANSWER.unpack(_exactly(self.socket, _ANSWER.size))[0]


def _read(fds: tuple[int, ...], end: float) -> list[str]:
    """All that comes through pipes until nobody holds their other ends, as text."""
    held: dict[int, list[bytes]] = {fd: [] for fd in fds}
    with selectors.DefaultSelector() as ready:
        for fd in fds:
            ready.register(fd, selectors.EVENT_READ)
        while ready.get_map():
            found = ready.select(end - time.monotonic())
            if not found and time.monotonic() >= end:
                raise TimeoutError
            for key, _ in found:
                part = os.read(key.fd, 65536)
                held[key.fd].append(part)
                if not part:
                    ready.unregister(key.fd)
    raws = (io.BytesIO(b"".join(held[fd])) for fd in fds)
    return [io.TextIOWrapper(raw, "utf-8", errors="replace").read() for raw in raws]


def _exactly(connection: socket.socket, size: int) -> bytes:
    """So many bytes; EOFError if the other end is gone."""
    found = b""
    while len(found) < size:
        part = connection.recv(size - len(found))
        if not part:
            raise EOFError("the other end has gone")
        found += part
    return found


def serve(connection: socket.socket) -> list[str]:
    """Fork a process for each request; returns in that process, with its words."""
    while True:
        size, fds, _, _ = socket.recv_fds(connection, _LENGTH.size, 2)
        if not size:
            os._exit(0)  # who has asked is gone
        told = json.loads(_exactly(connection, *_LENGTH.unpack(size)))
        if not (pid := os.fork()):
            connection.close()
            for to, fd in enumerate(fds, 1):
                os.dup2(fd, to)
                os.close(fd)
            os.umask(told["umask"])
            os.chdir(told["cwd"])
            os.environ.clear()
            os.environ.update(told["env"])
            return told["words"]
        for fd in fds:
            os.close(fd)
        connection.sendall(_ANSWER.pack(pid))
        _, status = os.waitpid(pid, 0)
        connection.sendall(_ANSWER.pack(os.waitstatus_to_exitcode(status)))


def load() -> None:
    """Import what every run imports; the checks, sites and settings are the run's own."""
    import pkgutil
    from importlib import import_module

    import reframe.core.launchers
    import reframe.core.schedulers
    import reframe.frontend.cli  # noqa: F401

    import siteproof.checks.job
    import siteproof.checks.settings  # noqa: F401
    import siteproof.checks.sweep
    import siteproof.collect.derive
    import siteproof.parsers

    # Not all of siteproof.checks: some classes are made for the site of the run.
    for package in (
        reframe.core.launchers,
        reframe.core.schedulers,
        siteproof.collect.derive,
        siteproof.parsers,
    ):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            import_module(module.name)
    # What is loaded stays as it is, in memory that all forked ones share.
    gc.collect()
    gc.freeze()


def main() -> int:
    """Load, fork, and be ReFrame in what was forked."""
    _, number, program = sys.argv
    sys.path[0] = str(Path(program).parent)
    load()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = [program, *serve(socket.socket(fileno=int(number)))]
    from reframe.frontend.cli import main

    return main()


if __name__ == "__main__":
    sys.exit(main())
