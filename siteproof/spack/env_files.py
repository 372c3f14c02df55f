"""spack-envs/: which environments can be built, what they offer, with which Spack."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TypeVar

from siteproof.errors import UserErrors
from siteproof.sites.catalogue import ROOT
from siteproof.sites.key_types import Model
from siteproof.sites.schema import shapes, yamlfile
from siteproof.sites.schema.yamlfile import Document
from siteproof.spack import places
from siteproof.spack.model import Definitions, Environment, Features, Versions

M = TypeVar("M", bound=Model)
FOLDER = ROOT / "spack-envs"
SPACK_FILE = "spack.yaml"
FEATURES_FILE = "features.yaml"
RECIPES = FOLDER / "repo" / "spack_repo" / "siteproof"


def names(folder: Path = FOLDER) -> list[str]:
    """The environments: the folders with a spack.yaml."""
    return sorted(path.parent.name for path in folder.glob(f"*/{SPACK_FILE}"))


def common(folder: Path = FOLDER) -> list[Path]:
    """The files of Spack's configuration that all environments include."""
    return sorted((folder / places.COMMON).glob("*.yaml"))


def examine(name: str, folder: Path = FOLDER) -> list[Document]:
    """The files of one environment, with their mistakes."""
    described = yamlfile.read(folder / name / SPACK_FILE)
    listed = yamlfile.read(folder / name / FEATURES_FILE)
    for key in (described.data or {}).keys() - {"spack"}:
        described.add((key,), f"unknown key '{yamlfile.clip(key)}'", "spack", inside=True)
    if described.data is not None:
        shapes.validate(described, ("spack",), Environment, described.data.get("spack"))
    if listed.data is not None:
        shapes.validate(listed, (), Features, listed.data)
    return [described, listed]


def definitions(folder: Path = FOLDER) -> list[str]:
    """The specs of all lists in common/definitions.yaml; none where it has a mistake."""
    document = yamlfile.read(folder / places.COMMON / "definitions.yaml")
    lists = shapes.validate(document, (), Definitions, document.data)
    found = []
    for one in lists.definitions if lists else ():
        found += [spec for specs in one.values() for spec in specs]
    return found


def roots(name: str, folder: Path = FOLDER) -> list[str]:
    """What an environment installs, as written; none where its file has a mistake."""
    document = yamlfile.read(folder / name / SPACK_FILE)
    described = (document.data or {}).get("spack")
    found = shapes.validate(document, ("spack",), Environment, described)
    return found.specs if found else []


@cache
def features(name: str) -> Features:
    """What an environment offers. Raises UserErrors with every mistake in its file."""
    return _whole(FOLDER / name / FEATURES_FILE, Features)


@cache
def versions() -> Versions:
    """The pinned releases. Raises UserErrors."""
    return _whole(FOLDER / "versions.yaml", Versions)


def bringing(wanted: Iterable[str]) -> list[str]:
    """The environments that offer one of these features."""
    features_wanted = set(wanted)
    return [name for name in names() if features_wanted & features(name).features.keys()]


def _whole(path: Path, model: type[M]) -> M:
    document = yamlfile.read(path)
    found = shapes.validate(document, (), model, document.data) if document.data else None
    if document.mistakes or found is None:
        raise UserErrors(document.sorted_mistakes())
    return found
