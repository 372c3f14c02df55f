"""What a sweep tells in one line: its cost, its progress, and the points that came to nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence

from siteproof.samples import Sample, harmless

SHOWN = 3  # points that a one-line message names


def tell_failed(failed: Sequence[Sample], expected: int) -> str:
    """How many points were measured, and what became of the others."""
    told = "; ".join(f"{_point(s)}: {s.status}: {s.why}" for s in failed[:SHOWN])
    more = f"; and {len(failed) - SHOWN} more" if len(failed) > SHOWN else ""
    points = len({(s.trial, tuple(sorted(s.dims.items()))) for s in failed if not s.node})
    return harmless(f"{expected - points} of {expected} points measured. {told}{more}")


def _point(sample: Sample) -> str:
    if sample.node:
        return sample.node
    told = " ".join(f"{name}={value}" for name, value in sample.dims.items())
    return f"{told} trial={sample.trial}" if sample.trial else told


def tell_progress(done: int, points: int, seconds: float) -> str:
    """So many points in so many seconds, and how long the rest will take at that pace."""
    left = points - done
    if not left:
        return f"{done} of {points} points"
    minutes = seconds / done * left / 60
    about = f"{math.ceil(minutes)} min" if minutes > 1 else "a minute"
    return f"{done} of {points} points, about {about} left"
