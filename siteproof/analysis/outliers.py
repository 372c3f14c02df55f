"""Where runs that are far off become far more frequent, or rarer, for good.

The best cut into two by the likelihood of two shares against one; then Fisher's exact test
(Statistical Methods for Research Workers, 1934) for that cut, times the number of cuts. Runs that
are far off one after the other are no independent trials, so that where they are fewer bursts than
chance makes, they count as fewer.
"""

from __future__ import annotations

from math import comb

import numpy as np
from numpy.typing import NDArray

from siteproof.analysis.spread import Floats

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


def change(far: Bools, least: int) -> tuple[int, float] | None:
    """The first run after the change, and the chance of so clear a one where there is none.

    far: which runs are far off, the oldest first. least: runs on each side. None: no cut is left.
    """
    n, total = far.size, int(far.sum())
    cuts = np.arange(least, n - least + 1)
    if not cuts.size or not 0 < total < n:
        return None
    before: Ints = np.cumsum(far, dtype=np.int64)[cuts - 1]
    gain = _likelihood(before, cuts) + _likelihood(total - before, n - cuts)
    best = int(gain.argmax())
    cut, fewer = int(cuts[best]), int(before[best])
    more, size, part = total - fewer, n - cut, far[cut:]
    if fewer * size > more * cut:
        fewer, more, size, part = more, fewer, cut, far[:cut]
    weight = _bursts(part)
    chance = _tail(n, size, int(fewer * weight), int(more * weight))
    return cut, min(1.0, 2 * cuts.size * chance)


def _likelihood(count: Ints, size: Ints) -> Floats:
    """The logarithm of that of so many among so many, with their own share."""
    share = count / size
    with np.errstate(divide="ignore", invalid="ignore"):
        there = np.where(count > 0, count * np.log(share), 0.0)
        absent = np.where(count < size, (size - count) * np.log1p(-share), 0.0)
    found: Floats = there + absent
    return found


def _bursts(far: Bools) -> float:
    """How many of the bursts that independent runs would make there are: 1, or less."""
    bursts = int(far[0]) + int((far[1:] & ~far[:-1]).sum())
    expected = far.sum() * (1 - far.mean()) + far.mean()
    return min(1.0, bursts / max(1.0, float(expected)))


def _tail(n: int, size: int, fewer: int, more: int) -> float:
    """The chance that of fewer + more among n so many or more are among a part of that size."""
    total = fewer + more
    ways = sum(
        comb(total, number) * comb(n - total, size - number)
        for number in range(more, min(total, size) + 1)
    )
    return ways / comb(n, size)
