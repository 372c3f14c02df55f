"""Rounding for the judgement of a measured value against a bound.

The value is first rounded to the step that the contract names, by one of RULES, and then compared.
All arithmetic is exact (fractions of the decimal text that the tool printed): binary floating point
turns 64.5 into a failure of "65, to the nearest 1".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction

Number = Fraction | Decimal | int
# Different decimals of so many digits have different floats (DBL_DIG of C). So a value that a tool
# prints with at most as many is judged as a float exactly as it is judged as a decimal.
PRINTED_DIGITS = 15
_DOWN = Context(prec=PRINTED_DIGITS, rounding=ROUND_FLOOR)


@dataclass(frozen=True)
class Rule:
    """A rule of rounding, of which the rest follows.

    whole: A number of steps as a whole number. A whole number stays as it is, a larger number never
        becomes a smaller one, and what it becomes changes only at a whole number or half-way
        between two.
    meaning: Its description in the manual.
    """

    whole: Callable[[Fraction], int]
    meaning: str


def _half_away(steps: Fraction) -> int:
    whole = (2 * abs(steps.numerator) + steps.denominator) // (2 * steps.denominator)
    return whole if steps >= 0 else -whole


# By the word before the step: `rounding: nearest 1 GB/s`; ties to even with `ties: even`.
# siteproof/report/recompute.py has each of them again.
RULES = {
    "nearest": Rule(_half_away, "to the nearest step"),
    "even": Rule(round, "to the nearest step, half-way to the even multiple"),
}
USUAL = "nearest"


def round_to(value: Number, step: Number, rule: str = USUAL) -> Fraction:
    """The multiple of step that value is rounded to."""
    step = Fraction(step)
    return RULES[rule].whole(Fraction(value) / step) * step


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


def lowest_passing(bound: Number, step: Number | None, rule: str = USUAL) -> Limit:
    """What a raw value must reach so that, rounded to step, it is at least bound."""
    if step is None:
        return Limit(Fraction(bound), True)
    step = Fraction(step)
    edge = _edge(math.ceil(Fraction(bound) / step), rule)
    return Limit(edge.value * step, edge.inclusive)


def highest_passing(bound: Number, step: Number | None, rule: str = USUAL) -> Limit:
    """What a raw value must not exceed so that, rounded to step, it is at most bound."""
    if step is None:
        return Limit(Fraction(bound), True)
    step = Fraction(step)
    edge = _edge(math.floor(Fraction(bound) / step) + 1, rule)
    return Limit(edge.value * step, not edge.inclusive)


def _edge(whole: int, rule: str) -> Limit:
    """From how many steps on the rule gives this whole number, or more.

    A rule changes only at a whole number or half-way, so it is the same everywhere between.
    """
    for edge in (whole - Fraction(1), whole - Fraction(1, 2)):
        if RULES[rule].whole(edge) >= whole:
            return Limit(edge, True)
        if RULES[rule].whole(edge + Fraction(1, 4)) >= whole:
            return Limit(edge, False)
    return Limit(Fraction(whole), True)
