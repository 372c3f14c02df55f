"""Exact bounds as ReFrame's references, which are floats.

A reference is (value, lower, upper), where lower and upper are shares of the value that ReFrame
adds to it. The value itself is an exact bound if the share is 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from reframe.utility.sanity import reference_bounds

from siteproof.rounding import Limit

Reference = tuple[float, float | None, float | None]
UNBOUNDED: Reference = (0.0, None, None)
NOTHING_PASSES: Reference = (math.inf, 0.0, None)  # for bounds that contradict each other


def compare(
    exact: Fraction, limits: Iterable[tuple[Limit | None, Limit | None]]
) -> tuple[float, Reference]:
    """A value as a float, and the tightest of its limits, each a lower and an upper one."""
    lows, highs = [], []
    for lower, upper in limits:
        if lower:
            lows.append(lower)
        if upper:
            highs.append(upper)
    low = max(lows, key=lambda one: (one.value, not one.inclusive), default=None)
    high = min(highs, key=lambda one: (one.value, one.inclusive), default=None)
    reference = _of_limits(low, high)
    return _on_its_side(exact, low, high, reference), reference


def _on_its_side(
    exact: Fraction, low: Limit | None, high: Limit | None, reference: Reference
) -> float:
    """The float nearest to a value that ReFrame finds on the same side of the limits.

    A median may have more digits than a float: just below 5 it must not become 5.
    """
    number = float(exact)
    if reference == NOTHING_PASSES:
        return number
    lowest, highest = (float(bound) for bound in reference_bounds(*reference))
    if low and not low.inclusive:
        is_below = exact <= low.value
    else:
        is_below = low is not None and exact < low.value
    if is_below:
        return min(number, math.nextafter(lowest, -math.inf))
    if high and not high.inclusive:
        is_above = exact >= high.value
    else:
        is_above = high is not None and exact > high.value
    if is_above:
        return max(number, math.nextafter(highest, math.inf))
    return min(max(number, lowest), highest)


def _of_limits(low: Limit | None, high: Limit | None) -> Reference:
    """ReFrame's tuple: one inclusive bound is exact as the value itself, with a share of 0."""
    if low and high:
        return between(low.as_float(lowest=True), high.as_float(lowest=False))
    if low:
        return (low.as_float(lowest=True), 0.0, None)
    if high:
        return (high.as_float(lowest=False), None, 0.0)
    return UNBOUNDED


def between(low: float, high: float) -> Reference:
    """Both bounds at once: ReFrame multiplies, which rounds, unless the value is well chosen.

    Around zero ReFrame takes the thresholds as absolute. A power of two between the bounds makes
    both factors exact; where there is none, low / high is above one half and comes back exactly.
    """
    if low > high:
        return NOTHING_PASSES
    if low <= 0 <= high:
        return (0.0, low, high)
    if high < 0:
        value, below, above = between(-high, -low)
        return (-value, -(above or 0.0), -(below or 0.0))
    value = min(2.0 ** math.frexp(low)[1], high)
    return (value, low / value - 1, high / value - 1)
