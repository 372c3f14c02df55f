"""Exact bounds as ReFrame's references, which are floats.

A reference is (value, lower, upper), where lower and upper are shares of the value that ReFrame
adds to it. The value itself is an exact bound if the share is 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from reframe.utility.sanity import reference_bounds

from siteproof.rounding import Limit

Reference = tuple[float, float | None, float | None]
UNBOUNDED: Reference = (0.0, None, None)
NOTHING_PASSES: Reference = (math.inf, 0.0, None)  # for bounds that contradict each other


def compare(
    exact: Fraction, limits: Sequence[tuple[Limit | None, Limit | None]], *, met: bool
) -> tuple[float, Reference]:
    """A value as a float, and the tightest of its limits, each a lower and an upper one.

    met: whether it keeps them; a median may have more digits than a float, and just below 5 it
    must not become 5.
    """
    lows = (low for low, _ in limits if low)
    highs = (high for _, high in limits if high)
    low = max(lows, key=lambda one: (one.value, not one.inclusive), default=None)
    high = min(highs, key=lambda one: (one.value, one.inclusive), default=None)
    reference = _of_limits(low, high)
    lowest, highest = (float(bound) for bound in reference_bounds(*reference))
    number = float(exact)
    if met:
        return min(max(number, lowest), highest), reference
    if not lowest <= number <= highest:
        return number, reference
    is_above = highest - number < number - lowest
    beyond = (highest, math.inf) if is_above else (lowest, -math.inf)
    return math.nextafter(*beyond), reference


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
