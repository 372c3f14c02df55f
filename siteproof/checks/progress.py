"""What a run prints in a line: how far a check is, what failed, and what was not measured."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
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


MAX_ITEMS = 3  # nodes, pairs or points in a line


def lost_nodes(lost: Mapping[str, str]) -> str:
    """The nodes that cannot take a job, each with the reason."""
    return _list([f"{node}: {why}" for node, why in lost.items()])


def failed_nodes(failed: Sequence[Sample], expected: int) -> str:
    """How many nodes were measured, and how the others failed."""
    nodes = len({s.node for s in failed})
    return f"{expected - nodes} of {expected} nodes measured. {_failures(failed, lambda s: s.node)}"


def failed_turns(failed: Sequence[Sample], turns: int) -> str:
    """How many measurements failed, and how."""
    lost = {(s.node, s.dims["peer"], s.trial) for s in failed if "peer" in s.dims}
    return f"{len(lost)} measurements failed, in {turns} turns. {_failures(failed, _pair)}"


def failed_points(failed: Sequence[Sample], expected: int) -> str:
    """How many points were measured, and how the others failed."""
    points = {(s.trial, tuple(sorted(s.dims.items()))) for s in failed if not s.node}
    measured = expected - len(points)
    return f"{measured} of {expected} points measured. {_failures(failed, _point)}"


def _failures(failed: Sequence[Sample], name: Callable[[Sample], str]) -> str:
    return _list([f"{name(sample)}: {_failure(sample)}" for sample in failed])


def _failure(sample: Sample) -> str:
    """The status and the reason; `generic` adds nothing to the reason."""
    return sample.why if sample.status == "generic" else f"{sample.status}: {sample.why}"


def _list(items: Sequence[str]) -> str:
    """The first items, and how many are left out."""
    shown = "; ".join(items[:MAX_ITEMS])
    if len(items) > MAX_ITEMS:
        shown += f"; and {len(items) - MAX_ITEMS} more"
    return harmless(shown)


def _pair(sample: Sample) -> str:
    peer = sample.dims.get("peer", "")
    if peer:
        return f"{sample.node}>{peer}"
    return sample.node or sample.dims.get("link", "")


def _point(sample: Sample) -> str:
    if sample.node:
        return sample.node
    dims = " ".join(f"{name}={value}" for name, value in sample.dims.items())
    return f"{dims} trial={sample.trial}" if sample.trial else dims


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
