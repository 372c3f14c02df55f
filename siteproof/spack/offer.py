"""What a built environment offers: looked up in its view, and in what the site has of its roots."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from siteproof.spack import env_files, lock, places
from siteproof.spack.command import Failed, Spack
from siteproof.spack.registered import Registered

DEPTH = 6  # folders below a prefix: libexec/osu-micro-benchmarks/mpi/pt2pt and the like


def register(spack: Spack, name: str, folder: Path, packages: str) -> Registered:
    """Note what the environment brings. Raises Failed if it lacks something."""
    locked = lock.read(folder / places.LOCK)
    prefixes = {build.hash: build.external for build in locked.roots if build.external}
    for line in spack.ask(folder, "find", "--format", "{hash} {prefix}").splitlines():
        key, _, prefix = line.strip().partition(" ")
        if prefix.startswith("/") and key in {b.hash for b in locked.to_install}:
            prefixes[key] = prefix
    if missing := lock.missing(locked.needed, prefixes):
        raise Failed(f"not installed: {', '.join(map(str, missing))}")
    tops = [folder / places.VIEW, *(Path(b.external) for b in locked.roots if b.external)]
    described = env_files.features(name)
    features = {
        feature: [str(_find(name, tops, file)) for file in files]
        for feature, files in described.features.items()
    }
    programs = [
        Path(found)
        for feature, files in described.features.items()
        for found, file in zip(features[feature], files, strict=True)
        if "/" not in file
    ]
    variables = {
        key: str(_above(_find(name, tops, file), file)) for key, file in described.variables.items()
    }
    found = Registered(
        name=name,
        lock=places.digest(folder / places.LOCK),
        features=features,
        path=list(dict.fromkeys(str(file.parent) for file in programs)),
        variables=variables,
        prefixes=prefixes,
        spack=spack.version,
        packages=packages,
        built=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    )
    found.save(folder)
    return found


def _find(name: str, tops: list[Path], file: str) -> Path:
    """Where a program, or the file that ends so, lies. Raises Failed."""
    for top in tops:
        # All of /usr is no package's own: only what lies where it must.
        if (direct := top / ("" if "/" in file else "bin") / file).exists():
            return direct
        below = _below(top, DEPTH) if top != Path("/usr") else ()
        for path in sorted(below, key=lambda p: (len(p.parts), str(p))):
            if _is(path.relative_to(top), file):
                return path
    raise Failed(f"{name} is installed, and has no {file}")


def _is(path: Path, file: str) -> bool:
    """A program by its name; another file by the end of its path, with or without a version."""
    if "/" not in file:
        return path.name == file and path.parts[0] in ("bin", "sbin", "libexec")
    return f"/{path}".endswith(f"/{file}") or f"/{file}." in f"/{path}"


def _above(path: Path, file: str) -> Path:
    """The folder below which a file lies under this name."""
    return path.parents[file.count("/")]


def _below(top: Path, depth: int) -> Iterator[Path]:
    """The files below a folder, so many levels deep."""
    try:
        entries = list(os.scandir(top))
    except OSError:
        return
    for entry in entries:
        if entry.is_file():  # and no link to nothing
            yield Path(entry.path)
        elif depth > 1 and entry.is_dir():
            yield from _below(Path(entry.path), depth - 1)
