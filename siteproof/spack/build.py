"""Building one environment of a site: lock, install, register; each step once.

An interrupted build goes on where it was: Spack installs whole packages or none, and the
registration is written last. A mirror is a folder with all that `siteproof build --mirror` needs on
a site without network: the sources of every package of the locks, the recipes at their release,
and the locks.

Spack as a program: which one, whether it is the pinned release, and how it is run.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

from siteproof import files, locks
from siteproof.errors import UserError, harmless
from siteproof.spack import env_files, registered
from siteproof.spack.registered import Inputs, Lock, Registered, Sources

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
            spack.run(folder, "buildcache", "push", "--update-index", signed, registered.CACHE)
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
    registered.write(order.inputs, order.sources, order.folder, anew=anew)
    if anew:
        _lock(order, spack)
    elif registered.changed(order.inputs, order.folder):
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
    registered.remember(order.inputs, order.folder)
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
        step = STEP.fullmatch(text.strip())
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
        return output("git", "git", *words).strip()
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
    newer = "; a new lock would differ" if registered.changed(inputs, folder) else ""
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
        output("git clone", "git", *words)
        shutil.rmtree(kept, ignore_errors=True)
        part.rename(kept)
    return has_tag(kept, tag)


def has_tag(repository: Path, tag: str) -> bool:
    """Whether it is a repository with this release; one of an earlier mirror may lack it."""
    words = ("--git-dir", str(repository), "rev-parse", "--verify", "--quiet", f"refs/tags/{tag}")
    return _git(*words) is not None


LOG = "build.log"
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # HUP: the terminal was lost
_VERSION = re.compile(r"\d+\.\d+\.\d+\S*")
_ERRORS, _LENGTH = 5, 200  # lines of a failed build that are printed, and characters of each
_PATH = 4096  # characters of the longest path on Linux
# Spack's progress: [mark] hash package step-or-prefix (time).
STEP = re.compile(r"\[(.)\] (\w{7}) (\S+) (.*?) ?(?:\((\d\S*)\))?")
_MARK = "> "  # how Spack marks the lines of a build's log that are errors

_NAMES_ERROR = re.compile(r"\berror\b|\bfailed\b|Error:", re.IGNORECASE)


class Failed(Exception):
    """Spack ended with an error: what failed in one line, and then the lines that say why."""

    def __init__(self, what: str, why: Sequence[str] = ()) -> None:
        self.why = list(why)
        super().__init__(what)


def settings() -> dict[str, str]:
    """The variables that Spack runs with; nothing of it is read or written in a user's home.

    The configuration in a home is not the site's: each user's lock would differ.
    """
    own = {"SPACK_DISABLE_LOCAL_CONFIG": "1", "SPACK_COLOR": "never"}
    kept = {"SPACK_USER_CACHE_PATH": str(registered.cache())}
    return kept | os.environ | own


class Spack:
    """The Spack of this shell: on PATH, or below $SPACK_ROOT."""

    def __init__(self, program: str, version: str) -> None:
        self.program, self.version = program, version

    def run(
        self, folder: Path, *words: str, line: Callable[[str], None] = lambda _text: None
    ) -> None:
        """Run in an environment's folder; each line of its output is passed to `line`, and logged.

        Raises Failed. Ctrl-C is passed to Spack, and waits until it has cleaned up.
        """
        command, log = [self.program, "-D", str(folder), *words], folder / LOG
        with open(log, "a", encoding="utf-8", opener=files.no_link) as file:  # noqa: PTH123
            file.write(f"$ {' '.join(command)}\n")
            printed, code = _stream(command, folder, file.write, line)
        if code:
            what, why = _failure(printed, code)
            raise Failed(what, [*why, f"all output: {log}"])

    def ask(self, folder: Path | None, *words: str) -> str:
        """Spack's output for an environment, or for none. Raises Failed."""
        where = ["-D", str(folder)] if folder else []
        return output(f"spack {words[0]}", self.program, *where, *words)


def output(what: str, *command: str) -> str:
    """What a command prints. what: its name in an error. Raises Failed."""
    try:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            env=settings(),
            timeout=600,
            check=True,
        ).stdout
    except subprocess.CalledProcessError as error:
        lines = [harmless(text) for text in error.stderr.splitlines()]
        reason, why = _failure(lines, error.returncode)
        raise Failed(f"{what}: {reason}", why) from None
    except (OSError, subprocess.SubprocessError) as error:
        raise Failed(f"{what}: {error}") from None


def _stream(
    command: Sequence[str],
    folder: Path,
    write: Callable[[str], object],
    line: Callable[[str], None],
) -> tuple[list[str], int]:
    """Run it in a folder: all lines that it prints, passed on at once, and its exit code."""
    printed: list[str] = []
    process: subprocess.Popen[str] | None = None
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)  # or one could come before `process` is set
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=settings(),
            text=True,
            errors="replace",
            cwd=folder,  # some recipes leave files in the current folder
            preexec_fn=_hear,
        )
        _hear()
        for text in process.stdout or ():
            write(text)
            printed.append(harmless(text.rstrip("\n")))
            line(printed[-1])
        return printed, process.wait()
    except KeyboardInterrupt:
        if process:
            process.send_signal(signal.SIGINT)
            process.wait()
        raise


def _hear() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)


def _failure(printed: Sequence[str], code: int) -> tuple[str, list[str]]:
    """What failed, and the lines that say why.

    A failed build: the package and its phase, the lines of its log that Spack marks as errors, and
    where the log is. Anything else: the line in which Spack names the error, and those after it.
    """
    phases: dict[str, str] = {}
    for number, text in enumerate(printed):
        if not (step := STEP.fullmatch(text.strip())):
            continue
        mark, _, package, words, _ = step.groups()
        if mark == "x":
            what = f"{package} failed in its phase {phases.get(package, 'staging')}"
            log = words.removeprefix("failed").removeprefix(": ")
            of_log = [f"log of the package: {log[:_PATH]}"] if log else []
            return what, [*_error_lines(printed[number + 1 :]), *of_log]
        phases[package] = words
    for number, text in enumerate(printed):
        if text.startswith("==> Error:"):
            return text.removeprefix("==> Error: ")[:_LENGTH], _bounded(printed[number + 1 :])
    return f"exit code {code}", _bounded(printed[-_ERRORS:])


def _error_lines(printed: Sequence[str]) -> list[str]:
    """Of the part of a log that Spack prints: what it marks as errors, or else what names one."""
    part = [text for text in printed if not text.startswith(("==>", "-- lines"))]
    marked = [text.removeprefix(_MARK) for text in part if text.startswith(_MARK)]
    marked = [text for text in marked if text.strip()]
    named = [text for text in part if _NAMES_ERROR.search(text)]
    return _bounded(marked or named or part[-_ERRORS:])


def _bounded(lines: Iterable[str]) -> list[str]:
    """The first few of these lines, none of them long or empty, and how many more there are."""
    found = [text.strip()[:_LENGTH] for text in lines if text.strip()]
    more = [f"… and {len(found) - _ERRORS} more"] if len(found) > _ERRORS else []
    return found[:_ERRORS] + more


def find(other: bool = False) -> Spack:
    """The Spack of this shell. Raises UserError, with the command that gets the pinned release.

    other: take another release, too.
    """
    root = os.environ.get("SPACK_ROOT", "")
    program = shutil.which("spack") or (root and shutil.which("spack", path=f"{root}/bin"))
    if not program:
        _refuse("not on PATH, and not below $SPACK_ROOT")
    try:
        found = _VERSION.match(output(f"{program} --version", program, "--version").strip())
    except Failed as error:
        _refuse(str(error))
    if not found:
        _refuse(f"{program} --version prints no version")
    if found[0] != env_files.versions().release and not other:
        _refuse(
            f"{program} is {found[0]}, not {env_files.versions().release}",
            "; or use --other-spack to take this one",
        )
    return Spack(program, found[0])


def _refuse(what: str, more: str = "") -> NoReturn:
    pinned = env_files.versions().spack
    clone = f"git clone --depth 1 --branch {pinned.tag} {pinned.git}"
    raise UserError("spack", what, hint=f"Run '{clone} && . spack/share/spack/setup-env.sh'{more}")
