"""What Siteproof leaves on a disk, and the variables that a user may set: docs/files.md.

A test compares both with what the programs really write and read.
"""

from __future__ import annotations

from typing import NamedTuple

from siteproof import files
from siteproof.sites.catalogue import ROOT

PAGE = ROOT / "docs/files.md"
DATA, CACHE = "data folder", "cache folder"
_IN = "in the "


class Place(NamedTuple):
    """A file or folder. below: DATA, CACHE or the clone. path: a glob; SYSTEM and such: any name.

    deletable: what is lost with it, or that nothing is.
    """

    below: str
    path: str
    what: str
    writer: str
    deletable: str


def places() -> list[Place]:
    """The files and folders, as the page lists them."""
    return [
        Place(head.removeprefix(_IN), *row)
        for head, rows in _tables().items()
        for row in rows
        if head.startswith(_IN)
    ]


def variables() -> dict[str, str]:
    """What each variable does."""
    return {name: meaning for name, meaning in _tables()["variable"]}


def _tables() -> dict[str, list[list[str]]]:
    """The rows of each table of the page, by the head of its first column."""
    found: dict[str, list[list[str]]] = {}
    rows: list[list[str]] = []
    for line in files.read_named(PAGE).decode().splitlines():
        cells = [cell.strip("` ") for cell in line.strip("| ").split(" | ")]
        if line.startswith("| `"):
            rows.append(cells)
        elif line.startswith("| ") and not line.startswith("| -"):
            rows = found.setdefault(cells[0], [])
    return found
