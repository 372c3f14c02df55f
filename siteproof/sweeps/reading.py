"""Find, read and check the sweep files."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from pathlib import Path

from siteproof import files
from siteproof.errors import UserError, UserErrors
from siteproof.record.point import Point
from siteproof.sites.catalogue import ROOT
from siteproof.sites.schema import shapes, yamlfile
from siteproof.sites.schema.yamlfile import Document
from siteproof.sweeps.keys import Sweep
from siteproof.sweeps.points import points

FOLDER = ROOT / "sweeps"
VARIABLE = "SITEPROOF_SWEEPS"
MAX_POINTS = 20_000
NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


@dataclass(frozen=True)
class SweepFile:
    """One sweep with its name, its file's content as a hash, and its points."""

    path: Path
    sweep: Sweep
    points: list[Point]
    hash: str

    @property
    def name(self) -> str:
        """The file's name without its ending."""
        return self.path.stem

    @property
    def test(self) -> str:
        """The name of its ReFrame test: ior_tasks is IorTasks."""
        return camel_case(self.name)


def camel_case(name: str) -> str:
    """ior_tasks as IorTasks."""
    return "".join(part.capitalize() for part in name.split("_"))


def folders() -> list[Path]:
    """The clone's folder, and one of the user's own. Raises UserError where it is missing."""
    given = os.environ.get(VARIABLE)
    if not given:
        return [FOLDER]
    own = Path(given).expanduser()
    if not own.is_dir():
        raise UserError(VARIABLE, f"{own} is not a folder", "a folder with sweep files NAME.yaml")
    return [FOLDER] if own.resolve() == FOLDER else [FOLDER, own]


def load() -> dict[str, SweepFile]:
    """All sweeps, by name. Raises UserErrors with every mistake in them."""
    found, documents = examine()
    if mistakes := [error for document in documents for error in document.sorted_mistakes()]:
        raise UserErrors(mistakes)
    return found


def lint(systems: Iterable[str]) -> tuple[list[str], list[UserError]]:
    """The names of all sweeps, and every mistake in them; a sweep names no system."""
    found, documents = examine()
    for document in documents:
        _must_name_none(document, systems)
    mistakes = [error for document in documents for error in document.sorted_mistakes()]
    return list(found), mistakes


def _must_name_none(document: Document, systems: Iterable[str]) -> None:
    words = set(re.findall(r"[A-Za-z0-9_-]+", str(document.data)))
    for system in systems:
        if system in words:
            document.add((), f"it names the system '{system}'", "only what is true of any system")


def examine() -> tuple[dict[str, SweepFile], list[Document]]:
    """The sweeps without a mistake, and all files with theirs. Raises UserError."""
    found: dict[str, SweepFile] = {}
    documents = []
    tests: dict[str, Path] = {}
    for path in sorted(path for folder in folders() for path in folder.glob("*.yaml")):
        document = yamlfile.read(path)
        documents.append(document)
        read = _read(document)
        other = tests.setdefault(camel_case(path.stem), path)
        if other != path:
            document.add((), f"the same name as {yamlfile.shown(other)}", "a unique name")
        elif read:
            found[path.stem] = read
    return found, documents


def _read(document: Document) -> SweepFile | None:
    path = document.path
    if not NAME.fullmatch(path.stem):
        document.add(
            (),
            f"'{yamlfile.clip(path.stem)}' is not a name of a sweep",
            "lower-case letters and digits, words joined by _",
        )
    if document.data is None:
        return None
    sweep = shapes.validate(document, (), Sweep, document.data)
    if sweep is None or document.mistakes:
        return None
    if too_many := _more_than(sweep, MAX_POINTS):
        document.add(("axes",), f"more than {MAX_POINTS} points ({too_many})")
        return None
    each = points(sweep)
    if not each:
        document.add(
            ("constraints",), "no point meets them", "constraints that at least one point meets"
        )
        return None
    return SweepFile(
        path,
        sweep,
        each,
        hashlib.sha256(files.read_named(path, yamlfile.MAX_BYTES)).hexdigest()[:16],
    )


def _more_than(sweep: Sweep, most: int) -> int:
    """How many points there are before constraints, if more than that; 0 otherwise."""
    settings = 1  # combinations of knobs, counted without making them
    if sweep.knobs:
        alone = sweep.knobs.one_at_a_time
        settings += sum(map(len, alone.values()))
        settings += 2 ** len(alone) if sweep.knobs.corners else 0
    combinations = sum(prod(map(len, axes.values())) for axes in sweep.axes)
    total = combinations * sweep.repetitions * settings
    return total if total > most else 0
