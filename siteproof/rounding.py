"""Rounding for the judgement of a measured value against a bound.

The value is first rounded to the step that the contract names, and then compared. A value half-way
between two multiples of the step is a tie: it goes away from zero, as most contracts mean, or to
the even multiple, which is the rounding method of ASTM E29 (6.4.3). All arithmetic is exact
(fractions of the decimal text that the tool printed): binary floating point turns 64.5 into a
failure of "65, to the nearest 1".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Literal

Number = Fraction | Decimal | int
Ties = Literal["away", "even"]
# Different decimals of so many digits have different floats (DBL_DIG of C). So a value that a tool
# prints with at most as many is judged as a float exactly as it is judged as a decimal.
PRINTED_DIGITS = 15
_DOWN = Context(prec=PRINTED_DIGITS, rounding=ROUND_FLOOR)


def round_to(value: Number, step: Number, ties: Ties = "away") -> Fraction:
    """The multiple of step nearest to value; `ties` decides between two."""
    ratio = abs(Fraction(value)) / Fraction(step)
    whole, rest = divmod(ratio.numerator, ratio.denominator)
    beyond = 2 * rest - ratio.denominator
    if beyond > 0 or beyond == 0 and (ties == "away" or whole % 2 == 1):
        whole += 1
    return whole * Fraction(step) * (1 if value >= 0 else -1)


@dataclass(frozen=True)
class Limit:
    """The worst raw value that still meets a bound.

    value: The limit.
    inclusive: Whether the limit itself passes.
    """

    value: Fraction
    inclusive: bool

    def as_float(self, *, lowest: bool) -> float:
        """The float nearest to the limit that judges as it does, in an inclusive comparison.

        Every decimal of at most PRINTED_DIGITS digits is on the same side of both.
        """
        if not lowest:
            return -Limit(-self.value, self.inclusive).as_float(lowest=True)
        nearest = float(self.value)
        below = _DOWN.divide(Decimal(self.value.numerator), Decimal(self.value.denominator))
        passes = self.inclusive and below == self.value
        return nearest if passes or float(below) < nearest else math.nextafter(nearest, math.inf)


def lowest_passing(bound: Number, step: Number | None, ties: Ties = "away") -> Limit:
    """What a raw value must reach so that, rounded to step, it is at least bound."""
    if step is None:
        return Limit(Fraction(bound), True)
    step = Fraction(step)
    multiple = math.ceil(Fraction(bound) / step)
    tie_passes = multiple % 2 == 0 if ties == "even" else multiple > 0
    return Limit(multiple * step - step / 2, tie_passes)


def highest_passing(bound: Number, step: Number | None, ties: Ties = "away") -> Limit:
    """What a raw value must not exceed so that, rounded to step, it is at most bound."""
    mirrored = lowest_passing(-Fraction(bound), step, ties)
    return Limit(-mirrored.value, mirrored.inclusive)
