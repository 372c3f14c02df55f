"""Building one environment of a site: lock, install, register; each step once.

An interrupted build goes on where it was: Spack installs whole packages or none, and the
registration is written last.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from siteproof import locks
from siteproof.errors import UserError
from siteproof.spack import command, env_files, lock, merge, offer, places, registered
from siteproof.spack.command import Failed, Spack
from siteproof.spack.registered import Registered

_STEP = re.compile(r"\[(.)\] (\w{7}) (\S+) (.*?) ?(?:\((\d\S*)\))?")
BUILDING = ".building"  # the lock
_SLOW_STEPS = ("build", "configure", "cmake")  # they may take minutes


@dataclass(frozen=True)
class Order:
    """What to build: an environment of a site, and how.

    scope: the site's folder of Spack's configuration. update: make a new lock. jobs: at a time;
    0: as Spack is configured. report: where each line of progress goes.
    """

    system: str
    name: str
    scope: Path
    update: bool
    jobs: int
    report: Callable[[str], None]

    @property
    def folder(self) -> Path:
        """Where it is built."""
        return places.folder(self.system, self.name)


def build(order: Order, spack: Spack) -> Registered:
    """Lock if need be, install what is missing, register. Raises Failed, UserError."""
    folder = order.folder
    with _alone(folder):
        log = folder / command.LOG
        anew = order.update or not (folder / places.LOCK).exists()
        merge.write(order.name, order.scope, folder, anew=anew)
        if anew:
            _lock(order, spack, log)
        elif merge.changed(order.name, order.scope, folder):
            order.report(
                "the inputs of the lock have changed since; the lock stays, and '--update' makes "
                "a new one"
            )
        packages = _packages(spack, folder)
        locked = lock.read(folder / places.LOCK)
        progress = _Progress(order.report, len(locked.to_install))
        jobs = ("-j", str(order.jobs)) if order.jobs else ()
        (folder / places.REGISTERED).unlink(missing_ok=True)
        spack.run(folder, "install", "--only-concrete", *jobs, log=log, line=progress)
        return offer.register(spack, order.name, folder, packages)


def _lock(order: Order, spack: Spack, log: Path) -> None:
    """A new lock. The old one stays until there is one."""
    order.report("making its lock (a minute or so)")
    before = _content(order.folder / places.LOCK)
    spack.run(order.folder, "concretize", "--force", log=log, line=lambda text: None)
    merge.remember(order.name, order.scope, order.folder)
    if before and before != _content(order.folder / places.LOCK):
        order.report(f"a new lock: {places.digest(order.folder / places.LOCK)}")


def _content(path: Path) -> bytes:
    return places.content(path) if path.exists() else b""


class _Progress:
    """Progress from Spack's output: slow steps, what is installed, and how many are left."""

    def __init__(self, report: Callable[[str], None], total: int) -> None:
        self.report, self.total, self.done = report, total, 0

    def __call__(self, text: str) -> None:
        step = _STEP.fullmatch(text.strip())
        if step is None:
            return
        mark, _, package, words, took = step.groups()
        if mark == "+":
            self.done += 1
            self.report(
                f"{package} installed{f' in {took}' if took else ''} "
                f"({self.done} of at most {self.total})"
            )
        elif mark == "x":
            self.report(f"{package} {words}")
        elif words in _SLOW_STEPS:
            self.report(f"{package}: {words}")


def _packages(spack: Spack, folder: Path) -> str:
    """The release of Spack's packages in use: the pinned one, or the site's own."""
    pinned = env_files.versions().packages.tag
    for line in spack.ask(folder, "repo", "list").splitlines():
        words = line.split()
        if words[1:2] == ["builtin"]:
            tag = _tag(words[-1])
            return tag if tag == pinned else f"{tag or 'no release'} in {words[-1]}"
    raise Failed("Spack has no repository 'builtin'")


def _tag(repository: str) -> str:
    """The tag of the commit that a repository has checked out; empty if there is none."""
    ask = ["git", "-C", repository, "describe", "--tags", "--exact-match", "HEAD"]
    try:
        return subprocess.run(
            ask, capture_output=True, text=True, timeout=60, check=True
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
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


def state(system: str, name: str, scope: Path) -> str:
    """The state of an environment, in a few words."""
    folder = places.folder(system, name)
    if not (folder / places.LOCK).exists():
        return "not built"
    try:
        found = registered.read(system, name)
        if found is None:
            return f"locked, not completely installed: lock {places.digest(folder / places.LOCK)}"
        if differs := registered.difference(system, found):
            return f"differs from its lock: {differs}"
    except UserError as error:
        return error.what
    newer = "; a new lock would differ" if merge.changed(name, scope, folder) else ""
    return f"built {found.built}, lock {found.lock}{newer}"
