"""Spack's lock file: the builds that it lists, and which of them are installed.

The lock is Spack's JSON: `roots` (hash, spec) and `concrete_specs`, by hash.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from siteproof import files
from siteproof.errors import UserError

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


def read(path: Path) -> Lock:
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
