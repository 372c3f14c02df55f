"""The paths of a folder as find lists them and checks/storage/namespace.sh prints them, in hex."""

from __future__ import annotations

import re
from decimal import Decimal
from urllib.parse import quote_from_bytes

from siteproof.errors import OutputError
from siteproof.parsers import Reading, values

MAX_PATHS = 50_000  # paths of one node
PLAIN = "/ !$&'()*+,;=:@~[]{}#<>^`|"  # characters that stay as they are, with letters, digits, _.-

_PATH = re.compile(r"path ((?:[0-9a-f]{2}){1,4999})")
_COUNT = re.compile(r"depth (\d{1,3}) paths (\d{1,6})")


def parse(text: str) -> list[Reading]:
    """`paths`: how many there are. Raises OutputError if one is missing or given twice."""
    return [Reading("paths", Decimal(len(_read(text)[1])), "count")]


def conditions(text: str) -> dict[str, str]:
    """How many levels of folders were listed."""
    return {"depth": _read(text)[0]}


def paths(text: str) -> list[str]:
    """Each path with its unusual bytes as %XX, in order."""
    return _read(text)[1]


def _read(text: str) -> tuple[str, list[str]]:
    *listed, last = values.whole(text, "namespace") or [""]
    counted = _COUNT.fullmatch(last)
    if not counted:
        raise OutputError("namespace: no number of paths")
    matches = [_PATH.fullmatch(line) for line in listed]
    if None in matches or len(matches) > MAX_PATHS:
        raise OutputError("namespace: a line is not a path, or there are too many")
    found = {match[1] for match in matches if match}
    if not len(found) == len(listed) == int(counted[2]):
        raise OutputError(f"namespace: {len(found)} different paths, expected {counted[2]}")
    return counted[1], sorted(quote_from_bytes(bytes.fromhex(path), PLAIN) for path in found)
