"""Which lines of plain ReFrame's files are imported: of some systems, of some tests."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from siteproof import files
from siteproof.errors import UserError
from siteproof.history.foreign import source
from siteproof.history.foreign.origins import Origin
from siteproof.sites import catalogue

_ENDING = ".only"  # of the file with the selection of an imported file


@dataclass(frozen=True)
class Only:
    """What is selected; an empty field selects all.

    systems: names in the files. tests: patterns of classes, with * and ?.
    """

    systems: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.systems or self.tests)

    def takes(self, origin: Origin) -> bool:
        """Whether lines of this origin are imported."""
        if self.systems and origin.system_in_file not in self.systems:
            return False
        return not self.tests or any(fnmatchcase(origin.check, one) for one in self.tests)

    def __str__(self) -> str:
        options = [f"--only-system {name}" for name in self.systems]
        return " ".join([*options, *(f"--only-test '{pattern}'" for pattern in self.tests)])

    def dump(self) -> bytes:
        """The content of the file that is kept next to an imported one."""
        kept = {"systems": self.systems, "tests": self.tests}
        return f"{json.dumps(kept)}\n".encode()


ALL = Only()


@cache
def own_checks() -> set[str | None]:
    """The names of Siteproof's own checks."""
    return {metric.check for metric in catalogue.read()[0].values()}


def file_of(path: Path) -> Path:
    """The file with the selection of an imported file."""
    return path.with_name(path.name + _ENDING)


def is_one(path: Path) -> bool:
    """Whether it is such a file."""
    return path.suffix == _ENDING


def of(path: Path) -> Only:
    """The selection with which a file was imported. Raises OSError, UserError."""
    place = file_of(path)
    try:
        kept = files.loads(place, source.content(place, files.ACCOUNT))
    except FileNotFoundError:
        return ALL
    lists = [kept.get(key) for key in ("systems", "tests")] if isinstance(kept, dict) else [None]
    if not all(isinstance(one, list) and all(isinstance(t, str) for t in one) for one in lists):
        raise UserError(place, "not a selection of lines", "lists of texts, 'systems' and 'tests'")
    return Only(tuple(lists[0] or ()), tuple(lists[1] or ()))
