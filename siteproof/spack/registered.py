"""What is built of an environment here: `siteproof build` writes it last, checks read it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from itertools import chain
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from siteproof import files
from siteproof.errors import UserError
from siteproof.spack import env_files, lock, places

MAX_BUILDS = 3  # in a message


@dataclass(frozen=True)
class Registered:
    """An environment that was built.

    lock: the lock's digest. features: what it offers, each with the files that prove it. path:
    the folders of programs. variables: others to set. prefixes: where each build lies, by hash.
    target: the processor for which it was built; empty: this host's.
    """

    name: str
    lock: str
    features: Mapping[str, list[str]]
    path: list[str]
    variables: Mapping[str, str]
    prefixes: Mapping[str, str]
    spack: str
    packages: str
    built: str
    target: str = ""

    def environment(self) -> dict[str, str]:
        """The variables that a job needs."""
        return {"PATH": ":".join([*self.path, "$PATH"]), **self.variables}

    def save(self, folder: Path) -> None:
        """Write it, as a whole or not at all. Raises OSError."""
        part = folder / f".{places.REGISTERED}.{os.getpid()}"
        part.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")
        part.replace(folder / places.REGISTERED)


_READER = TypeAdapter(Registered)


def read(system: str, name: str, target: str = "") -> Registered | None:
    """The registration; None: not built here. Raises UserError if the file is incomplete."""
    path = places.folder(system, name, target) / places.REGISTERED
    try:
        record = files.read_json(path, below=files.folder(), limit=files.OUTPUT)
        return _READER.validate_python(record)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except files.Refused:
        raise
    except UserError as error:
        raise UserError(path, error.what, hint=f"Run {mend(name)}") from None
    except ValidationError:
        raise UserError(
            path, "is not what 'siteproof build' writes", hint=f"Run {mend(name)}"
        ) from None


class Differs(Enum):
    """How an installation differs from its lock, as a sentence with the builds or the file."""

    LOCK_CHANGED = "its lock has changed since it was built"
    LOCK_UNREADABLE = "its lock is missing or broken"
    NOT_INSTALLED = "not installed: {}"
    FILE_MISSING = "{} is missing"
    FOREIGN_FILE = "{} belongs to no package of the lock"


@dataclass(frozen=True)
class Difference:
    """What differs first. of: the builds or the file."""

    kind: Differs
    of: tuple[str, ...] = ()

    def __str__(self) -> str:
        more = ", …" if len(self.of) > MAX_BUILDS else ""
        return self.kind.value.format(", ".join(self.of[:MAX_BUILDS]) + more)


def difference(system: str, found: Registered) -> Difference | None:
    """How what is installed differs from the lock, if it does.

    No call of Spack: what Spack wrote into each package is read, some tens of small files.
    """
    path = places.folder(system, found.name, found.target) / places.LOCK
    try:
        if places.digest(path) != found.lock:
            return Difference(Differs.LOCK_CHANGED)
        locked = lock.read(path)
    except (OSError, UserError):
        return Difference(Differs.LOCK_UNREADABLE)
    if missing := lock.missing(locked.needed, found.prefixes):
        return Difference(Differs.NOT_INSTALLED, tuple(map(str, missing)))
    homes = [Path(prefix).resolve() for prefix in found.prefixes.values()]
    for file in chain(*found.features.values()):
        real = Path(file).resolve()
        if not real.exists():
            return Difference(Differs.FILE_MISSING, (file,))
        if not any(real.is_relative_to(home) for home in homes):
            return Difference(Differs.FOREIGN_FILE, (file,))
    return None


def mend(name: str) -> str:
    """The command that makes an environment agree with its lock."""
    return f"'siteproof build {name}'"


def remedy(features: tuple[str, ...] | list[str]) -> str:
    """Which command brings one of these features; empty: none does."""
    return " or ".join(mend(name) for name in env_files.bringing(features))
