"""What a node is, as checks/system/description.sh prints it: text in, a text a field out."""

from __future__ import annotations

import re

from siteproof.errors import OutputError
from siteproof.parsers import Reading, lines
from siteproof.parsers.lines import LONGEST

MOST = 50_000  # fields: no node has as many, and no broken one fills the memory

_FIELD = re.compile(r"field (\S+) =(?: (.*))?")
unreadable = lines.unreadable


def parse(text: str) -> list[Reading]:
    """One text reading a field, such as `cpu.model` or `sysctl.vm.swappiness`.

    Raises OutputError if the end is missing, a field has two values, or there is none.
    """
    found: dict[str, str] = {}
    for line in lines.whole(text, "description"):
        if match := _FIELD.fullmatch(line):
            name, value = match[1][:LONGEST], (match[2] or "")[:LONGEST]
            if found.setdefault(name, value) != value:
                raise OutputError(f"description: two values of {name}")
    if not 0 < len(found) <= MOST:
        raise OutputError(f"description: {len(found)} fields")
    return [Reading(name, value, "text") for name, value in found.items()]


def conditions(text: str) -> dict[str, str]:
    """None: a description is not what another value depends on."""
    return {}
