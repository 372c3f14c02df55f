"""What a built environment offers: its files in the view, and below the site's externals."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from siteproof.spack import env_files, lock, places
from siteproof.spack.command import Failed, Spack
from siteproof.spack.lock import Lock
from siteproof.spack.registered import Registered

DEPTH = 6  # folders below a prefix: libexec/osu-micro-benchmarks/mpi/pt2pt and the like


def register(spack: Spack, name: str, target: str, folder: Path, packages: str) -> Registered:
    """Register what the environment offers. Raises Failed if it lacks something."""
    locked = lock.read(folder / places.LOCK)
    externals = {build.hash: build.external for build in locked.roots if build.external}
    prefixes = externals | _installed(spack, folder, locked)
    if missing := lock.missing(locked.needed, prefixes):
        raise Failed(f"not installed: {', '.join(map(str, missing))}")
    tops = [folder / places.VIEW, *map(Path, externals.values())]
    described = env_files.features(name)
    features: dict[str, list[str]] = {}
    folders = []  # of programs
    for feature, files in described.features.items():
        features[feature] = []
        for file in files:
            path = _find(name, tops, file)
            features[feature].append(str(path))
            if "/" not in file:
                folders.append(str(path.parent))
    variables = {}
    for key, file in described.variables.items():
        # The folder below which the file lies under this name.
        variables[key] = str(_find(name, tops, file).parents[file.count("/")])
    found = Registered(
        name=name,
        lock=places.digest(folder / places.LOCK),
        features=features,
        path=list(dict.fromkeys(folders)),
        variables=variables,
        prefixes=prefixes,
        spack=spack.version,
        packages=packages,
        target=target,
        built=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    )
    found.save(folder)
    return found


def _installed(spack: Spack, folder: Path, locked: Lock) -> dict[str, str]:
    """Where Spack has installed each build, by hash."""
    wanted = {build.hash for build in locked.to_install}
    found = {}
    for line in spack.ask(folder, "find", "--format", "{hash} {prefix}").splitlines():
        key, _, prefix = line.strip().partition(" ")
        if prefix.startswith("/") and key in wanted:
            found[key] = prefix
    return found


def from_cache(prefix: str | None) -> bool:
    """Whether Spack has taken an installation from a cache: it then keeps a note in it."""
    return prefix is not None and (Path(prefix) / ".spack" / "binary_distribution").exists()


def _find(name: str, tops: list[Path], file: str) -> Path:
    """The path of a program, or of a file whose path ends so. Raises Failed."""
    for top in tops:
        # /usr belongs to no single package: only the expected place counts.
        if (direct := top / ("" if "/" in file else "bin") / file).exists():
            return direct
        below = _below(top, DEPTH) if top != Path("/usr") else ()
        for path in sorted(below, key=lambda p: (len(p.parts), str(p))):
            if _is(path.relative_to(top), file):
                return path
    raise Failed(f"{name} is installed, but {file} is not in it")


def _is(path: Path, file: str) -> bool:
    """A program by its name; another file by the end of its path, with or without a version."""
    if "/" not in file:
        return path.name == file and path.parts[0] in ("bin", "sbin", "libexec")
    return f"/{path}".endswith(f"/{file}") or f"/{file}." in f"/{path}"


def _below(top: Path, depth: int) -> Iterator[Path]:
    """The files below a folder, up to this depth."""
    try:
        entries = list(os.scandir(top))
    except OSError:
        return
    for entry in entries:
        if entry.is_file():  # not a dangling link
            yield Path(entry.path)
        elif depth > 1 and entry.is_dir():
            yield from _below(Path(entry.path), depth - 1)
