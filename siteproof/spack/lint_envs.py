"""Every mistake in the files for Spack: spack-envs/, our recipes, a site's spack/ folder."""

from __future__ import annotations

import ast
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
_SHA256 = re.compile(r"[0-9a-f]{64}")
_FROM = ("spack.package", "spack_repo.")
_NEEDS_MPI = {"hpcc", "osu", "ior", "mdtest"}
LUSTRE = "'lustre' with its externals and 'ior: {require: [+lustre]}', or ~lustre"


def refuse(environments: Iterable[str], site: Path) -> None:
    """Raises UserErrors with every mistake in these environments and in the site's folder."""
    documents = scope(site / SCOPE)
    if mistakes := [*_of_environments(environments), *_mistakes(documents), *recipes()]:
        raise UserErrors(mistakes)


def everything() -> list[UserError]:
    """Every mistake in spack-envs/."""
    env_files.versions()
    shared = scope(env_files.FOLDER / env_files.COMMON, (*SECTIONS, "definitions"))
    return [*_mistakes(shared), *_of_environments(env_files.names()), *recipes()]


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
    """What makes figures hard to explain later: in spack-envs/, and in these sites."""
    found = [f"spack-envs: {one}" for one in unpinned()]
    for name in names:
        if site := examine(name)[0]:
            found += [f"{name}: {one}" for one in unstated(site, SCOPE)]
    return found


def unpinned(folder: Path = env_files.FOLDER) -> Iterator[str]:
    """The root specs without a version: their figures change with the recipes."""
    listed = {env_files.COMMON: env_files.definitions(folder)}
    for name in env_files.names(folder):
        listed[name] = env_files.roots(name, folder)
    for name, specs in listed.items():
        for spec in specs:
            if "@" not in spec.partition(" ")[0] and not spec.startswith("$"):
                yield f"{name}: '{clip(spec)}' has no version: name one, '{spec.split()[0]}@…'"


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
    document = yamlfile.read(folder / "packages.yaml")
    described = document.data or {}
    externals = []
    for raw in (described.get("packages") or {}).values():
        if package := shapes.validate(document, (), Package, raw):
            externals += package.externals
    found = []
    for external in externals:
        if external.prefix and not Path(external.prefix).is_dir():
            found.append(f"{external.spec.split()[0]} in {external.prefix}")
    return found


def recipes(folder: Path = env_files.RECIPES) -> list[UserError]:
    """Mistakes in our own recipes, as far as they can be seen without Spack."""
    found = []
    for path in sorted(folder.glob("packages/*/package.py")):
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (OSError, SyntaxError, ValueError) as error:
            found.append(UserError(path, f"cannot be read: {error}"))
            continue
        found += [
            UserError(f"{yamlfile.shown(path)}:{line}", what, allowed)
            for line, what, allowed in _recipe(tree, path.parent.name)
        ]
    return found


def _recipe(tree: ast.Module, name: str) -> list[tuple[int, str, str]]:
    """Line, what is wrong, what would be right."""
    mistakes = []
    wanted = "".join(part.capitalize() for part in name.split("_"))
    classes = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
    if classes != [wanted]:
        mistakes.append((1, f"class {', '.join(classes) or 'none'}", f"one class {wanted}"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not str(node.module).startswith(_FROM):
            mistakes.append((node.lineno, f"imports from {node.module}", "spack.package"))
        if isinstance(node, ast.Call) and _lacks_checksum(node):
            mistakes.append((node.lineno, "a version without its checksum", "sha256=…"))
    return mistakes


def _lacks_checksum(call: ast.Call) -> bool:
    """Whether it is a version(...) without a checksum of its archive."""
    if getattr(call.func, "id", "") != "version":
        return False
    given = {keyword.arg: getattr(keyword.value, "value", "") for keyword in call.keywords}
    return not _SHA256.fullmatch(str(given.get("sha256", "")))


def offering(site: Site) -> Site:
    """The site, each of whose environments offers what Spack would build for it."""
    environments = dict(site.system.environments)
    for name, one in environments.items():
        if one.spack in env_files.names():
            offered = [*one.features, *env_files.features(one.spack).features]
            environments[name] = one.model_copy(update={"features": offered})
    return replace(site, system=site.system.model_copy(update={"environments": environments}))


def unstated(site: Site, scope: str) -> Iterator[str]:
    """What a site that builds by Spack should state in its packages.yaml, one sentence each."""
    built = {e.spack for e in site.system.environments.values() if e.spack in env_files.names()}
    if not built:
        return
    packages = _packages(site, scope)
    file = f"{scope}/packages.yaml"
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


def _packages(site: Site, scope: str) -> Packages:
    """The packages of a site's packages.yaml; those with mistakes are left out."""
    document = yamlfile.read(site.folder / scope / "packages.yaml")
    raw: Any = (document.data or {}).get("packages")
    found = {}
    for name, content in (raw if isinstance(raw, dict) else {}).items():
        if package := shapes.validate(document, (), Package, content):
            found[str(name).rstrip(":")] = package
    return found


def _required(packages: Packages, name: str) -> str:
    return " ".join(map(str, packages[name].require)) if name in packages else ""
