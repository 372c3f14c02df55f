"""What a node is, as checks/system/description.sh prints it: text in, a text a field out."""

from __future__ import annotations

import re
from collections import defaultdict

from siteproof.errors import OutputError
from siteproof.parsers import Reading, lines, tool_output

MAX_FIELDS = 50_000  # no node has as many, and no broken one fills the memory

COVERED = {  # the fields that are missing if a tool's output is not understood
    "ceph": "server.ceph",
    "lustre": "server.lustre",
    "names": "dns",
    "nvidia": "gpu",
    "raid": "raid.controller",
    "rocm": "gpu",
    "smart": "disk.smart",
}

_FIELD = re.compile(r"field (\S+) =(?: (.*))?")
_RAW = re.compile(r"raw (\S{1,40})(?: (.*))?")


def parse(text: str) -> list[Reading]:
    """One text reading a field, such as `cpu.model` or `sysctl.vm.swappiness`.

    Raises OutputError if the end is missing, a field has two values, or there is no field.
    """
    found = {reading.metric: reading for reading in lines.texts(text, "description", _field)}
    for name, value in _of_tools(text)[0].items():
        found.setdefault(name, Reading(name, value, "text"))
    if not 0 < len(found) <= MAX_FIELDS:
        raise OutputError(f"description: {len(found)} fields")
    return list(found.values())


def unreadable(text: str) -> dict[str, str]:
    """What the node could not read, and why; also tools whose output is not understood."""
    return lines.unreadable(text) | _of_tools(text)[1]


def _field(line: str) -> tuple[str, str | None] | None:
    match = _FIELD.fullmatch(line)
    return (match[1], match[2]) if match else None


def _of_tools(text: str) -> tuple[dict[str, str], dict[str, str]]:
    """The fields that tools have printed, and the tools that printed something else."""
    printed: dict[str, list[str]] = defaultdict(list)
    for match in map(_RAW.fullmatch, lines.harmless(text)):
        if match:
            printed[match[1]].append(match[2] or "")
    found: dict[str, str] = {}
    strange: dict[str, str] = {}
    for tool, of_tool in printed.items():
        try:
            found |= tool_output.fields(tool, of_tool)
        except OutputError as error:
            strange[COVERED.get(tool.partition(".")[0], tool)] = str(error)
    return found, strange
