"""What every parser requires of a value: a plain number, and that rate, work and time agree.

And what the tables of MPI benchmarks share: a row a message size, each size twice the one before.
OSU's benchmarks and mpi4py's print nothing at their end and not which sizes they measure, so
a table that was cut looks like a whole one. It is whole if it reaches the last size: the tool's own
default, or that of a line `sizes MIN:MAX`, which the check's script prints before the tool.

Lines in which a node reports on itself: cut, without control characters, and whole or refused.

The text comes from a node that may be broken or worse: control characters and escape sequences
are taken out, and nothing is longer than 500 characters.

JSON as tools print it. Numbers stay the text that was printed.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from decimal import Context, Decimal
from functools import lru_cache
from typing import Any, TypeVar

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


LONGEST = 500  # characters of a name or a value
LONGEST_MESSAGE = 100  # characters of a tool's own message
MAX_LINE = 10_000  # characters of a line that are read

_ESCAPE = re.compile(r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x1b\x9b]\[?[0-?]*[ -/]*[@-~]")
_UNREADABLE = re.compile(r"unreadable (\S+)(?: (.*))?")


def whole(text: str, what: str) -> list[str]:
    """The lines before `end WHAT`. Raises OutputError if it is missing or not the last line."""
    found, end = filled(text), f"end {what}"
    if end not in found:
        raise OutputError(f"{what}: cut off before '{end}'")
    if found.index(end) != len(found) - 1:
        raise OutputError(f"{what}: more after '{end}', appended to one file")
    return found[:-1]


@lru_cache(maxsize=1)  # as a text of thousands of lines is read for several things
def harmless(text: str) -> tuple[str, ...]:
    """The lines with runs of blanks as one space and without control characters."""
    return tuple(_harmless(line[:MAX_LINE]) for line in text.split("\n"))


def filled(text: str) -> list[str]:
    """The lines that are not empty, as `harmless` gives them."""
    return [line for line in harmless(text) if line]


def must_not_report(
    tool: str, failure: re.Pattern[str], text: str, status: str = "generic"
) -> None:
    """Raises OutputError with the first line in which a tool reports that it has failed."""
    for line in filter(failure.fullmatch, harmless(text)):
        raise OutputError(f"{tool}: {line.strip('#!* ')[:LONGEST_MESSAGE]}", status)


def texts(what: str, parameters: Iterable[tuple[str, str | None]]) -> list[Reading]:
    """One text reading a parameter. Raises OutputError: two values of one name."""
    found: dict[str, str] = {}
    for parameter, text in parameters:
        name, value = parameter[:LONGEST], (text or "")[:LONGEST]
        if found.setdefault(name, value) != value:
            raise OutputError(f"{what}: two values of {name}")
    return [Reading(name, value, "text") for name, value in found.items()]


def unreadable(text: str) -> dict[str, str]:
    """What the node could not read, and why."""
    found = {}
    for match in map(_UNREADABLE.fullmatch, harmless(text)):
        if match:
            found[match[1][:LONGEST]] = (match[2] or "")[:LONGEST]
    return found


def _harmless(line: str) -> str:
    if not (line.isascii() and line.isprintable()):
        line = _ESCAPE.sub("", line).replace("\t", " ")
        line = "".join(c for c in line if unicodedata.category(c)[0] != "C")
    return " ".join(line.split())


QUOTE = 60  # characters of a broken line
MAX_WORD = 100  # characters of a text that becomes a condition
Object = dict[str, Any]

_DECODER = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=str)


def load(tool: str, text: str, start: int = 0) -> tuple[Object, str]:
    """The object that begins at `start`, and the text after it. Raises OutputError."""
    if not text.startswith("{", start):
        raise no_json(tool, text)
    try:
        found, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise _broken(tool, error) from None
    except (ValueError, RecursionError):
        raise OutputError(f"{tool}: its JSON has too many levels or digits") from None
    if not isinstance(found, dict):
        raise OutputError(f"{tool}: JSON of another program")
    return found, text[end:].strip()


def no_json(tool: str, text: str) -> OutputError:
    """The refusal of an output that is not JSON."""
    return OutputError(
        f"{tool}: text where JSON is expected" if text.strip() else f"{tool}: no output"
    )


def _broken(tool: str, error: json.JSONDecodeError) -> OutputError:
    """Cut off where the text ends too early; else the place, such as a decimal comma."""
    if error.msg.startswith("Unterminated string") or not error.doc[error.pos :].strip():
        return OutputError(f"{tool}: its JSON is cut off")
    found = error.doc.splitlines()[error.lineno - 1].strip()[:QUOTE]
    return OutputError(f"{tool}: its JSON is broken in line {error.lineno}: {found}")


def part(tool: str, whole: Object, key: str) -> Object:
    """The object below a key. Raises OutputError."""
    found = whole.get(key)
    if not isinstance(found, dict):
        raise OutputError(f"{tool}: no '{key}'")
    return found


def rows(tool: str, whole: Object, key: str) -> list[Object]:
    """The list of objects below a key. Raises OutputError."""
    found = whole.get(key)
    if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
        raise OutputError(f"{tool}: no '{key}'")
    return found


def only_object(tool: str, whole: Object, key: str) -> Object:
    """The one object in the list below a key. Raises OutputError."""
    return only(tool, key, rows(tool, whole, key))


def words(found: Object) -> dict[str, str]:
    """Those of the values that are short, printable texts: what may become a condition."""
    return {
        key: value
        for key, value in found.items()
        if isinstance(value, str) and 0 < len(value) <= MAX_WORD and value.isprintable()
    }
