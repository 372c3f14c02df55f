"""Every mistake in the files for Spack: spack-envs/, and a site's spack/ folder."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from siteproof.errors import UserError, UserErrors
from siteproof.sites import Site
from siteproof.sites import folder as site_folder
from siteproof.sites.schema import shapes, yamlfile
from siteproof.sites.schema.yamlfile import Document, clip
from siteproof.sites.site import examine
from siteproof.spack import env_files
from siteproof.spack.env_files import Definitions, Package, Packages

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
    env_files.versions()
    shared = scope(env_files.FOLDER / env_files.COMMON, (*SECTIONS, "definitions"))
    return [*_mistakes(shared), *_of_environments(env_files.names())]


def sites(names: Iterable[str]) -> list[UserError]:
    """Every mistake in the spack/ folders of these sites."""
    found = []
    for name in names:
        found += _mistakes(scope(site_folder() / name / SCOPE))
    return found


def _of_environments(names: Iterable[str]) -> list[UserError]:
    found = []
    for name in names:
        found += _mistakes(env_files.examine(name))
    return found


def _mistakes(documents: Iterable[Document]) -> list[UserError]:
    return [mistake for document in documents for mistake in document.sorted_mistakes()]


def warnings(names: Iterable[str]) -> list[str]:
    """What makes figures of these sites hard to explain later."""
    found = []
    for name in names:
        if site := examine(name)[0]:
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
        if one.spack in env_files.names():
            offered = [*one.features, *env_files.features(one.spack).features]
            environments[name] = one.model_copy(update={"features": offered})
    return replace(site, system=site.system.model_copy(update={"environments": environments}))


def unstated(site: Site) -> Iterator[str]:
    """What a site that builds by Spack should state in its packages.yaml, one sentence each."""
    built = {e.spack for e in site.system.environments.values() if e.spack in env_files.names()}
    if not built:
        return
    packages = _packages(site.folder / SCOPE)
    file = f"{SCOPE}/packages.yaml"
    if not any("compilers" in e.extra_attributes for p in packages.values() for e in p.externals):
        yield f"{file} has no compiler, so Spack takes what it finds on PATH: add it to externals"
    offered = {feature for name in built if name for feature in env_files.features(name).features}
    if offered & _NEEDS_MPI and not _required(packages, "mpi"):
        yield f"{file} does not require an MPI, so Spack chooses one: 'mpi: {{require: [openmpi]}}'"
    lustre = [name for name, fs in site.system.file_systems.items() if fs.kind == "lustre"]
    if lustre and "ior" in offered:
        yield from _lustre(packages, file, lustre[0])


def _lustre(packages: Packages, file: str, name: str) -> Iterator[str]:
    """Whether IOR is built with Lustre's library, without which it cannot set a striping."""
    stated = f"{_required(packages, 'ior')} {getattr(packages.get('ior'), 'variants', '')}"
    if "lustre" not in stated:
        yield (
            f"file system '{name}' is Lustre, and {file} does not say whether IOR sets its "
            f"striping: {LUSTRE}"
        )
    elif "+lustre" in stated and not (packages.get("lustre") or Package()).externals:
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


def _required(packages: Packages, name: str) -> str:
    return " ".join(map(str, packages[name].require)) if name in packages else ""
