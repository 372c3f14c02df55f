"""A folder with all that `siteproof build --mirror` needs on a site without network.

It holds the sources of every package of the locks, the recipes at their release, and the locks.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from siteproof.errors import UserError
from siteproof.spack import build, command, env_files, lock, places
from siteproof.spack.build import Order
from siteproof.spack.command import Failed, Spack

# Every lock has it that is made where the compiler is; one that is made elsewhere lacks it.
_WITH_COMPILER = "compiler-wrapper"


def fill(order: Order, spack: Spack, mirror: Path, *, absent: Sequence[str]) -> None:
    """Add one environment to a mirror: its sources, and its lock. Raises Failed, UserError.

    absent: externals of the system that are not on this machine. A lock that was made without them
    is good for the sources only: it lacks what Spack builds with a compiler that it has seen.
    """
    create = ("mirror", "create", "-d", str(mirror / places.SOURCES))
    with build.alone(order.folder):
        log, own = order.folder / command.LOG, order.folder / places.LOCK
        there = own.exists()
        try:
            build.lock_if_needed(order, spack)
            locked = lock.read(own)
            order.report("fetching its sources")
            spack.run(order.folder, *create, "--all", log=log, line=lambda text: None)
            if _WITH_COMPILER not in {one.name for one in locked.all}:
                words = (*create, _WITH_COMPILER)
                spack.run(order.folder, *words, log=log, line=lambda text: None)
            if there or not absent:
                _keep_lock(order, mirror)
        finally:
            if absent and not there:
                own.unlink(missing_ok=True)
        order.report(f"the sources of {len(locked.to_install)} packages are in the mirror")


def _keep_lock(order: Order, mirror: Path) -> None:
    kept = mirror / places.LOCKS / order.system / order.label
    try:
        kept.mkdir(parents=True, exist_ok=True)
        (kept / places.LOCK).write_bytes(places.content(order.folder / places.LOCK))
    except OSError as error:
        raise UserError(kept, f"cannot be written: {error.strerror}") from None


def keep_recipes(mirror: Path) -> bool:
    """Copy the recipes that Spack has fetched; False: the site's repos.yaml has others.

    Raises Failed.
    """
    tag = env_files.versions().packages.tag
    fetched, kept = places.recipes(tag), mirror / places.RECIPES
    if fetched.is_dir() and not has_tag(kept, tag):
        part = mirror / f".{places.RECIPES}.part"  # an interrupted copy is no mirror
        shutil.rmtree(part, ignore_errors=True)
        words = ("clone", "--quiet", "--bare", f"file://{fetched}", str(part))
        command.output("git clone", "git", *words)
        shutil.rmtree(kept, ignore_errors=True)
        part.rename(kept)
    return has_tag(kept, tag)


def has_tag(repository: Path, tag: str) -> bool:
    """Whether it is a repository with this release; one of an earlier mirror may lack it."""
    words = ("--git-dir", str(repository), "rev-parse", "--verify", "--quiet", f"refs/tags/{tag}")
    try:
        command.output("git rev-parse", "git", *words)
    except Failed:
        return False
    return True
