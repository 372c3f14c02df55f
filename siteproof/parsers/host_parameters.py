"""What a node says of itself: sysctls, network cards and bonds, as checks/host prints them.

siteproof.parsers.lines takes out what a broken or hostile node may have put in.
"""

from __future__ import annotations

import re

from siteproof.errors import OutputError
from siteproof.parsers import Reading, lines
from siteproof.parsers.lines import LONGEST

_SYSCTL = re.compile(r"sysctl (\S+) =(?: (.*))?")
_DEVICE = re.compile(r"(nic|bond) (\S+) (\S+)(?: (.*))?")
unreadable = lines.unreadable


def parse(text: str) -> list[Reading]:
    """One text reading a parameter: `sysctl.KEY`, `nic.NAME.mtu`, `bond.NAME.mode` …

    Raises OutputError if the end is missing or a parameter has two values.
    """
    found: dict[str, str] = {}
    for line in lines.whole(text, "host parameters"):
        if not (named := _named(line)):
            continue
        name, value = named
        if found.setdefault(name, value) != value:
            raise OutputError(f"host parameters: two values of {name}")
    return [Reading(name, value, "text") for name, value in found.items()]


def conditions(text: str) -> dict[str, str]:
    """None: a parameter is a reading, not what another one depends on."""
    return {}


def _named(line: str) -> tuple[str, str] | None:
    """Name and value of a line that holds a parameter."""
    if match := _SYSCTL.fullmatch(line):
        name, value = f"sysctl.{match[1]}", match[2]
    elif match := _DEVICE.fullmatch(line):
        name, value = f"{match[1]}.{match[2]}.{match[3]}", match[4]
    else:
        return None
    return name[:LONGEST], (value or "")[:LONGEST]
