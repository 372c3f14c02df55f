"""A node's sysctls, network cards and bonds, as checks/host prints them.

siteproof.parsers.lines takes out what a broken or hostile node may have put in.
"""

from __future__ import annotations

import re

from siteproof.parsers import Reading, lines

_SYSCTL = re.compile(r"sysctl (\S+) =(?: (.*))?")
_DEVICE = re.compile(r"(nic|bond) (\S+) (\S+)(?: (.*))?")


def parse(text: str) -> list[Reading]:
    """One text reading a parameter: `sysctl.KEY`, `nic.NAME.mtu`, `bond.NAME.mode` …

    Raises OutputError if the end is missing or a parameter has two values.
    """
    return lines.texts(text, "host parameters", _parameter)


def _parameter(line: str) -> tuple[str, str | None] | None:
    if match := _SYSCTL.fullmatch(line):
        return f"sysctl.{match[1]}", match[2]
    if match := _DEVICE.fullmatch(line):
        return f"{match[1]}.{match[2]}.{match[3]}", match[4]
    return None
