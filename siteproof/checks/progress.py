"""What a run prints in a line: how far a check is, what failed, and what was not measured."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from shutil import get_terminal_size
from typing import Any

from reframe.core.exceptions import SkipTestError
from reframe.core.logging import getlogger

from siteproof.errors import harmless
from siteproof.record.samples import Sample
from siteproof.units import count

WIDEST = 110  # columns; a wider line is hard to read
INDENT = "  "


class Lacking(SkipTestError):
    """Skips a test for something that is missing here. remedy: what would bring it, or empty."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what}: {remedy} brings it" if remedy else what)
        self.remedy = remedy


def report_skipped(tasks: Sequence[Any], total: int) -> None:
    """Print what was skipped of a run of `total` test cases; nothing if nothing was."""
    skipped = [(task.check.unique_name.split()[0], task.exc_info[1]) for task in tasks]
    if not skipped:
        return
    width = min(get_terminal_size().columns, WIDEST)
    getlogger().info(f"not measured: {len(skipped)} of {count(total, 'test case')}")
    for line in skipped_lines(skipped, width):
        getlogger().info(line)


def skipped_lines(skipped: Iterable[tuple[str, BaseException | None]], width: int) -> list[str]:
    """One line a remedy or reason, with the checks; those that a command brings come first.

    A longer line is broken between words.
    """
    form = textwrap.TextWrapper(
        width, initial_indent=INDENT, subsequent_indent=INDENT * 3, break_on_hyphens=False
    )
    remedies: dict[str, dict[str, None]] = {}
    reasons: dict[str, dict[str, None]] = {}
    for check, error in skipped:
        if remedy := getattr(error, "remedy", ""):
            remedies.setdefault(f"{remedy} brings", {})[check] = None
        else:
            reasons.setdefault(f"{harmless(str(error))}:", {})[check] = None
    lines = [f"{key} {', '.join(names)}" for key, names in (remedies | reasons).items()]
    return [part for line in lines for part in form.wrap(line)]


MAX_ITEMS = 3  # nodes, pairs or points in a line


def failures(failed: Iterable[Sample]) -> str:
    """What failed, and how: nodes, pairs, or points by their dimensions."""
    items = []
    for sample in failed:
        dims = [f"{name}={value}" for name, value in sample.dims.items()]
        trial = [f"trial={sample.trial}"] if sample.trial else []
        what = sample.node or " ".join([*dims, *trial])
        if sample.node and "peer" in sample.dims:
            what = f"{sample.node}>{sample.dims['peer']}"
        status = "" if sample.status == "generic" else f"{sample.status}: "  # it says nothing
        items.append(f"{what}: {status}{sample.why}")
    return shortened(items)


def shortened(items: Sequence[str]) -> str:
    """The first items, and how many are left out."""
    shown = "; ".join(items[:MAX_ITEMS])
    if len(items) > MAX_ITEMS:
        shown += f"; and {len(items) - MAX_ITEMS} more"
    return harmless(shown)


def points_done(done: int, points: int, seconds: float, failed: int = 0, repeated: int = 0) -> str:
    """How many points were measured, and how long the others will take at that pace.

    done: with those that failed, as they take their time, too. seconds: since the first began.
    repeated: how many of them crashed at first, and were measured at the second attempt.
    """
    text = f"{done - failed} of {points} points"
    if failed:
        text += f", {failed} failed"
    if repeated:
        text += f", {repeated} only at the second attempt, after a crash"
    left = points - done
    if not left:
        return text
    minutes = seconds / done * left / 60
    about = f"{math.ceil(minutes)} min" if minutes > 1 else "a minute"
    return f"{text}, about {about} left"
