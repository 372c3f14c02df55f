"""What every parser requires of a value: a plain number, and that rate, work and time agree."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Context, Decimal
from typing import TypeVar

from siteproof.errors import OutputError

T = TypeVar("T")
# No decimal comma (a locale other than C), and no digits of another script.
_NUMBER = re.compile(r"-?[0-9]{1,20}(?:\.[0-9]{1,20})?(?:[eE][+-]?[0-9]{1,2})?")
_NO_NUMBER = re.compile(r"[+-]?(?:nan|inf)", re.IGNORECASE)
DIGITS = Context(prec=6)
TOLERANCE = Decimal("0.005")  # tools take the times of rate and table at slightly other places


def signed(what: str, text: str) -> Decimal:
    """A value, also below zero. Raises OutputError: `invalid` for NaN and infinity."""
    if _NO_NUMBER.match(text):
        raise OutputError(f"{what} is {text[:40]!r}", "invalid")
    if not _NUMBER.fullmatch(text):
        raise OutputError(f"{what} {text[:40]!r} is not a number")
    return Decimal(text)


def number(what: str, text: str) -> Decimal:
    """A value of at least zero. Raises OutputError: `invalid` for NaN, infinity and less."""
    value = signed(what, text)
    if value < 0:
        raise OutputError(f"{what} {text} is below zero", "invalid")
    return value


def positive(what: str, text: str) -> Decimal:
    """A value above zero. Raises OutputError."""
    value = number(what, text)
    if value == 0:
        raise OutputError(f"{what} {text} is not above zero", "invalid")
    return value


def quotient(value: Decimal, divisor: Decimal) -> Decimal:
    """In as many digits as tools print of a time, and without an exponent."""
    return Decimal(f"{DIGITS.divide(value, divisor):f}")


def rate(what: str, work: Decimal | int, seconds: Decimal) -> Decimal:
    """Work by seconds. Raises OutputError: `invalid` where nothing was done."""
    if work <= 0:
        raise OutputError(f"{what}: no work in {seconds} s", "invalid")
    return quotient(Decimal(work), seconds)


def one(what: str, pattern: re.Pattern[str], text: str) -> tuple[str, ...]:
    """The groups of the only match in an output. Raises OutputError."""
    found = list(pattern.finditer(text))
    if len(found) != 1:
        raise OutputError(f"{what}: {len(found)} where one is expected")
    return found[0].groups()


def only(tool: str, things: str, found: Sequence[T]) -> T:
    """The only one of what was found in an output. Raises OutputError."""
    if len(found) != 1:
        raise OutputError(f"{tool}: {len(found)} {things} where one is expected")
    return found[0]


def printed(patterns: Mapping[str, re.Pattern[str]], text: str) -> dict[str, str]:
    """The first group of each pattern that an output has: what becomes a condition."""
    return {key: match[1] for key, pattern in patterns.items() if (match := pattern.search(text))}


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
