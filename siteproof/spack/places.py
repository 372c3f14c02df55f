"""Where software of a site is: below the data folder, one folder for each environment."""

from __future__ import annotations

import hashlib
from pathlib import Path

from siteproof import files

LOCK = "spack.lock"
REGISTERED = "environment.json"
VIEW = "view"
COMMON = "common"  # the folder of spack-envs/ that all environments include
# In a mirror that 'siteproof build --make-mirror' fills:
SOURCES, RECIPES, LOCKS = "sources", "packages.git", "locks"


def top() -> Path:
    """The folder of all software; compute nodes must see it."""
    return files.folder() / "software"


def store() -> Path:
    """Where packages are installed, unless the site's config.yaml sets another folder."""
    return top() / "store"


def recipes(tag: str) -> Path:
    """Where Spack keeps the recipes of its packages at a release."""
    return top() / f"packages-{tag}"


def cache() -> Path:
    """What Spack downloads and keeps for itself, unless SPACK_USER_CACHE_PATH names a folder."""
    return top() / "cache"


def label(name: str, target: str) -> str:
    """An environment built for a target: io-zen3; without a target, its name."""
    return f"{name}-{target}" if target else name


def folder(system: str, name: str, target: str = "") -> Path:
    """An environment of a site, for a target: its spack.yaml, lock, view and registration."""
    return top() / system / label(name, target)


def content(path: Path) -> bytes:
    """What a file below the data folder holds. Raises OSError, UserError."""
    return files.read(path, below=files.folder(), limit=files.OUTPUT)


def digest(lock: Path) -> str:
    """The digest of a lock: the beginning of its SHA-256. Raises OSError, UserError."""
    return hashlib.sha256(content(lock)).hexdigest()[:12]
