"""Lines that a node says of itself: cut, without control characters, and whole or not at all.

The text comes from a node that may be broken or worse: control characters and escape sequences
are taken out, and nothing is longer than 500 characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from siteproof.errors import OutputError

LONGEST = 500  # characters of a name or a value
LINE = 10_000  # characters of a line that are looked at

_ESCAPE = re.compile(r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x1b\x9b]\[?[0-?]*[ -/]*[@-~]")
_UNREADABLE = re.compile(r"unreadable (\S+)(?: (.*))?")


def whole(text: str, what: str) -> list[str]:
    """The lines before `end WHAT`. Raises OutputError if it is missing or not the last line."""
    lines, end = [line for line in harmless(text) if line], f"end {what}"
    if end not in lines:
        raise OutputError(f"{what}: cut off before '{end}'")
    if lines.index(end) != len(lines) - 1:
        raise OutputError(f"{what}: more after '{end}', appended to one file")
    return lines[:-1]


def harmless(text: str) -> Iterator[str]:
    """The lines with runs of blanks as one space and without control characters."""
    return (_harmless(line[:LINE]) for line in text.split("\n"))


def unreadable(text: str) -> dict[str, str]:
    """What the node could not read, and why."""
    found = map(_UNREADABLE.fullmatch, harmless(text))
    return {m[1][:LONGEST]: (m[2] or "")[:LONGEST] for m in found if m}


def _harmless(line: str) -> str:
    if not (line.isascii() and line.isprintable()):
        line = _ESCAPE.sub("", line).replace("\t", " ")
        line = "".join(c for c in line if unicodedata.category(c)[0] != "C")
    return " ".join(line.split())
