"""Virtual environments in the cache, of what a lock names with its hashes."""

import fcntl
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from errors import TestbedError

from serving.place import ENVIRONMENT, TAIL, Place
from serving.s3 import _of_network


def installed(place: Place, lock: Path, sources: Sequence[str] = ()) -> Path:
    """The virtual environment of a lock, made once; its name is the lock's.

    sources: packages that have no wheel, and are built here. Raises TestbedError.
    """
    place.cache.mkdir(parents=True, exist_ok=True)
    venv = place.cache / lock.stem
    with (place.cache / f"{lock.stem}.flock").open("w") as one_at_a_time:
        fcntl.flock(one_at_a_time, fcntl.LOCK_EX)
        mark = venv / lock.name
        if not mark.exists() or mark.read_bytes() != lock.read_bytes():
            shutil.rmtree(venv, ignore_errors=True)
            _install(place.name, venv, lock, sources)
            shutil.copyfile(lock, mark)
    return venv


def _install(name: str, venv: Path, lock: Path, sources: Sequence[str]) -> None:
    pip = [sys.executable, "-m", "pip", "--python", f"{venv}/bin/python", "install", "--quiet"]
    built = [f"--no-binary={package}" for package in sources]
    for argv in (
        [sys.executable, "-m", "venv", "--without-pip", str(venv)],
        [*pip, "--require-hashes", "--only-binary=:all:", *built, "-r", str(lock)],
    ):
        env = _of_network() | ENVIRONMENT
        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
        if done.returncode:
            what = " ".join(done.stderr.split())[-TAIL:]
            raise TestbedError(f"{name}: {lock.stem} cannot be installed: {what}")
