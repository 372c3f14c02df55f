"""spack-envs/ and the spack/ of a site: what can be built, with which Spack, and every mistake."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, Field, field_validator

from siteproof.errors import Mistake, UserError, UserErrors
from siteproof.installed import SUITE
from siteproof.sites import Site
from siteproof.sites import folder as site_folder
from siteproof.sites.key_types import EntryName, Model, shaped
from siteproof.sites.schema import shapes, yamlfile
from siteproof.sites.schema.yamlfile import Document, clip
from siteproof.sites.site import examine as examine_site

_SPEC = r"\s*[a-z0-9][a-z0-9_-]*(?=$|[@~+%^ /])[A-Za-z0-9@~+%^ =:.,_*'/-]*\s*"
_A_SPEC = "a package with its constraints: hpl@2.3 ~openmp"  # without Spack
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


Spec = Annotated[str, shaped(_SPEC, _A_SPEC)]
# Also the name of a list of specs in common/definitions.yaml.
RootSpec = Annotated[str, shaped(rf"\$[a-z0-9_]+|{_SPEC}", _A_SPEC)]
Requirements = Annotated[list[Any], BeforeValidator(_requirements)]
File = Annotated[str, shaped(_FILE, "a file such as xhpl or lib/libmkl_rt.so")]
Folder = Annotated[str, shaped("/.*", "an absolute path: the folder above its bin and lib")]
VariableName = Annotated[str, shaped(r"[A-Z_][A-Z0-9_]*", "capitals, such as MKLROOT")]


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
    features: dict[EntryName, Annotated[list[File], Field(min_length=1)]] = Field(
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

    tag: Annotated[str, shaped(r"v?\d+\.\d+\.\d+", "a tag such as v1.2.0")] = Field(
        description="The tag of the release."
    )


class Versions(Model):
    """versions.yaml: the Spack that builds, and its packages."""

    spack: SpackRelease = Field(description="Spack itself.")
    packages: Release = Field(description="The recipes of its packages.")

    @property
    def release(self) -> str:
        """What `spack --version` must print."""
        return self.spack.tag.removeprefix("v")


M = TypeVar("M", bound=Model)
FOLDER = SUITE / "spack-envs"
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


SCOPE = "spack"  # a site's folder of Spack's configuration
# What a site may configure. repos: where its own copy of Spack's packages is.
SECTIONS = ("packages", "config", "mirrors", "concretizer", "repos", "upstreams", "toolchains")
_NEEDS_MPI = {"hpcc", "osu", "ior", "mdtest"}
LUSTRE = "'lustre' with its externals and 'ior: {require: [+lustre]}', or ~lustre"


def refuse(environments: Iterable[str], site: Path) -> None:
    """Raises UserErrors with every mistake in these environments and in the site's folder."""
    documents = scope(site / SCOPE)
    if mistakes := [*_of_environments(environments), *_mistakes(documents)]:
        raise UserErrors(mistakes)


def everything() -> list[UserError]:
    """Every mistake in spack-envs/."""
    versions()
    shared = scope(FOLDER / COMMON, (*SECTIONS, "definitions"))
    return [*_mistakes(shared), *_of_environments(names())]


def sites(names: Iterable[str]) -> list[UserError]:
    """Every mistake in the spack/ folders of these sites."""
    return _mistakes(one for name in names for one in scope(site_folder() / name / SCOPE))


def _of_environments(names: Iterable[str]) -> list[UserError]:
    return _mistakes(one for name in names for one in examine(name))


def _mistakes(documents: Iterable[Document]) -> list[UserError]:
    return [mistake for document in documents for mistake in document.sorted_mistakes()]


def warnings(names: Iterable[str]) -> list[str]:
    """What makes figures of these sites hard to explain later."""
    found = []
    for name in names:
        if site := examine_site(name)[0]:
            found += [f"{name}: {one}" for one in unstated(site)]
    return found


def scope(folder: Path, sections: Collection[str] = SECTIONS) -> list[Document]:
    """A folder of Spack's configuration: a file a section; it may be missing."""
    documents = []
    for path in sorted(folder.glob("*")):
        document = yamlfile.read(path)
        documents.append(document)
        section = path.name.removesuffix(".yaml")
        if f"{section}.yaml" != path.name or section not in sections:
            document.mistakes.clear()
            allowed = (f"{name}.yaml" for name in sections)
            document.add((), f"Spack does not read a file '{clip(path.name)}'", allowed)
        elif document.data is not None:
            _section(document, section)
    return documents


def _section(document: Document, section: str) -> None:
    """The one key that the file must have, and the keys of packages.yaml that Siteproof knows."""
    for key in document.data:
        if key.rstrip(":") != section:
            document.add((key,), f"unknown key '{clip(key)}'", section, inside=True)
    content = document.data.get(section)
    if section == "definitions":
        shapes.validate(document, (), Definitions, document.data)
    elif not isinstance(content, dict):
        document.add((section,), "not a mapping of keys")
    elif section == "packages":
        for name, raw in content.items():
            _package(document, name, raw)


def _package(document: Document, name: str, raw: object) -> None:
    package = shapes.validate(document, ("packages", name), Package, raw)
    if package is None:
        return
    if name.rstrip(":") == "all" and (package.target or "target=" in str(package.require)):
        hint = "'target' of the hardware in system.yaml"
        document.add(("packages", name), "a target, which belongs to the nodes", hint)
    for number, external in enumerate(package.externals):
        here = ("packages", name, "externals", number)
        spec, allowed = external.spec, f"{clip(name)}@…"
        found = re.match(r"[a-z0-9_-]*", spec.strip())
        if found and found[0] != name.rstrip(":"):
            document.add(here, f"'{clip(spec)}' is not {clip(name)}", allowed)
        if "@" not in spec:
            document.add(here, f"'{clip(spec)}' without a version", allowed)
        if external.prefix is None and not external.modules:
            document.add(here, "neither prefix nor modules", "the folder above its bin and lib")


def absent(folder: Path) -> list[str]:
    """The externals whose folder is not on this machine, as 'spec in prefix'."""
    return [
        f"{external.spec.split()[0]} in {external.prefix}"
        for package in _packages(folder).values()
        for external in package.externals
        if external.prefix and not Path(external.prefix).is_dir()
    ]


def offering(site: Site) -> Site:
    """The site, each of whose environments offers what Spack would build for it."""
    environments = dict(site.system.environments)
    for name, one in environments.items():
        if one.spack in names():
            offered = [*one.features, *features(one.spack).features]
            environments[name] = one.model_copy(update={"features": offered})
    return replace(site, system=site.system.model_copy(update={"environments": environments}))


def unstated(site: Site) -> Iterator[str]:
    """What a site that builds by Spack should state in its packages.yaml, one sentence each."""
    built = {e.spack for e in site.system.environments.values() if e.spack in names()}
    if not built:
        return
    packages = _packages(site.folder / SCOPE)
    file = f"{SCOPE}/packages.yaml"
    if not any("compilers" in e.extra_attributes for p in packages.values() for e in p.externals):
        yield f"{file} has no compiler, so Spack takes what it finds on PATH: add it to externals"
    offered = {feature for name in built if name for feature in features(name).features}
    if offered & _NEEDS_MPI and not packages.get("mpi", Package()).require:
        yield f"{file} does not require an MPI, so Spack chooses one: 'mpi: {{require: [openmpi]}}'"
    lustre = [name for name, fs in site.system.file_systems.items() if fs.kind == "lustre"]
    if lustre and "ior" in offered:
        yield from _lustre(packages.get("ior", Package()), packages, file, lustre[0])


def _lustre(ior: Package, packages: Packages, file: str, name: str) -> Iterator[str]:
    """Whether IOR is built with Lustre's library, without which it cannot set a striping."""
    stated = f"{ior.require} {getattr(ior, 'variants', '')}"
    if "lustre" not in stated:
        yield (
            f"file system '{name}' is Lustre, and {file} does not say whether IOR sets its "
            f"striping: {LUSTRE}"
        )
    elif "+lustre" in stated and not packages.get("lustre", Package()).externals:
        yield f"{file} requires ior +lustre without externals of 'lustre', which Spack cannot build"


def _packages(folder: Path) -> Packages:
    """The packages of a site's packages.yaml; those with mistakes are left out."""
    document = yamlfile.read(folder / "packages.yaml")
    raw: Any = (document.data or {}).get("packages")
    found = {}
    for name, content in (raw if isinstance(raw, dict) else {}).items():
        if package := shapes.validate(document, (), Package, content):
            found[str(name).rstrip(":")] = package
    return found
