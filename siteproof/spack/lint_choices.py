"""What a site's folder for Spack leaves to chance: its compiler, its MPI, IOR on Lustre."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from siteproof.schema import shapes, yamlfile
from siteproof.sites import Site
from siteproof.spack import env_files
from siteproof.spack.model import Package, Packages

_NEEDS_MPI = {"hpcc", "osu", "ior", "mdtest"}
LUSTRE = "'lustre' with its externals and 'ior: {require: [+lustre]}', or ~lustre"


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
