"""Clones and machines for the tests of setup/, without network; a folder of two users."""

import hashlib
import os
import shutil
import time
from pathlib import Path

import pytest
from clone import TOP, World
from setup_clone import program

PARTS = ("setup", "activate", "Makefile", "pyproject.toml")


@pytest.fixture
def clone(tmp_path):
    """A fresh clone, as far as setup goes, in a folder with a blank in its name."""
    folder = tmp_path / "my clone"
    folder.mkdir()
    for part in PARTS:
        copy = shutil.copytree if (TOP / part).is_dir() else shutil.copy
        copy(TOP / part, folder / part)
    return folder


@pytest.fixture
def ready(clone):
    """A clone whose .venv is what setup/venv leaves behind, with programs that do nothing."""
    venv = clone / ".venv"
    (venv / "bin").mkdir(parents=True)
    for name in ("python", "reframe", "siteproof", "pytest", "ruff", "mypy"):
        program(venv / "bin" / name, "exit 0")
    stamp = [str(clone)]
    for lock in ("requirements.lock", "tests.lock"):
        stamp.append(hashlib.sha256((clone / "setup" / lock).read_bytes()).hexdigest() + "  -")
    (venv / "siteproof-stamp").write_text("\n".join(stamp) + "\n")
    shutil.copy(clone / "pyproject.toml", venv)
    return clone


@pytest.fixture
def machine(tmp_path):
    """A bare Debian machine of root's: /etc and /proc are empty, apt-get only writes down calls."""
    bin_ = tmp_path / "bin"
    (tmp_path / "machine" / "proc").mkdir(parents=True)
    for name in (
        "sh",
        "bash",
        "awk",
        "cat",
        "cmp",
        "cut",
        "date",
        "dirname",
        "env",
        "flock",
        "git",
        "grep",
        "head",
        "ldconfig",
        "make",
        "mktemp",
        "python3",
        "readlink",
        "rm",
        "sed",
        "sha256sum",
        "sleep",
        "sort",
        "tail",
        "tee",
        "timeout",
        "tr",
        "mv",
    ):
        path = shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")
        bin_.mkdir(exist_ok=True)
        (bin_ / name).symlink_to(path)
    program(bin_ / "id", "echo 0")
    program(bin_ / "apt-cache", "exit 0")
    program(bin_ / "apt-get", f'echo "$*" >>"{tmp_path}/apt-calls"')
    return tmp_path


@pytest.fixture
def cluster(machine):
    """A machine that belongs to a cluster: nothing may be installed."""
    conf = machine / "machine/etc/slurm/slurm.conf"
    conf.parent.mkdir(parents=True)
    conf.touch()
    return machine


@pytest.fixture
def shared(tmp_path_factory):
    """A folder that other users can reach, as tmp_path is not."""
    if os.geteuid() or not shutil.which("setpriv"):
        pytest.skip("NOT TESTED: two users need root and setpriv")
    folder = Path("/var/tmp") / f"siteproof-test-{os.getpid()}-{time.time_ns()}"
    folder.mkdir(mode=0o755)
    world = World(folder)
    world.site()
    world.recorded_likwid()
    (folder / "home").chmod(0o777)
    yield world
    world.end_processes()
    shutil.rmtree(folder)
