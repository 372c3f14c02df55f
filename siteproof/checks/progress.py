"""What a check prints in one line: how far it is, and what failed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from siteproof.errors import harmless
from siteproof.record.samples import Sample

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
