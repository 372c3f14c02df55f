"""What a run did not measure, and what would bring it: the last lines of a run."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from shutil import get_terminal_size
from typing import Any

from reframe.core.exceptions import SkipTestError
from reframe.core.logging import getlogger

from siteproof.errors import harmless
from siteproof.units import count

WIDEST = 110  # columns; a wider line is hard to read
INDENT = "  "


class Lacking(SkipTestError):
    """Skips a test for something that is missing here. remedy: what would bring it, or empty."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what}: {remedy} brings it" if remedy else what)
        self.remedy = remedy


def report(tasks: Sequence[Any], total: int) -> None:
    """Print what was skipped of a run of `total` test cases; nothing if nothing was."""
    skipped = [(task.check.unique_name.split()[0], task.exc_info[1]) for task in tasks]
    if not skipped:
        return
    width = min(get_terminal_size().columns, WIDEST)
    getlogger().info(f"not measured: {len(skipped)} of {count(total, 'test case')}")
    for line in lines(skipped, width):
        getlogger().info(line)


def lines(skipped: Iterable[tuple[str, BaseException | None]], width: int) -> list[str]:
    """One line a remedy or reason, with the checks; those that a command brings come first.

    A longer line is broken between words.
    """
    brought: dict[str, list[str]] = {}
    others: dict[str, list[str]] = {}
    for check, error in skipped:
        remedy = getattr(error, "remedy", "")
        group = brought if remedy else others
        key = f"{remedy} brings" if remedy else f"{harmless(str(error))}:"
        names = group.setdefault(key, [])
        if check not in names:
            names.append(check)
    return [
        line
        for key, names in [*brought.items(), *others.items()]
        for line in textwrap.wrap(
            f"{key} {', '.join(names)}",
            width,
            initial_indent=INDENT,
            subsequent_indent=INDENT * 3,
            break_on_hyphens=False,
        )
    ]
