"""The arithmetic of derived figures: exact, and without any knowledge of samples."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from statistics import median

KIB = 1024


def share(value: Fraction, whole: Fraction) -> Fraction | None:
    """A value as a part of another; None where that is zero."""
    return value / whole if whole else None


def change(after: Fraction, before: Fraction) -> Fraction | None:
    """By which part of the value before a value has changed; None where that is zero."""
    return (after - before) / before if before else None


def middle(values: Sequence[Fraction]) -> Fraction:
    """The median, exact."""
    return Fraction(median(values))


def asymmetry(one_way: Fraction, other_way: Fraction) -> Fraction | None:
    """The slower direction as a part of the faster one; None where neither carries anything."""
    return share(min(one_way, other_way), max(one_way, other_way))


def shortage(rate: Fraction, round_trip: Fraction, buffer: Fraction) -> Fraction:
    """What a buffer (bytes) lacks of rate (b/s) by round trip (s), in bytes; 0 if nothing.

    Bandwidth-delay product: RFC 7323, section 1.1.
    """
    return max(Fraction(0), rate * round_trip / 8 - buffer)


def service_demand(busy: Fraction, rate: Fraction) -> Fraction | None:
    """Microseconds of processor time for a KiB carried; None if nothing was carried.

    busy: processor time of the program as a share of the time, 1 = one core; rate: in b/s.
    The unit is that of netperf's manual, section "Service demand".
    """
    return busy * 10**6 / (rate / 8 / KIB) if rate else None
