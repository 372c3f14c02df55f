"""A node's sysctls, network cards and bonds, as checks/host prints them.

siteproof.parsers.values takes out what a broken or hostile node may have put in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from siteproof.parsers import Reading, values

_SYSCTL = re.compile(r"sysctl (\S+) =(?: (.*))?")
_DEVICE = re.compile(r"(nic|bond) (\S+) (\S+)(?: (.*))?")


def parse(text: str) -> list[Reading]:
    """One text reading a parameter: `sysctl.KEY`, `nic.NAME.mtu`, `bond.NAME.mode` …

    Raises OutputError if the end is missing or a parameter has two values.
    """
    return values.texts("host parameters", _parameters(text))


def _parameters(text: str) -> Iterator[tuple[str, str | None]]:
    for line in values.whole(text, "host parameters"):
        if match := _SYSCTL.fullmatch(line):
            yield f"sysctl.{match[1]}", match[2]
        elif match := _DEVICE.fullmatch(line):
            yield f"{match[1]}.{match[2]}.{match[3]}", match[4]
