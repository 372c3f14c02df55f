"""A folder with all that `siteproof build --mirror` needs on a site without network.

It holds the sources of every package of the locks, the recipes at their release, and the locks.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from siteproof.errors import UserError
from siteproof.spack import build, command, env_files, lock, places
from siteproof.spack.build import Order
from siteproof.spack.command import Failed, Spack

# In every lock that is made where the compiler is, and in none that is made elsewhere.
_ALWAYS = "compiler-wrapper"


def fill(order: Order, spack: Spack, mirror: Path) -> None:
    """Add one environment to a mirror: its sources, its lock, the recipes. Raises Failed."""
    kept = mirror / places.LOCKS / order.system / order.label
    create = ("mirror", "create", "-d", str(mirror / places.SOURCES))
    with build.alone(order.folder):
        build.lock_if_needed(order, spack)
        log, own = order.folder / command.LOG, order.folder / places.LOCK
        order.report("fetching its sources")
        spack.run(order.folder, *create, "--all", log=log, line=lambda text: None)
        locked = lock.read(own)
        if _ALWAYS not in {one.name for one in locked.all}:
            spack.run(order.folder, *create, _ALWAYS, log=log, line=lambda text: None)
        try:
            kept.mkdir(parents=True, exist_ok=True)
            (kept / places.LOCK).write_bytes(places.content(own))
        except OSError as error:
            raise UserError(kept, f"cannot be written: {error.strerror}") from None
        order.report(f"{len(locked.to_install)} packages and lock {places.digest(own)} are in it")


def keep_recipes(mirror: Path) -> bool:
    """Copy the recipes that Spack has fetched; False: the site's repos.yaml has others.

    Raises Failed.
    """
    fetched = places.recipes(env_files.versions().packages.tag)
    kept = mirror / places.RECIPES
    if fetched.is_dir() and not kept.exists():
        copy = ["git", "clone", "--quiet", "--bare", f"file://{fetched}", str(kept)]
        try:
            subprocess.run(copy, capture_output=True, text=True, timeout=600, check=True)
        except subprocess.CalledProcessError as error:
            raise Failed(f"git clone of {fetched} failed", error.stderr.splitlines()[:1]) from None
        except (OSError, subprocess.SubprocessError) as error:
            raise Failed(f"git clone of {fetched}: {error}") from None
    return kept.exists()
