"""Building one environment of a site: lock, install, register; each step once.

An interrupted build goes on where it was: Spack installs whole packages or none, and the
registration is written last. A mirror is a folder with all that `siteproof build --mirror` needs on
a site without network: the sources of every package of the locks, the recipes at their release,
and the locks.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from siteproof import files, locks
from siteproof.errors import UserError
from siteproof.spack import command, env_files, merge, registered
from siteproof.spack.command import Failed, Spack
from siteproof.spack.merge import Inputs, Sources
from siteproof.spack.registered import Lock, Registered

SHORT = 7  # characters of a hash that Spack prints
BUILDING = ".building"  # the lock
DEPTH = 6  # folders below a prefix: libexec/osu-micro-benchmarks/mpi/pt2pt and the like
_SLOW_STEPS = ("build", "configure", "cmake")  # they may take minutes


@dataclass(frozen=True)
class Order:
    """What to build: an environment of a site, and how.

    update: make a new lock. jobs: at a time; 0: as Spack is configured. push: what is built here
    goes into the cache. report: where each line of progress goes.
    """

    system: str
    inputs: Inputs
    update: bool
    jobs: int
    report: Callable[[str], None]
    sources: Sources = Sources()
    push: bool = False

    @property
    def folder(self) -> Path:
        """Where it is built."""
        return registered.folder(self.system, self.inputs.name, self.inputs.target)

    @property
    def label(self) -> str:
        """Its name in what is printed, and the name of its folder."""
        return registered.label(self.inputs.name, self.inputs.target)


def build(order: Order, spack: Spack) -> Registered:
    """Lock if need be, install what is missing, register. Raises Failed, UserError."""
    folder = order.folder
    with alone(folder):
        _take_lock(order, spack)
        lock_if_needed(order, spack)
        packages = _packages(spack, folder)
        locked = registered.read_lock(folder / registered.LOCK)
        progress = _Progress(order.report, len(locked.to_install))
        jobs = ("-j", str(order.jobs)) if order.jobs else ()
        (folder / registered.REGISTERED).unlink(missing_ok=True)
        spack.run(folder, "install", "--only-concrete", *jobs, line=progress)
        found = _register(spack, order.inputs.name, order.inputs.target, folder, packages)
        _report_origin(order, progress.installed, locked, found)
        if order.push:  # with what its programs need
            signed = "--unsigned" if order.sources.unsigned else "--signed"
            spack.run(folder, "buildcache", "push", "--update-index", signed, merge.CACHE)
            order.report(f"pushed to {order.sources.cache}")
        return found


def _take_lock(order: Order, spack: Spack) -> None:
    """Take the lock of the mirror, where there is none yet, and no new one is wanted."""
    mirror, own = order.sources.mirror, order.folder / registered.LOCK
    if mirror is None or order.update or own.exists():
        return
    kept = mirror / registered.LOCKS / order.system / order.label / registered.LOCK
    if not kept.is_file():
        return
    own.write_bytes(files.read_named(kept, files.OUTPUT))
    here = spack.ask(None, "arch", "--operating-system").strip()
    there = {build.os for build in registered.read_lock(own).to_install}
    if there <= {here}:
        order.report(f"takes the lock of the mirror: {registered.digest(own)}")
    else:
        own.unlink()
        order.report(f"the lock of the mirror is for {', '.join(sorted(there))}, not {here}")


def lock_if_needed(order: Order, spack: Spack) -> None:
    """Make the folder ready, and the lock if there is none or a new one is wanted."""
    anew = order.update or not (order.folder / registered.LOCK).exists()
    merge.write(order.inputs, order.sources, order.folder, anew=anew)
    if anew:
        _lock(order, spack)
    elif merge.changed(order.inputs, order.folder):
        order.report(
            "the inputs of the lock have changed since; the lock stays, and '--update' makes "
            "a new one"
        )


def _report_origin(order: Order, installed: set[str], locked: Lock, found: Registered) -> None:
    """Say which of the packages that were installed now came from the cache."""
    now = [build for build in locked.to_install if build.hash[:SHORT] in installed]
    # Spack keeps a note in what it has taken from a cache.
    notes = {key: Path(at) / ".spack" / "binary_distribution" for key, at in found.prefixes.items()}
    cached = [build for build in now if build.hash in notes and notes[build.hash].exists()]
    compiled = [build for build in now if build not in cached]
    if cached:
        order.report(f"from the cache: {', '.join(map(str, cached))}")
    if compiled and order.sources.cache:
        order.report(f"built here: {', '.join(map(str, compiled))}")


def _lock(order: Order, spack: Spack) -> None:
    """A new lock. The old one stays until there is one."""
    order.report("making its lock (a minute or so)")
    before = _content(order.folder / registered.LOCK)
    spack.run(order.folder, "concretize", "--force")
    merge.remember(order.inputs, order.folder)
    if before and before != _content(order.folder / registered.LOCK):
        order.report(f"a new lock: {registered.digest(order.folder / registered.LOCK)}")


def _content(path: Path) -> bytes:
    return registered.content(path) if path.exists() else b""


class _Progress:
    """Progress from Spack's output: slow steps, what is installed, and how many are left."""

    def __init__(self, report: Callable[[str], None], total: int) -> None:
        self.report, self.total = report, total
        self.installed: set[str] = set()  # by the first characters of their hashes

    def __call__(self, text: str) -> None:
        step = command.STEP.fullmatch(text.strip())
        if step is None:
            return
        mark, key, package, words, took = step.groups()
        if mark == "+":
            self.installed.add(key)
            self.report(
                f"{package} installed{f' in {took}' if took else ''} "
                f"({len(self.installed)} of at most {self.total})"
            )
        elif words in _SLOW_STEPS:
            self.report(f"{package}: {words}")


def _packages(spack: Spack, folder: Path) -> str:
    """The release of Spack's packages in use: the pinned one, or the site's own."""
    pinned = env_files.versions().packages.tag
    for line in spack.ask(folder, "repo", "list").splitlines():
        words = line.split()
        if words[1:2] == ["builtin"]:
            tag = _git("-C", words[-1], "describe", "--tags", "--exact-match", "HEAD") or ""
            return tag if tag == pinned else f"{tag or 'no release'} in {words[-1]}"
    raise Failed("Spack has no repository 'builtin'")


def _git(*words: str) -> str | None:
    """What git prints; None where it fails."""
    try:
        return command.output("git", "git", *words).strip()
    except Failed:
        return None


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """One build of an environment at a time. Raises UserError."""
    try:
        lock = locks.take(folder / BUILDING)
    except locks.Taken as error:
        raise UserError(
            folder, f"another process builds it: {error.where} is {error.what}", hint=error.hint
        ) from None
    except UserError as error:
        raise UserError(folder, error.what, hint="SITEPROOF_DATA may name another folder") from None
    with lock:
        yield


def state(system: str, inputs: Inputs) -> str:
    """The state of an environment, in a few words."""
    folder = registered.folder(system, inputs.name, inputs.target)
    if not (folder / registered.LOCK).exists():
        return "not built"
    try:
        found = registered.read(system, inputs.name, inputs.target)
        if found is None:
            locked = registered.digest(folder / registered.LOCK)
            return f"locked, not completely installed: lock {locked}"
        if differs := registered.difference(system, found):
            return f"differs from its lock: {differs}"
    except UserError as error:
        return error.what
    newer = "; a new lock would differ" if merge.changed(inputs, folder) else ""
    return f"built {found.built}, lock {found.lock}{newer}"


# ---- what it offers: its files in the view, and below the site's externals


def _register(spack: Spack, name: str, target: str, folder: Path, packages: str) -> Registered:
    """Register what the environment offers. Raises Failed if it lacks something."""
    locked = registered.read_lock(folder / registered.LOCK)
    externals = {build.hash: build.external for build in locked.roots if build.external}
    prefixes = externals | _installed(spack, folder, locked)
    if missing := registered.missing(locked.needed, prefixes):
        raise Failed(f"not installed: {', '.join(map(str, missing))}")
    tops = [folder / registered.VIEW, *map(Path, externals.values())]
    described = env_files.features(name)
    features: dict[str, list[str]] = {}
    folders = []  # of programs
    for feature, proofs in described.features.items():
        features[feature] = []
        for file in proofs:
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
        lock=registered.digest(folder / registered.LOCK),
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


def _find(name: str, tops: list[Path], file: str) -> Path:
    """The path of a program, or of a file whose path ends so. Raises Failed."""
    for top in tops:
        if (direct := top / ("" if "/" in file else "bin") / file).exists():
            return direct
        # /usr belongs to no single package: only the expected place counts.
        for depth in range(DEPTH) if top != Path("/usr") else ():
            for path in sorted(top.glob("*/" * depth + "*")):
                if _is(path.relative_to(top), file) and path.is_file():
                    return path
    raise Failed(f"{name} is installed, but {file} is not in it")


def _is(path: Path, file: str) -> bool:
    """A program by its name; another file by the end of its path, with or without a version."""
    if "/" not in file:
        return path.name == file and path.parts[0] in ("bin", "sbin", "libexec")
    return f"/{path}".endswith(f"/{file}") or f"/{file}." in f"/{path}"


# Every lock has it that is made where the compiler is; one that is made elsewhere lacks it.
_WITH_COMPILER = "compiler-wrapper"


def fill(order: Order, spack: Spack, mirror: Path, *, absent: Sequence[str]) -> None:
    """Add one environment to a mirror: its sources, and its lock. Raises Failed, UserError.

    absent: externals of the system that are not on this machine. A lock that was made without them
    is good for the sources only: it lacks what Spack builds with a compiler that it has seen.
    """
    create = ("mirror", "create", "-d", str(mirror / registered.SOURCES))
    with alone(order.folder):
        own = order.folder / registered.LOCK
        there = own.exists()
        try:
            lock_if_needed(order, spack)
            locked = registered.read_lock(own)
            order.report("fetching its sources")
            spack.run(order.folder, *create, "--all")
            if _WITH_COMPILER not in {one.name for one in locked.all}:
                spack.run(order.folder, *create, _WITH_COMPILER)
            if there or not absent:
                _keep_lock(order, mirror)
        finally:
            if absent and not there:
                own.unlink(missing_ok=True)
        order.report(f"the sources of {len(locked.to_install)} packages are in the mirror")


def _keep_lock(order: Order, mirror: Path) -> None:
    kept = mirror / registered.LOCKS / order.system / order.label
    try:
        kept.mkdir(parents=True, exist_ok=True)
        (kept / registered.LOCK).write_bytes(registered.content(order.folder / registered.LOCK))
    except OSError as error:
        raise UserError(kept, f"cannot be written: {error.strerror}") from None


def keep_recipes(mirror: Path) -> bool:
    """Copy the recipes that Spack has fetched; False: the site's repos.yaml has others.

    Raises Failed.
    """
    tag = env_files.versions().packages.tag
    fetched, kept = registered.recipes(tag), mirror / registered.RECIPES
    if fetched.is_dir() and not has_tag(kept, tag):
        part = mirror / f".{registered.RECIPES}.part"  # an interrupted copy is no mirror
        shutil.rmtree(part, ignore_errors=True)
        words = ("clone", "--quiet", "--bare", f"file://{fetched}", str(part))
        command.output("git clone", "git", *words)
        shutil.rmtree(kept, ignore_errors=True)
        part.rename(kept)
    return has_tag(kept, tag)


def has_tag(repository: Path, tag: str) -> bool:
    """Whether it is a repository with this release; one of an earlier mirror may lack it."""
    words = ("--git-dir", str(repository), "rev-parse", "--verify", "--quiet", f"refs/tags/{tag}")
    return _git(*words) is not None
