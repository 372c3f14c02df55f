"""Software that is built here: where it is, its locks, and what is registered of it.

`siteproof build` writes the registration last, and checks read it. All is below the data folder, a
folder for each environment. The lock is Spack's JSON: `roots` (hash, spec) and `concrete_specs`,
by hash.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from siteproof import files
from siteproof.errors import UserError
from siteproof.spack import env_files

LOCK = "spack.lock"
REGISTERED = "environment.json"
VIEW = "view"
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


_RUN = {"link", "run"}


@dataclass(frozen=True)
class Build:
    """One build of a package. external: its prefix on the site, if Spack did not install it.

    os: the operating system for which it is built, as Spack names it.
    """

    hash: str
    name: str
    version: str
    external: str = ""
    os: str = ""

    def __str__(self) -> str:
        return f"{self.name}@{self.version}/{self.hash[:7]}"


@dataclass(frozen=True)
class Lock:
    """The builds in a lock: the roots, those needed at run time, and all."""

    roots: tuple[Build, ...]
    needed: tuple[Build, ...]
    all: tuple[Build, ...]

    @property
    def to_install(self) -> list[Build]:
        """What Spack itself installs, including what is installed already."""
        return [build for build in self.all if not build.external]


def read_lock(path: Path) -> Lock:
    """The lock. Raises UserError if the file is not a lock."""
    try:
        raw = files.read_json(path, below=files.folder(), limit=files.OUTPUT)
        specs: dict[str, Any] = raw["concrete_specs"]
        builds = {key: _build(key, spec) for key, spec in specs.items()}
        roots = [root["hash"] for root in raw["roots"]]
        needed = _closure(roots, specs)
        return Lock(
            tuple(builds[r] for r in roots),
            tuple(builds[n] for n in needed),
            tuple(builds.values()),
        )
    except OSError as error:
        raise UserError(path, f"cannot be read: {error.strerror}") from None
    except files.Refused:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, UserError):
        raise UserError(
            path, "is not a lock file of Spack", hint="'siteproof build --update' writes a new one"
        ) from None


def missing(builds: tuple[Build, ...], prefixes: Mapping[str, str]) -> list[Build]:
    """The builds that are not installed where they were when they were registered.

    prefixes: of each build, by hash. Each installation holds its own hash.
    """
    return [b for b in builds if not b.external and _installed(prefixes.get(b.hash)) != b.hash]


def _build(key: str, spec: Mapping[str, Any]) -> Build:
    external = (spec.get("external") or {}).get("path") or ""
    system = (spec.get("arch") or {}).get("platform_os") or ""
    return Build(str(key), str(spec["name"]), str(spec["version"]), str(external), str(system))


def _closure(roots: list[str], specs: Mapping[str, Any]) -> list[str]:
    """The roots, and what they need when they run."""
    found: dict[str, None] = {}
    waiting = list(roots)
    while waiting:
        key = waiting.pop()
        if key in found:
            continue
        found[key] = None
        for other in specs[key].get("dependencies", ()):
            kinds = other.get("parameters", {}).get("deptypes", ())
            if _RUN & set(kinds):
                waiting.append(other["hash"])
    return list(found)


def _installed(prefix: str | None) -> str | None:
    """The hash that Spack has written into an installation; None: nothing is installed."""
    try:
        home = Path(prefix or "/nowhere")
        raw = files.read_json(home / ".spack" / "spec.json", below=home, limit=files.OUTPUT)
        return str(raw["spec"]["nodes"][0]["hash"])
    except (OSError, UserError, ValueError, LookupError, TypeError):
        return None


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
        """Write it, as a whole or not at all. Raises OSError, UserError."""
        text = json.dumps(asdict(self), indent=1) + "\n"
        files.write(folder / REGISTERED, text.encode(), below=folder)


_READER = TypeAdapter(Registered)


def read(system: str, name: str, target: str = "") -> Registered | None:
    """The registration; None: not built here. Raises UserError if the file is incomplete."""
    path = folder(system, name, target) / REGISTERED
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


def difference(system: str, found: Registered) -> str:
    """How what is installed differs from the lock, the first thing; empty if nothing does.

    No call of Spack: what Spack wrote into each package is read, some tens of small files.
    """
    path = folder(system, found.name, found.target) / LOCK
    try:
        if digest(path) != found.lock:
            return "its lock has changed since it was built"
        locked = read_lock(path)
    except (OSError, UserError):
        return "its lock is missing or broken"
    if lacking := missing(locked.needed, found.prefixes):
        more = ", …" if len(lacking) > MAX_BUILDS else ""
        return f"not installed: {', '.join(map(str, lacking[:MAX_BUILDS]))}{more}"
    homes = [Path(prefix).resolve() for prefix in found.prefixes.values()]
    for file in chain(*found.features.values()):
        real = Path(file).resolve()
        if not real.exists():
            return f"{file} is missing"
        if not any(real.is_relative_to(home) for home in homes):
            return f"{file} belongs to no package of the lock"
    return ""


def mend(name: str) -> str:
    """The command that makes an environment agree with its lock."""
    return f"'siteproof build {name}'"


def remedy(features: tuple[str, ...] | list[str]) -> str:
    """Which command brings one of these features; empty: none does."""
    return " or ".join(mend(name) for name in env_files.bringing(features))
