"""spack-envs/: which environments can be built, what they offer, with which Spack."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, Field, field_validator

from siteproof.errors import Mistake, UserErrors
from siteproof.sites.catalogue import ROOT
from siteproof.sites.job_keys import Feature
from siteproof.sites.key_types import Model, shaped
from siteproof.sites.schema import shapes, yamlfile
from siteproof.sites.schema.yamlfile import Document

_SPEC = r"\s*[a-z0-9][a-z0-9_-]*(?=$|[@~+%^ /])[A-Za-z0-9@~+%^ =:.,_*'/-]*\s*"
_A_SPEC = ("a spec", "a package with its constraints: hpl@2.3 ~openmp")  # without Spack
_FILE = r"[A-Za-z0-9_][A-Za-z0-9_.+-]*(/[A-Za-z0-9_][A-Za-z0-9_.+-]*)*"
_REQUIREMENT = {"spec", "one_of", "any_of", "when", "message"}


def _requirements(value: object) -> list[object]:
    """One text or a list of texts and mappings, as a list."""
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list):
        raise Mistake("neither a text nor a list", "hpl@2.3, or a list of such texts")
    for item in items:
        if isinstance(item, dict) and (unknown := set(item) - _REQUIREMENT):
            raise Mistake(f"unknown key '{min(unknown)}'", ", ".join(sorted(_REQUIREMENT)))
        if not isinstance(item, str | dict) or not item:
            raise Mistake("an empty entry", "a text such as '@2.3', or a mapping")
    return items


Spec = Annotated[str, shaped(_SPEC, *_A_SPEC)]
# Also the name of a list of specs in common/definitions.yaml.
RootSpec = Annotated[str, shaped(rf"\$[a-z0-9_]+|{_SPEC}", *_A_SPEC)]
Requirements = Annotated[list[Any], BeforeValidator(_requirements)]
File = Annotated[str, shaped(_FILE, "a file name", "xhpl, or lib/libmkl_rt.so")]
Folder = Annotated[str, shaped("/.*", "an absolute path", "the folder above its bin and lib")]
VariableName = Annotated[
    str, shaped(r"[A-Z_][A-Z0-9_]*", "a name of a variable", "capitals, such as MKLROOT")
]


class External(Model):
    """Software that is installed already, which Spack uses instead of building its own."""

    spec: Spec = Field(description="Its spec: openmpi@4.1.4.")
    prefix: Folder | None = Field(None, description="The folder above its bin and lib.")
    modules: list[str] = Field([], description="Environment modules that provide it.")
    extra_attributes: dict[str, Any] = Field(
        {}, description="Of a compiler: its programs, by language."
    )


class Package(Model):
    """How Spack gets a package."""

    externals: list[External] = Field([], description="Installations that exist already.")
    buildable: bool = Field(True, description="False: Spack may not build it.")
    require: Requirements = Field([], description="Constraints that it must meet.")
    prefer: Requirements = Field([], description="Constraints that it should meet.")
    conflict: Requirements = Field([], description="Constraints that it must not meet.")
    version: list[str] = Field([], description="Versions, the best first.")
    variants: Requirements = Field([], description="Variants, as in a spec.")
    target: list[str] = Field([], description="Processors to build for; only for `all`.")
    providers: dict[str, list[str]] = Field({}, description="Preferred providers; only for `all`.")
    permissions: dict[str, str] = Field({}, description="Permissions of installed files.")


Packages = dict[str, Package]


class Environment(Model):
    """The keys below `spack:` of a spack.yaml here: what to install, without settings of a site."""

    specs: list[RootSpec] = Field(description="What to install.", min_length=1)
    include: list[Literal["../common"]] = Field(
        description="What all environments share.", min_length=1
    )
    packages: Packages = Field({}, description="Constraints on packages, without externals.")

    @field_validator("packages")
    @classmethod
    def _no_site(cls, packages: Packages) -> Packages:
        for name, package in packages.items():
            if package.externals or not package.buildable:
                raise Mistake(f"externals of {name}", "externals in site-config/<system>/spack")
        return packages


class Definitions(Model):
    """common/definitions.yaml: lists of specs that environments name as '$list'."""

    definitions: list[dict[str, list[Spec]]] = Field(description="Lists of specs, by name.")


class Features(Model):
    """features.yaml: what an environment offers, and the files that prove it."""

    description: str = Field(description="What it is, for the report.")
    features: dict[Feature, Annotated[list[File], Field(min_length=1)]] = Field(
        description="What a check requires: its programs by name, other files by their path."
    )
    variables: dict[VariableName, File] = Field(
        {}, description="Variables, each to be the folder below which this file lies."
    )


class Release(Model):
    """One repository at one release."""

    git: str = Field(description="URL of the repository.")
    tag: str = Field(description="The tag of the release.")


class SpackRelease(Release):
    """Spack itself at a release."""

    tag: Annotated[
        str, shaped(r"v?\d+\.\d+\.\d+", "a release of Spack", "a tag such as v1.2.0")
    ] = Field(description="The tag of the release.")


class Versions(Model):
    """versions.yaml: the Spack that builds, and its packages."""

    spack: SpackRelease = Field(description="Spack itself.")
    packages: Release = Field(description="The recipes of its packages.")

    @property
    def release(self) -> str:
        """What `spack --version` must print."""
        return self.spack.tag.removeprefix("v")


M = TypeVar("M", bound=Model)
FOLDER = ROOT / "spack-envs"
COMMON = "common"  # the folder that all environments include
SPACK_FILE = "spack.yaml"
FEATURES_FILE = "features.yaml"
RECIPES = FOLDER / "repo" / "spack_repo" / "siteproof"


def names() -> list[str]:
    """The environments: the folders with a spack.yaml."""
    return sorted(path.parent.name for path in FOLDER.glob(f"*/{SPACK_FILE}"))


def common() -> list[Path]:
    """The files of Spack's configuration that all environments include."""
    return sorted((FOLDER / COMMON).glob("*.yaml"))


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
