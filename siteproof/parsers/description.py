"""What a node is, as checks/system/description.sh prints it: text in, a text a field out."""

from __future__ import annotations

import re

from siteproof.errors import OutputError
from siteproof.parsers import Reading, lines

MAX_FIELDS = 50_000  # no node has as many, and no broken one fills the memory

_FIELD = re.compile(r"field (\S+) =(?: (.*))?")


def parse(text: str) -> list[Reading]:
    """One text reading a field, such as `cpu.model` or `sysctl.vm.swappiness`.

    Raises OutputError if the end is missing, a field has two values, or there is no field.
    """
    found = lines.texts(text, "description", _field)
    if not 0 < len(found) <= MAX_FIELDS:
        raise OutputError(f"description: {len(found)} fields")
    return found


def _field(line: str) -> tuple[str, str | None] | None:
    match = _FIELD.fullmatch(line)
    return (match[1], match[2]) if match else None
