"""The environment folder that Spack works in: spack-envs/ joined with a site's configuration.

Only `include` names the site, so that its externals stay separate. What all environments share
comes after it, and our defaults have the lowest priority: the pinned packages, the target, and
folders below the data folder; a site may set its own in spack/.

The target is archspec's name of a processor: that of the nodes that run the environment, never this
host's. Where they differ, the newest target that runs on all of them counts; an environment for
each partition gives each its own.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from siteproof import files
from siteproof.errors import UserError
from siteproof.sites import Site, key_types
from siteproof.sites.schema.yamlfile import MAX_BYTES
from siteproof.sites.system import Partition
from siteproof.spack import env_files, registered

DEFAULTS = "defaults"
INPUTS = "inputs"  # the digest of the lock's inputs
CACHE = "siteproof-cache"


@dataclass(frozen=True)
class Inputs:
    """What a lock is made from: an environment, the site's folder for Spack, a target or none."""

    name: str
    scope: Path
    target: str = ""


@dataclass(frozen=True)
class Sources:
    """Where packages come from, if not from their authors.

    mirror: a folder that `siteproof build --make-mirror` has filled. cache: the URL of a cache of
    built packages. unsigned: packages of the cache need no signature.
    """

    mirror: Path | None = None
    cache: str = ""
    unsigned: bool = False


def write(inputs: Inputs, sources: Sources, folder: Path, *, anew: bool) -> None:
    """Make the folder ready for Spack. Raises UserError where it cannot be written.

    anew: from spack-envs/ as it is now; otherwise what belongs to the lock stays, and only the
    paths are updated: a folder may have been moved, a lock may come from another machine.
    """
    try:
        for file, section in defaults(inputs.target, sources).items():
            text = yaml.safe_dump(section, sort_keys=False)
            files.write(folder / DEFAULTS / file, text.encode(), below=folder)
        shared, path = folder / env_files.COMMON, folder / env_files.SPACK_FILE
        anew = anew or not path.exists()
        if anew or not shared.exists():
            for common in env_files.common():
                content = files.read_named(common, MAX_BYTES)
                files.write(shared / common.name, content, below=folder)
        site = [str(inputs.scope)] if inputs.scope.is_dir() else []
        source = env_files.FOLDER / inputs.name / path.name if anew else path
        scopes = [*site, str(shared), str(folder / DEFAULTS)]
        files.write(path, joined(inputs.name, source, scopes).encode(), below=folder)
    except OSError as error:
        what = f"cannot be written: {error.strerror}"
        raise UserError(folder, what, hint="SITEPROOF_DATA may name another folder") from None


def joined(name: str, source: Path, scopes: list[str]) -> str:
    """The text of a spack.yaml, with these scopes of configuration included.

    Raises UserError if the source is not one: it may have been edited by hand.
    """
    try:
        text = files.read_named(source, MAX_BYTES).decode()
        described: dict[str, Any] = dict(yaml.safe_load(text)["spack"])
        if not list(described["specs"]):
            raise ValueError  # noqa: TRY301 - as every other mistake of the file
    except (yaml.YAMLError, ValueError, LookupError, TypeError, RecursionError, UserError):
        raise UserError(
            source,
            "is not what 'siteproof build' wrote",
            hint=f"'siteproof build {name} --update' writes it again",
        ) from None
    described |= {
        "include": scopes,
        "repos": {"siteproof": str(env_files.RECIPES)},
        # One version of each package; and a lock must not depend on what is installed already.
        "concretizer": {"unify": True, "reuse": False},
        "view": {"default": {"root": registered.VIEW, "link": "roots"}},
    }
    head = f"# Made by 'siteproof build' from spack-envs/{name}; changes to this file are lost.\n"
    return head + yaml.safe_dump({"spack": described}, sort_keys=False, width=1000)


def digest(inputs: Inputs) -> str:
    """The digest of all inputs of a lock: if it has changed, a new lock would differ."""
    found = hashlib.sha256(inputs.target.encode())
    paths = [
        env_files.FOLDER / "versions.yaml",
        env_files.FOLDER / inputs.name / env_files.SPACK_FILE,
        *env_files.common(),
        *sorted(env_files.RECIPES.glob("packages/*/package.py")),
        *sorted(inputs.scope.glob("*.yaml")),
    ]
    for path in paths:
        text = files.read_named(path, MAX_BYTES)
        found.update(f"{path.parent.name}/{path.name}".encode() + b"\0" + text)
    return found.hexdigest()


def remember(inputs: Inputs, folder: Path) -> None:
    """Store the digest of the inputs of the current lock."""
    files.write(folder / INPUTS, f"{digest(inputs)}\n".encode(), below=folder)


def changed(inputs: Inputs, folder: Path) -> bool:
    """Whether the inputs of the lock have changed since."""
    try:
        before = files.read_text(folder / INPUTS, below=folder)
        return before.strip() != digest(inputs)
    except (OSError, UserError):
        return False  # a lock from another machine


def defaults(target: str, sources: Sources) -> dict[str, dict[str, Any]]:
    """The sections of our defaults, by file."""
    packages = env_files.versions().packages
    kept = sources.mirror and sources.mirror / registered.RECIPES
    builtin = {
        "git": str(kept) if kept and kept.is_dir() else packages.git,
        "tag": packages.tag,
        "destination": str(registered.recipes(packages.tag)),
    }
    folders = {
        "install_tree": {"root": str(registered.store())},
        "source_cache": str(registered.cache() / "sources"),
    }
    mirrors: dict[str, Any] = {}
    if sources.mirror:
        url = (sources.mirror / registered.SOURCES).as_uri()
        mirrors["siteproof-sources"] = {"url": url, "source": True, "binary": False}
    if sources.cache:
        signed = not sources.unsigned
        kind = {"source": False, "binary": True, "signed": signed}
        mirrors[CACHE] = {"url": sources.cache, **kind}
    return {
        "config.yaml": {"config": folders},
        # The second colon replaces Spack's own entry, which follows a branch.
        "repos.yaml": {"repos": {"builtin:": builtin}},
        "mirrors.yaml": {"mirrors": mirrors},
        "packages.yaml": {"packages": {"all": {"require": [f"target={target}"]}} if target else {}},
        # By default Spack refuses targets that this host, a login node, could not run.
        "concretizer.yaml": {"concretizer": {"targets": {"host_compatible": not target}}},
    }


def target_of(site: Site, environment: str) -> str:
    """The target of one of a site's environments; empty: no role states one, or none fits all."""
    stated = [key_types.runs(one) for _, _, one in _roles(site, environment) if one]
    shared = frozenset.intersection(*stated) if stated else ()
    return max(sorted(shared), key=lambda name: len(key_types.runs(name)), default="")


def refuse_target(site: Site, environment: str, host: str) -> None:
    """Refuse what could only be built for the processor of this host. Raises UserError.

    host: the short name of this host, which may be a node itself.
    """
    where = site.folder / "system.yaml"
    target, by = target_of(site, environment), list(_roles(site, environment))
    here = platform.machine()
    if target and key_types.family(target) != here:
        raise UserError(
            where,
            f"'{environment}' is for {target}, and this host is {here}: Spack builds for its own "
            "architecture only",
            hint="Run 'siteproof build' in a job on a node",
        )
    if not target and (stated := sorted({one for _, _, one in by if one})):
        raise UserError(
            where,
            f"no processor target runs on all nodes of environment '{environment}': "
            f"{', '.join(stated)}",
            hint="Give each partition an environment of its own, with the same 'spack'",
        )
    for partition, role, its_target in by:
        own = partition.scheduler == "local" or host in site.system.nodes[role].nodes
        if not its_target and (target or not own):
            raise UserError(
                where,
                f"the nodes of role '{role}' have no 'target', and {host} is not "
                f"one of them: '{environment}' would be built for another processor",
                hint="Add 'target:' to their hardware; 'spack arch -t' on a node prints it",
            )


def _roles(site: Site, environment: str) -> Iterator[tuple[Partition, str, str]]:
    """The partition, role and target of the nodes that run an environment; empty: none stated."""
    for partition in site.system.partitions.values():
        if environment not in partition.environments:
            continue
        for role in partition.roles:
            yield partition, role, site.hardware_of(role).target or ""
