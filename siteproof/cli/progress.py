"""How far long work is, on stderr, for a person only."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SLOW = 1.0  # seconds before a word is said …
OFTEN = 0.2  # … and between two


@contextmanager
def bar(word: str) -> Iterator[Callable[[int, int], None]]:
    """Gives what tells `word: 40 %`; nothing where no person looks, and no trace at the end."""
    start, last, shown = time.monotonic(), 0.0, False

    def told(done: int, of: int) -> None:
        nonlocal last, shown
        now = time.monotonic()
        if sys.stderr.isatty() and now - start > SLOW and now - last > OFTEN and of:
            last, shown = now, True
            print(f"\r{word}: {100 * done // of:3} % of {of} ", end="", file=sys.stderr, flush=True)

    try:
        yield told
    finally:
        if shown:
            print("\r" + " " * 40 + "\r", end="", file=sys.stderr, flush=True)
