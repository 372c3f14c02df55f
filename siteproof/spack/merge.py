"""The environment folder that Spack works in: spack-envs/ joined with a site's configuration.

Only `include` names the site, so that its externals stay separate. Our defaults have the lowest
priority: the pinned packages, and a store below the data folder; a site may set its own in spack/.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import yaml

from siteproof import files
from siteproof.errors import UserError
from siteproof.schema.yamlfile import MAX_BYTES
from siteproof.spack import env_files, places

DEFAULTS = "defaults"
INPUTS = "inputs"  # the digest of the lock's inputs


def write(name: str, site_scope: Path, folder: Path, *, anew: bool) -> None:
    """Make the folder ready for Spack. Raises UserError where it cannot be written.

    anew: from spack-envs/ as it is now; otherwise what belongs to the lock stays, and only the
    paths are updated: a folder may have been moved, a lock may come from another machine.
    """
    try:
        (folder / DEFAULTS).mkdir(parents=True, exist_ok=True)
        for file, content in _defaults().items():
            _write(folder / DEFAULTS / file, yaml.safe_dump(content, sort_keys=False))
        scopes = [str(site_scope)] if site_scope.is_dir() else []
        path = folder / env_files.SPACK_FILE
        source = path if path.exists() and not anew else env_files.FOLDER / name / path.name
        _write(path, joined(name, source, [*scopes, str(folder / DEFAULTS)]))
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
        unify = dict(described["concretizer"])
    except (yaml.YAMLError, ValueError, LookupError, TypeError, RecursionError, UserError):
        raise UserError(
            source,
            "is not what 'siteproof build' wrote",
            hint=f"'siteproof build {name} --update' writes it again",
        ) from None
    described |= {
        "include": scopes,
        "repos": {"siteproof": str(env_files.RECIPES)},
        # A lock must not depend on what is installed already.
        "concretizer": {**unify, "reuse": False},
        "view": {"default": {"root": places.VIEW, "link": "roots"}},
    }
    head = f"# Made by 'siteproof build' from spack-envs/{name}; changes to this file are lost.\n"
    return head + yaml.safe_dump({"spack": described}, sort_keys=False, width=1000)


def digest(name: str, site_scope: Path) -> str:
    """The digest of all inputs of a lock: if it has changed, a new lock would differ."""
    found = hashlib.sha256()
    inputs = [
        env_files.FOLDER / "versions.yaml",
        env_files.FOLDER / name / env_files.SPACK_FILE,
        *sorted(env_files.RECIPES.glob("packages/*/package.py")),
        *sorted(site_scope.glob("*.yaml")),
    ]
    for path in inputs:
        text = files.read_named(path, MAX_BYTES)
        found.update(f"{path.parent.name}/{path.name}".encode() + b"\0" + text)
    return found.hexdigest()


def remember(name: str, site_scope: Path, folder: Path) -> None:
    """Store the digest of the inputs of the current lock."""
    _write(folder / INPUTS, digest(name, site_scope) + "\n")


def changed(name: str, site_scope: Path, folder: Path) -> bool:
    """Whether the inputs of the lock have changed since."""
    try:
        before = files.read_text(folder / INPUTS, below=folder)
        return before.strip() != digest(name, site_scope)
    except (OSError, UserError):
        return False  # a lock from another machine


def _defaults() -> dict[str, dict[str, Any]]:
    packages = env_files.versions().packages
    builtin = {
        "git": packages.git,
        "tag": packages.tag,
        "destination": str(places.top() / f"packages-{packages.tag}"),
    }
    return {
        "config.yaml": {"config": {"install_tree": {"root": str(places.store())}}},
        # The second colon replaces Spack's own entry, which follows a branch.
        "repos.yaml": {"repos": {"builtin:": builtin}},
    }


def _write(path: Path, text: str) -> None:
    """Write it whole or not at all."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_text(text, encoding="utf-8")
    part.replace(path)
