"""What a node says of itself: sysctls, network cards and bonds, as checks/host prints them.

The text comes from a node that may be broken or worse: control characters and escape sequences
are taken out, and nothing is longer than 500 characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from siteproof.errors import OutputError
from siteproof.parsers import Reading

END = "end host parameters"
LONGEST = 500  # characters of a name or a value
LINE = 10_000  # characters of a line that are looked at

_ESCAPE = re.compile(r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x1b\x9b]\[?[0-?]*[ -/]*[@-~]")
_SYSCTL = re.compile(r"sysctl (\S+) =(?: (.*))?")
_DEVICE = re.compile(r"(nic|bond) (\S+) (\S+)(?: (.*))?")
_UNREADABLE = re.compile(r"unreadable (\S+)(?: (.*))?")


def parse(text: str) -> list[Reading]:
    """One text reading a parameter: `sysctl.KEY`, `nic.NAME.mtu`, `bond.NAME.mode` …

    Raises OutputError if the end is missing or a parameter has two values.
    """
    found: dict[str, str] = {}
    for line in _whole(text):
        if not (named := _named(line)):
            continue
        name, value = named
        if found.setdefault(name, value) != value:
            raise OutputError(f"host parameters: two values of {name}")
    return [Reading(name, value, "text") for name, value in found.items()]


def conditions(text: str) -> dict[str, str]:
    """None: a parameter is a reading, not what another one depends on."""
    return {}


def unreadable(text: str) -> dict[str, str]:
    """What the node could not read, and why."""
    lines = map(_UNREADABLE.fullmatch, _lines(text))
    return {m[1][:LONGEST]: (m[2] or "")[:LONGEST] for m in lines if m}


def _whole(text: str) -> list[str]:
    """The lines before the end. Raises OutputError if it is missing or not the last line."""
    lines = [line for line in _lines(text) if line]
    if END not in lines:
        raise OutputError(f"host parameters: cut off before '{END}'")
    if lines.index(END) != len(lines) - 1:
        raise OutputError(f"host parameters: more after '{END}', appended to one file")
    return lines[:-1]


def _lines(text: str) -> Iterator[str]:
    """The lines with runs of blanks as one space and without control characters."""
    return (_harmless(line[:LINE]) for line in text.split("\n"))


def _harmless(line: str) -> str:
    line = _ESCAPE.sub("", line).replace("\t", " ")
    kept = "".join(c for c in line if unicodedata.category(c)[0] != "C")
    return " ".join(kept.split())


def _named(line: str) -> tuple[str, str] | None:
    """Name and value of a line that holds a parameter."""
    if match := _SYSCTL.fullmatch(line):
        name, value = f"sysctl.{match[1]}", match[2]
    elif match := _DEVICE.fullmatch(line):
        name, value = f"{match[1]}.{match[2]}.{match[3]}", match[4]
    else:
        return None
    return name[:LONGEST], (value or "")[:LONGEST]
