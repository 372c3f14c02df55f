"""Which software a check runs with: environments that Spack has built offer what they bring."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from siteproof import files
from siteproof.errors import UserError
from siteproof.sites import Site
from siteproof.spack import registered, targets
from siteproof.spack.registered import Registered


def built(site: Site) -> dict[str, Registered]:
    """What is built here of the site's environments, by the name that the site gives them.

    Raises UserError if a registration is not whole.
    """
    found = {
        name: registered.read(site.name, environment.spack, targets.of(site, name))
        for name, environment in site.system.environments.items()
        if environment.spack
    }
    return {name: one for name, one in found.items() if one}


def offering(site: Site, found: Mapping[str, Registered]) -> Site:
    """The site, each of whose environments has what was built for it."""
    environments = dict(site.system.environments)
    for name, one in found.items():
        plain = environments[name]
        environments[name] = plain.model_copy(
            update={
                "features": list(dict.fromkeys([*plain.features, *one.features])),
                "variables": {**one.environment(), **plain.variables},
            }
        )
    return replace(site, system=site.system.model_copy(update={"environments": environments}))


def default_environment(site: Site, names: Iterable[str], programs: Iterable[str]) -> str:
    """The environment in which a check runs that needs none in particular.

    names: a partition's environments. It is the first that offers one of the check's programs; else
    the first that is not built by Spack.
    """
    environments, wanted = site.system.environments, set(programs)
    ordered = list(names)
    having = [name for name in ordered if wanted & set(environments[name].features)]
    there = [name for name in ordered if not environments[name].spack]
    return [*having, *there, *ordered][0]


def provenance(found: Mapping[str, Registered], name: str) -> dict[str, str]:
    """The provenance of samples measured with this software."""
    if name not in found:
        return {}
    return {"software_lock": f"{found[name].name}@{found[name].lock}", "spack": found[name].spack}


def refuse_difference(system: str, found: Mapping[str, Registered], name: str) -> None:
    """Raise UserError where an environment is not what its lock file lists."""
    if name not in found:
        return
    if differs := registered.difference(system, found[name]):
        what = f"differs from its lock file: {differs}"
        hint = f"Run {registered.mend(found[name].name)}"
        raise UserError(f"environment {name}", what, hint=hint)


def remedy(programs: Iterable[str]) -> str:
    """What would bring one of these programs or features; empty if nothing is known."""
    wanted = sorted(set(programs))
    return " or ".join(filter(None, [_packages(wanted), registered.remedy(wanted)]))


def _packages(programs: Collection[str]) -> str:
    """The command that installs the distribution's packages with one of these commands, or empty.

    It names a set of setup/packages.list: the first row with a command is of a set that measures.
    """
    table = files.CLONE / "setup/packages.list"
    if not table.is_file():  # an installed copy has no setup/
        return ""
    for row in table.read_text().splitlines():
        words = row.split()
        # Debian's nwchem.openmpi is the nwchem that a check looks for.
        if row[:1].isalpha() and {words[2], words[2].partition(".")[0]} & set(programs):
            return f"'setup/packages {words[0]}'"
    return ""
