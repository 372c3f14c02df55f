"""A Ctrl-C or SIGTERM ends the run, even where ReFrame drops it.

ReFrame 4.10 takes a signal that comes while it finishes a test for a fault of that test, goes on
with the others, and after a SIGTERM listens to no further signal.
"""

from __future__ import annotations

import signal
from types import FrameType

from reframe.core.exceptions import ForceExitError
from reframe.frontend import executors

_received = 0


def remember() -> None:
    """From now on, note each signal before ReFrame gets it."""
    force_exit = executors._force_exit

    def note(number: int, frame: FrameType | None) -> None:
        global _received
        _received = number
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        force_exit(number, frame)

    executors._force_exit = note
    signal.signal(signal.SIGINT, note)


def repeat() -> None:
    """Raise again what came and was dropped; called whenever ReFrame looks after a job."""
    if _received == signal.SIGINT:
        raise KeyboardInterrupt
    if _received:
        raise ForceExitError(f"received signal {_received}")
