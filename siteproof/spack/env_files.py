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
from siteproof.sites.system import Model
from siteproof.spack.model import Environment, Features, Versions

M = TypeVar("M", bound=Model)
FOLDER = ROOT / "spack-envs"
SPACK_FILE = "spack.yaml"
FEATURES_FILE = "features.yaml"
RECIPES = FOLDER / "repo" / "spack_repo" / "siteproof"


def names(folder: Path = FOLDER) -> list[str]:
    """The environments: the folders with a spack.yaml."""
    return sorted(path.parent.name for path in folder.glob(f"*/{SPACK_FILE}"))


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
