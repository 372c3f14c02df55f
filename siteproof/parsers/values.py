"""What every parser requires of a value: a plain number, and that rate, work and time agree."""

from __future__ import annotations

import re
from decimal import Decimal

from siteproof.errors import OutputError

# No decimal comma (a locale other than C), and no digits of another script.
_NUMBER = re.compile(r"-?[0-9]{1,20}(?:\.[0-9]{1,20})?(?:[eE][+-]?[0-9]{1,2})?")
_NO_NUMBER = re.compile(r"[+-]?(?:nan|inf)", re.IGNORECASE)
TOLERANCE = Decimal("0.005")  # tools take the times of rate and table at slightly other places


def number(what: str, text: str) -> Decimal:
    """A value of at least zero. Raises OutputError: `invalid` for NaN, infinity and less."""
    if _NO_NUMBER.match(text):
        raise OutputError(f"{what} is {text[:40]!r}", "invalid")
    if not _NUMBER.fullmatch(text):
        raise OutputError(f"{what} {text[:40]!r} is not a number")
    value = Decimal(text)
    if value < 0:
        raise OutputError(f"{what} {text} is below zero", "invalid")
    return value


def positive(what: str, text: str) -> Decimal:
    """A value above zero. Raises OutputError."""
    value = number(what, text)
    if value == 0:
        raise OutputError(f"{what} {text} is not above zero", "invalid")
    return value


def must_agree(what: str, rate: Decimal, work: Decimal, seconds: Decimal) -> None:
    """Refuse a rate that is not work / seconds, as far as the printed digits show.

    work: in the rate's unit without the `/s`. Raises OutputError.
    """
    low = (rate - _half_digit(rate)) * (seconds - _half_digit(seconds)) * (1 - TOLERANCE)
    high = (rate + _half_digit(rate)) * (seconds + _half_digit(seconds)) * (1 + TOLERANCE)
    if not low <= work <= high:
        raise OutputError(f"{what} {rate} does not agree with its time of {seconds} s")


def _half_digit(value: Decimal) -> Decimal:
    """Half a unit of the last digit that was printed."""
    return Decimal(5).scaleb(int(value.as_tuple().exponent) - 1)
