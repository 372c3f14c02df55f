"""Lines in which a node reports on itself: cut, without control characters, and whole or refused.

The text comes from a node that may be broken or worse: control characters and escape sequences
are taken out, and nothing is longer than 500 characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from siteproof.errors import OutputError
from siteproof.parsers import Reading

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
