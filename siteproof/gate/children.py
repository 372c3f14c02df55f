"""Commands as child processes that end when this process is to end, however that comes."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from os import killpg
from pathlib import Path

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # HUP: the terminal was lost
LOOK_EVERY = 0.2  # seconds between two looks at a child
GRACE = 60  # seconds that a child has to end: ReFrame cancels its jobs, and waits for them
_PR_SET_PDEATHSIG = 1  # of prctl(2)
_libc = ctypes.CDLL(None)


class Interrupted(Exception):
    """A signal came; the child has ended. The text is the signal's name."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)


@contextmanager
def noted() -> Iterator[list[int]]:
    """The signals that came since it began; those that are ignored, as by nohup, stay ignored."""
    received: list[int] = []

    def note(number: int, _frame: object) -> None:
        received.append(number)

    heard = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, note) for number in heard}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run(
    argv: Sequence[str],
    received: Sequence[int],
    *,
    output: int | None = None,
    errors: int | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    look: Callable[[], None] = lambda: None,
) -> int:
    """Run a command in a process group of its own. Returns its exit code.

    received: of noted(). output, errors: descriptors to which it prints; None: where this process
    does. look: called again and again while it runs. Raises Interrupted when a signal has come and
    it has ended, and OSError where it cannot be started.
    """
    if received:
        raise Interrupted(received[0])
    sys.stdout.flush()
    process = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=errors,
        cwd=cwd,
        env=env,
        process_group=0,
        preexec_fn=_end_with_parent,
    )
    try:
        while not received:
            with suppress(subprocess.TimeoutExpired):
                return process.wait(LOOK_EVERY)
            look()
    finally:  # also where `look` could not print, as its terminal is gone
        _end(process)
    raise Interrupted(received[0])


def _end_with_parent() -> None:
    """In the child: SIGTERM when this process was killed, and could not end it."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a child that still runs: by SIGTERM; after GRACE seconds its whole group is killed."""
    if process.poll() is not None:
        return
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(GRACE)
    with suppress(ProcessLookupError):
        killpg(process.pid, signal.SIGKILL)
    process.wait()
