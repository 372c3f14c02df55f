"""The arithmetic of derived values: plain numbers, without any knowledge of samples."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from statistics import median
from typing import TypeVar

Number = TypeVar("Number", Fraction, float)


def share(value: Number, whole: Number) -> Number | None:
    """A value as a part of another; None where that is zero."""
    return value / whole if whole else None


def change(after: Number, before: Number) -> Number | None:
    """By which part of the value before a value has changed; None where that is zero."""
    return after / before - 1 if before else None


def middle(values: Sequence[Fraction]) -> Fraction:
    """The median, exact."""
    return Fraction(median(values))


def asymmetry(one_way: Number, other_way: Number) -> Number | None:
    """The slower direction as a part of the faster one; None where neither carries anything."""
    return share(min(one_way, other_way), max(one_way, other_way))


def under_way(rate: Fraction, round_trip: Fraction) -> Fraction:
    """The bytes that a path holds: bandwidth-delay product of b/s and s (RFC 7323, 1.1)."""
    return rate * round_trip / 8


def shortage(rate: Fraction, round_trip: Fraction, buffer: Fraction) -> Fraction:
    """What a buffer (bytes) lacks of rate (b/s) by round trip (s), in bytes; 0 if nothing."""
    return max(Fraction(0), under_way(rate, round_trip) - buffer)
