"""What every parser requires of a value: a plain number, and that rate, work and time agree.

And what the tables of MPI benchmarks share: a row a message size, each size twice the one before.
OSU's benchmarks and mpi4py's print nothing at their end and not which sizes they measure, so
a table that was cut looks like a whole one. It is whole if it reaches the last size: the tool's own
default, or that of a line `sizes MIN:MAX`, which the check's script prints before the tool.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Context, Decimal
from typing import TypeVar

from siteproof.errors import OutputError
from siteproof.parsers import Reading

_REQUESTED = re.compile(r"^sizes ([0-9]{1,12}):([0-9]{1,12})\r?$", re.MULTILINE)


def row(pattern: str, end: str = "$") -> re.Pattern[str]:
    """The pattern of a line, which may end in blanks. end: a line feed, where a line may be cut."""
    return re.compile(rf"^{pattern}[ \t\r]*{end}", re.MULTILINE)


def requested(text: str, tool: str, default: tuple[int, int]) -> tuple[int, int]:
    """The first and the last size (bytes) that the tool had to measure. Raises OutputError."""
    found = _REQUESTED.findall(text)
    if len(found) > 1:
        raise OutputError(f"{tool}: {len(found)} lines 'sizes', appended to one file")
    return (int(found[0][0]), int(found[0][1])) if found else default


def must_be_whole(tool: str, sizes: Sequence[int], first: int, last: int) -> None:
    """Refuse a table in which a size is missing, occurs twice or is not in its place.

    Raises OutputError.
    """
    # Some versions begin with 1 where 0 was requested.
    if not sizes or sizes[0] not in {first, first or 1}:
        raise OutputError(f"{tool}: the table does not begin with {first} bytes")
    for before, size in zip(sizes, sizes[1:], strict=False):
        if size != _after(before):
            raise OutputError(f"{tool}: {size} bytes follow {before} bytes")
    if not sizes[-1] <= last < _after(sizes[-1]):
        raise OutputError(f"{tool}: the table ends with {sizes[-1]} of {last} bytes")


def latency_and_bandwidth(
    tool: str, size: str, latency: Reading, rate: str, seconds: Decimal
) -> list[Reading]:
    """A row's two readings. A bandwidth that is printed as 0.00 is left out.

    latency: as printed. seconds: the same. rate: in MB/s. Raises OutputError where they disagree.
    """
    what = f"{tool}: bandwidth of {size} bytes"
    bandwidth = number(what, rate)
    must_agree(what, bandwidth, number(f"{tool}: size", size).scaleb(-6), seconds)
    if not bandwidth:
        return [latency]
    return [latency, Reading("bandwidth", bandwidth, "MB/s", latency.dims)]


def _after(size: int) -> int:
    return 2 * size if size else 1


T = TypeVar("T")
# No decimal comma (a locale other than C), and no digits of another script.
_NUMBER = re.compile(r"-?[0-9]{1,20}(?:\.[0-9]{1,20})?(?:[eE][+-]?[0-9]{1,2})?")
_NO_NUMBER = re.compile(r"[+-]?(?:nan|inf)", re.IGNORECASE)
# What Open MPI warns of, in lines that begin as those of IOR and mdtest do.
OPEN_MPI = (
    r"There are more than one active ports|No preset parameters were found for|"
    r"There was an error initializing an OpenFabrics"
)
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


def figure(what: str, pattern: re.Pattern[str], text: str) -> Decimal:
    """The first group of the only match: a value above zero. Raises OutputError."""
    return positive(what, one(what, pattern, text)[0])


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
