"""spack-envs/: which environments can be built, what they offer, with which Spack."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TypeVar

from siteproof.errors import UserErrors
from siteproof.schema import shapes, yamlfile
from siteproof.schema.yamlfile import Document
from siteproof.sites.catalogue import ROOT
from siteproof.sites.key_types import Model
from siteproof.spack import places
from siteproof.spack.model import Definitions, Environment, Versions

M = TypeVar("M", bound=Model)
FOLDER = ROOT / "spack-envs"
FILE = "environment.yaml"
RECIPES = FOLDER / "repo" / "spack_repo" / "siteproof"


def names(folder: Path = FOLDER) -> list[str]:
    """The environments: the folders with an environment.yaml."""
    return sorted(path.parent.name for path in folder.glob(f"*/{FILE}"))


def common(folder: Path = FOLDER) -> list[Path]:
    """The files of Spack's configuration that all environments include."""
    return sorted((folder / places.COMMON).glob("*.yaml"))


def examine(name: str, folder: Path = FOLDER) -> tuple[Environment | None, Document]:
    """What is right in the file of an environment, and the file with its mistakes."""
    document = yamlfile.read(folder / name / FILE)
    if document.data is None:
        return None, document
    return shapes.validate(document, (), Environment, document.data), document


def definitions(folder: Path = FOLDER) -> list[str]:
    """The specs of all lists in common/definitions.yaml; none where it has a mistake."""
    document = yamlfile.read(folder / places.COMMON / "definitions.yaml")
    lists = shapes.validate(document, (), Definitions, document.data)
    found = []
    for one in lists.definitions if lists else ():
        found += [spec for specs in one.values() for spec in specs]
    return found


@cache
def read(name: str) -> Environment:
    """An environment. Raises UserErrors with every mistake in its file."""
    return _whole(FOLDER / name / FILE, Environment)


@cache
def versions() -> Versions:
    """The pinned releases. Raises UserErrors."""
    return _whole(FOLDER / "versions.yaml", Versions)


def bringing(wanted: Iterable[str]) -> list[str]:
    """The environments that offer one of these features."""
    features_wanted = set(wanted)
    return [name for name in names() if features_wanted & read(name).features.keys()]


def _whole(path: Path, model: type[M]) -> M:
    document = yamlfile.read(path)
    found = shapes.validate(document, (), model, document.data) if document.data else None
    if document.mistakes or found is None:
        raise UserErrors(document.sorted_mistakes())
    return found
