"""Where software of a site is: below the data folder, one folder for each environment."""

from __future__ import annotations

import hashlib
from pathlib import Path

from siteproof import files

LOCK = "spack.lock"
REGISTERED = "environment.json"
VIEW = "view"


def top() -> Path:
    """The folder of all software; compute nodes must see it."""
    return files.folder() / "software"


def store() -> Path:
    """Where packages are installed, unless the site's config.yaml sets another folder."""
    return top() / "store"


def folder(system: str, name: str) -> Path:
    """The environment of a site: its spack.yaml, its lock, its view, its registration."""
    return top() / system / name


def content(path: Path) -> bytes:
    """What a file below the data folder holds. Raises OSError, UserError."""
    return files.read(path, below=files.folder(), limit=files.OUTPUT)


def digest(lock: Path) -> str:
    """The digest of a lock: the beginning of its SHA-256. Raises OSError, UserError."""
    return hashlib.sha256(content(lock)).hexdigest()[:12]
