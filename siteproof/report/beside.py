"""Work that a process of its own does meanwhile, on a machine with a processor to spare."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Generic, TypeVar

T = TypeVar("T")


def possible() -> bool:
    """Whether a second process would help: it shares what was read, so it has to be a fork."""
    return sys.platform == "linux" and len(os.sched_getaffinity(0)) > 1


class Beside(Generic[T]):
    """Something that is worked out beside. It may use nothing that cannot be forked."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        context = multiprocessing.get_context("fork")
        self._answer, question = context.Pipe(duplex=False)
        self._process = context.Process(target=_send, args=(work, question), daemon=True)
        self._process.start()
        question.close()

    def result(self) -> T:
        """What it gave. Where it failed it is done once more here, and its error is told here."""
        try:
            found: list[T] = self._answer.recv()
        except EOFError:
            found = []
        self._process.join()
        return found[0] if found else self._work()

    def stop(self) -> None:
        """End it, if it still works."""
        self._process.terminate()
        self._process.join()


def _send(work: Callable[[], T], answer: Connection) -> None:
    with suppress(Exception):
        answer.send([work()])
