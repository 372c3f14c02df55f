"""Clones and machines for the tests of setup/, without network; a folder of two users."""

import hashlib
import os
import shutil
import time
from pathlib import Path

import pytest
from clone import CORE, TOP, USER, World, measured_once
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
        "renice",
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


@pytest.fixture(scope="session")
def measured(tmp_path_factory):
    """measured(name, measure, folder): a world as measure(world) has left it, and its answer.

    It is measured once for a run of the tests; folder: of a test, that gets a copy for itself.
    """
    top = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        top = top.parent  # of all workers

    def of(name, measure, folder):
        kept, done = measured_once(top / "measured", name, measure)
        world = World(folder)
        for part in ("sites", "data", "bin"):
            shutil.copytree(kept / part, folder / part, symlinks=True, dirs_exist_ok=True)
        return world, done

    return of


def healthy(world):
    """All that thishost promises, on recorded outputs."""
    world.recorded_likwid()
    world.recorded_hpcc()
    return world.reframe("-r", *CORE)


@pytest.fixture
def passed(measured, tmp_path):
    """A copy of a world in which everything was measured and is good."""
    world, done = measured("healthy", healthy, tmp_path)
    assert done.code == 0, done
    world.done = done
    return world


def really(world):
    """The real benchmarks of this machine, with what its user has exported."""
    (world.bin / "nproc").unlink()
    return world.reframe("-r", *CORE, "-S", "mode=quick", **USER)


@pytest.fixture
def real(measured, tmp_path):
    """A copy of a world in which the real benchmarks have measured."""
    for tool in ("hpcc", "mpirun", "likwid-bench"):
        if not shutil.which(tool):
            pytest.skip(f"REAL BENCHMARKS NOT TESTED: no {tool}")
    world, done = measured("real", really, tmp_path)
    assert done.code == 0, done
    return world


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
