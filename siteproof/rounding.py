"""Rounding for the judgement of a measured value against a bound: ASTM E29.

E29 knows two methods. Absolute: the value as measured against the bound. Rounding: the value is
first rounded to the step that the contract names, half away from zero, and then compared. All
arithmetic is exact (fractions of the decimal text that the tool printed): binary floating point
turns 64.5 into a failure of "65, to the nearest 1".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

Number = Fraction | Decimal | int


def round_to(value: Number, step: Number) -> Fraction:
    """The multiple of step nearest to value; a value half-way goes away from zero."""
    ratio = abs(Fraction(value)) / Fraction(step)
    whole = math.floor(ratio + Fraction(1, 2))
    return whole * Fraction(step) * (1 if value >= 0 else -1)


@dataclass(frozen=True)
class Limit:
    """The worst raw value that still meets a bound; itself met only if inclusive."""

    value: Fraction
    inclusive: bool

    def as_float(self, *, lowest: bool) -> float:
        """The float nearest to the limit that meets it, for an inclusive comparison of floats."""
        if self.inclusive:
            return float(self.value)
        return math.nextafter(float(self.value), math.inf if lowest else -math.inf)


def lowest_passing(bound: Number, step: Number | None) -> Limit:
    """What a raw value must reach so that, rounded to step, it is at least bound."""
    if step is None:
        return Limit(Fraction(bound), True)
    step = Fraction(step)
    target = math.ceil(Fraction(bound) / step) * step
    return Limit(target - step / 2, target > 0)


def highest_passing(bound: Number, step: Number | None) -> Limit:
    """What a raw value must not exceed so that, rounded to step, it is at most bound."""
    mirrored = lowest_passing(-Fraction(bound), step)
    return Limit(-mirrored.value, mirrored.inclusive)
