"""Software that is built here: where it is, its locks, and what is registered of it.

`siteproof build` writes the registration last, and checks read it. All is below the data folder, a
folder for each environment. The lock is Spack's JSON: `roots` (hash, spec) and `concrete_specs`,
by hash.

The environment folder that Spack works in: spack-envs/ joined with a site's configuration.

Only `include` names the site, so that its externals stay separate. What all environments share
comes after it, and our defaults have the lowest priority: the pinned packages, the target, and
folders below the data folder; a site may set its own in spack/.

The target is archspec's name of a processor: that of the nodes that run the environment, never this
host's. Where they differ, the newest target that runs on all of them counts; an environment for
each partition gives each its own.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import yaml
from pydantic import TypeAdapter, ValidationError

from siteproof import files
from siteproof.errors import UserError
from siteproof.sites import Site, key_types
from siteproof.sites.schema.yamlfile import MAX_BYTES
from siteproof.sites.system import Partition
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
        "view": {"default": {"root": VIEW, "link": "roots"}},
    }
    head = f"# Made by 'siteproof build' from spack-envs/{name}; changes to this file are lost.\n"
    return head + yaml.safe_dump({"spack": described}, sort_keys=False, width=1000)


def digest_of_inputs(inputs: Inputs) -> str:
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
    files.write(folder / INPUTS, f"{digest_of_inputs(inputs)}\n".encode(), below=folder)


def changed(inputs: Inputs, folder: Path) -> bool:
    """Whether the inputs of the lock have changed since."""
    try:
        before = files.read_text(folder / INPUTS, below=folder)
        return before.strip() != digest_of_inputs(inputs)
    except (OSError, UserError):
        return False  # a lock from another machine


def defaults(target: str, sources: Sources) -> dict[str, dict[str, Any]]:
    """The sections of our defaults, by file."""
    packages = env_files.versions().packages
    kept = sources.mirror and sources.mirror / RECIPES
    builtin = {
        "git": str(kept) if kept and kept.is_dir() else packages.git,
        "tag": packages.tag,
        "destination": str(recipes(packages.tag)),
    }
    folders = {"install_tree": {"root": str(store())}, "source_cache": str(cache() / "sources")}
    mirrors: dict[str, Any] = {}
    if sources.mirror:
        url = (sources.mirror / SOURCES).as_uri()
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
