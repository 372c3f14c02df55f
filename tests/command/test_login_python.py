"""setup/venv on login nodes as they are: old python3, wheels for another Python, no locks.

A program stands for each Python that is chosen: the tests need no network. Where this machine has a
real Python 3.6 or 3.9 (pyenv), that one is python3; elsewhere a program that prints its version.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from clone import TOP
from packaging.specifiers import SpecifierSet
from setup_clone import program, run, sourced

PURE = "click-8.5.1-py3-none-any.whl"
OLD = {"3.6": "Python 3.6.8", "3.9": "Python 3.9.21"}


@pytest.fixture(scope="module")
def commands(tmp_path_factory):
    """The commands of this machine without its Pythons."""
    bin_ = tmp_path_factory.mktemp("commands")
    for found in [*Path("/bin").iterdir(), *Path("/usr/bin").iterdir()]:
        if not found.name.startswith("python") and not (bin_ / found.name).is_symlink():
            (bin_ / found.name).symlink_to(found)
    return bin_


@pytest.fixture
def node(tmp_path, commands, monkeypatch):
    """A login node with these commands: first on PATH a folder in which 3.6 is python3."""
    bin_ = tmp_path / "usr-bin"
    bin_.mkdir()
    old_python(bin_, "3.6")
    monkeypatch.setenv("PATH", f"{bin_}:{commands}")
    return bin_


def old_python(bin_, version):
    """Make python3 an old one: real where there is one, else a program that prints its version."""
    (bin_ / "python3").unlink(missing_ok=True)
    real = next(Path("~/.pyenv/versions").expanduser().glob(f"{version}.*/bin/python3"), None)
    if real:
        (bin_ / "python3").symlink_to(real)
    else:
        program(bin_ / "python3", f'[ "$1" = --version ] && echo "{OLD[version]}" || exit 1')


def new_python(bin_, minor, name=""):
    """A program that answers as CPython 3.MINOR does, and ends when it should make .venv."""
    program(
        bin_ / (name or f"python3.{minor}"),
        f"""case "$*" in
        --version) echo "Python 3.{minor}.1" ;;
        *version_info*) [ {minor} -le "$4" ] && echo "{minor} $0" ;;
        *ensurepip*) exit 0 ;;
        *) exit 1 ;; esac""",
    )


def made(clone, node, *words, **variables):
    """What setup/venv printed."""
    return run(clone / "setup/venv", *words, **variables).stdout


def wheels(folder, *names):
    """A folder of files with these names."""
    folder.mkdir()
    for name in names:
        (folder / name).touch()
    return folder


def compiled(python, platform="manylinux_2_27_x86_64.manylinux_2_28_x86_64"):
    return f"numpy-2.5.5-cp3{python}-cp3{python}-{platform}.whl"


# which Python


@pytest.mark.parametrize("old", OLD)
def test_a_new_python_is_found_although_python3_is_old(old, clone, node):
    old_python(node, old)
    new_python(node, 12)
    assert "making .venv with Python 3.12.1" in made(clone, node)


def test_the_newest_python_is_taken_and_python3_itself_first(clone, node):
    new_python(node, 11)
    new_python(node, 13)
    assert "making .venv with Python 3.13.1" in made(clone, node)
    (node / "python3").unlink()
    new_python(node, 12, "python3")
    assert "making .venv with Python 3.12.1" in made(clone, node)


def test_a_python_that_the_lock_refuses_is_passed_over(clone, node):
    new_python(node, 14, "python3")
    done = run(clone / "setup/venv")
    assert (done.returncode, done.stdout.count("\n")) == (2, 1)
    assert "Python 3.11 to 3.13 is required, and python3 is Python 3.14.1:" in done.stdout
    new_python(node, 12)
    assert "making .venv with Python 3.12.1" in made(clone, node)


def test_the_newest_python_is_one_that_every_library_takes():
    newest = re.search(r"^NEWEST=(\d+)", (TOP / "setup/python.sh").read_text(), re.M)[1]
    for library in metadata.distributions():
        limits = SpecifierSet(library.metadata.get("Requires-Python") or "")
        assert limits.contains(f"3.{newest}.0"), library.name


@pytest.mark.parametrize("old", OLD)
def test_one_line_says_which_python_is_needed(old, clone, node):
    old_python(node, old)
    done = run(clone / "setup/venv")
    assert (done.returncode, done.stdout.count("\n")) == (2, 1)
    assert re.search(rf"Python 3.11 to 3.13 is required, and python3 is Python {old}", done.stdout)
    assert "RHEL: python3.12, SLES 15: python311, or a module" in done.stdout
    assert not (clone / ".venv").exists()


def test_a_python_that_is_asked_for_is_the_only_one(clone, node):
    new_python(node, 12)
    assert "python3 is Python 3.6" in made(clone, node, PYTHON=str(node / "python3"))


# wheels


@pytest.mark.parametrize(
    "name",
    [
        compiled(12),
        compiled(12, "manylinux2014_x86_64.manylinux_2_17_x86_64"),
        compiled(12, "manylinux1_x86_64"),
        compiled(12, "linux_x86_64"),
        "duckdb-2.0.0-cp312-abi3-manylinux_2_28_x86_64.whl",
    ],
)
def test_the_python_is_the_one_that_the_wheels_are_for(name, clone, node, tmp_path):
    program(node / "uname", "echo x86_64")
    folder = wheels(tmp_path / "wheels", PURE, "rich-1.0-py2.py3-none-any.whl", name)
    new_python(node, 11, "python3")
    new_python(node, 12)
    assert "making .venv with Python 3.12.1" in made(clone, node, "--wheels", folder)


def test_wheels_for_two_pythons_serve_both(clone, node, tmp_path):
    program(node / "uname", "echo x86_64")
    folder = wheels(tmp_path / "wheels", PURE, compiled(11), compiled(12))
    new_python(node, 11)
    assert "making .venv with Python 3.11.1" in made(clone, node, "--wheels", folder)


def refused(clone, node, folder):
    done = run(clone / "setup/venv", "--wheels", folder)
    assert (done.returncode, done.stdout.count("\n")) == (2, 1), done.stdout
    assert not (clone / ".venv").exists()
    return done.stdout


def test_wheels_for_another_python_name_the_command_that_fetches_others(clone, node, tmp_path):
    program(node / "uname", "echo x86_64")
    program(node / "getconf", "echo glibc 2.28")
    new_python(node, 12)
    said = refused(clone, node, wheels(tmp_path / "wheels", PURE, compiled(13)))
    assert "has wheels for Python 3.13, x86_64" in said
    assert f"here: Python 3.12 ({node}/python3.12), x86_64, glibc 2.28" in said
    assert "run: setup/wheels DIR --python-version 3.12;" in said


def test_wheels_for_a_python_that_is_not_here_name_it(clone, node, tmp_path):
    program(node / "uname", "echo x86_64")
    said = refused(clone, node, wheels(tmp_path / "wheels", PURE, compiled(12)))
    assert (
        "Python 3.11 to 3.13 is required (3.12 for these wheels), and python3 is Python 3.6" in said
    )


def test_wheels_for_another_processor_are_fetched_by_platform(clone, node, tmp_path):
    program(node / "uname", "echo aarch64")
    new_python(node, 12)
    said = refused(clone, node, wheels(tmp_path / "wheels", PURE, compiled(12)))
    assert "--python-version 3.12 --platform manylinux_2_28_aarch64;" in said


def test_wheels_for_a_newer_glibc_say_so(clone, node, tmp_path):
    program(node / "uname", "echo x86_64")
    program(node / "getconf", "echo glibc 2.28")
    new_python(node, 12)
    folder = wheels(tmp_path / "wheels", PURE, compiled(12, "manylinux_2_34_x86_64"))
    said = refused(clone, node, folder)
    assert "has wheels for Python 3.12, x86_64, glibc 2.34 or newer" in said
    assert "glibc 2.28" in said


def fetched(ready, tmp_path, *options):
    """pip's options and lock of setup/wheels; pip itself is a module that keeps them."""
    pip = tmp_path / "fake/pip"
    (pip / "_vendor").mkdir(parents=True)
    packaging = Path(sys.prefix).glob("lib/python3*/site-packages/pip/_vendor/packaging")
    shutil.copytree(next(packaging), pip / "_vendor/packaging")
    for package in (pip, pip / "_vendor"):
        (package / "__init__.py").touch()
    (pip / "__main__.py").write_text(
        "import pathlib, sys\nout = pathlib.Path(__file__).parent\n"
        "(out / 'words').write_text('\\n'.join(sys.argv))\n"
        "lock = sys.argv[sys.argv.index('--requirement') + 1]\n"
        "(out / 'lock').write_text(pathlib.Path(lock).read_text())\n"
    )
    program(
        ready / ".venv/bin/python",
        f"""[ "$2" = "import click" ] && exit
        PYTHONPATH="{pip.parent}" exec {sys.executable} -S "$@\"""",
    )
    done = run(ready / "setup/wheels", tmp_path / "wheels", *options)
    assert (pip / "lock").exists(), done.stdout
    return (pip / "words").read_text().split("\n"), (pip / "lock").read_text()


@pytest.mark.parametrize(("version", "numpy"), [("3.11", "2.4.6"), ("3.12", "2.5.5")])
def test_wheels_are_those_that_the_lock_has_for_the_other_python(version, numpy, ready, tmp_path):
    (ready / "setup/requirements.lock").write_text(
        "# made\nnumpy==2.4.6 ; python_full_version < '3.12' \\\n    --hash=sha256:a\n"
        "numpy==2.5.5 ; python_full_version >= '3.12' \\\n    --hash=sha256:b\n"
        "pip==26.3 \\\n    --hash=sha256:c\n"
    )
    renewed(ready)
    words, lock = fetched(ready, tmp_path, "--python-version", version)
    assert re.findall(r"^(\w+==\S+)", lock, re.MULTILINE) == [f"numpy=={numpy}", "pip==26.3"]
    assert words[words.index("--python-version") + 1] == version


def test_wheels_run_with_the_glibc_of_rhel_8(ready, tmp_path):
    words, _ = fetched(ready, tmp_path, "--platform", "manylinux_2_28_aarch64")
    platforms = {b for a, b in zip(words, words[1:], strict=False) if a == "--platform"}
    assert {"manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64"} < platforms
    assert not [name for name in platforms if re.search(r"2_(29|3\d)|x86_64", name)]


# what a pull leaves behind


def renewed(clone):
    """Write the stamp anew, as setup/venv does."""
    stamp = [str(clone)]
    for lock in ("requirements.lock", "tests.lock"):
        stamp.append(hashlib.sha256((clone / "setup" / lock).read_bytes()).hexdigest() + "  -")
    (clone / ".venv/siteproof-stamp").write_text("\n".join(stamp) + "\n")


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_activate_refuses_a_venv_of_another_lock(shell, ready):
    with (ready / "setup/requirements.lock").open("a") as lock:
        lock.write("# pulled\n")
    done = sourced(shell, f'. "{ready}/activate"; echo "code $?"')
    assert done.stdout == (
        "siteproof: .venv is not that of setup/requirements.lock: run 'make venv' in "
        f"{ready} (without network: setup/venv --wheels DIR)\ncode 2\n"
    )


@pytest.fixture
def pulled(tmp_path):
    """A clone with a real Python in .venv, which was made from another lock."""
    clone = tmp_path / "pulled"
    for name in ("siteproof", "checks", "setup"):
        shutil.copytree(TOP / name, clone / name)
    shutil.copy(TOP / "reframe_settings.py", clone)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", clone / ".venv"], check=True)
    (clone / ".venv/siteproof-stamp").write_text(f"{clone}\n{'0' * 64}  -\n")
    return clone


def in_venv(clone, code):
    packages = next(Path(sys.prefix).glob("lib/python3*/site-packages"))
    env = {
        "PYTHONPATH": f"{clone}:{packages}",
        "PATH": os.environ["PATH"],
        "HOME": "/dev/null/home",
    }
    return subprocess.run(
        [clone / ".venv/bin/python", "-c", code], env=env, cwd="/", capture_output=True, text=True
    )


LOCKED = [
    "import sys; sys.argv[1:] = ['history']; from siteproof.cli import main; main()",
    "import runpy; runpy.run_path('{clone}/reframe_settings.py')",
]


def test_every_command_refuses_a_venv_of_another_lock_and_a_copy_without_checks(pulled):
    for code in LOCKED:
        done = in_venv(pulled, code.format(clone=pulled))
        assert (done.returncode, done.stdout) == (2, ""), code
        assert done.stderr == (
            f"siteproof: {pulled}/.venv is not that of setup/requirements.lock: run 'make venv' "
            f"in {pulled} (without network: setup/venv --wheels DIR)\n"
        )
    shutil.rmtree(pulled / "checks")
    done = in_venv(pulled, "from siteproof.cli import main; main()")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "has no checks: run 'make venv' in a clone" in done.stderr


# a file system without locks, and a private umask


def test_venv_is_made_where_locks_are_refused(ready, tmp_path):
    """Imitated: flock(2) ends with ENOLCK, as on NFS without its lock daemon."""
    source = tmp_path / "no_locks.c"
    source.write_text(
        "#include <errno.h>\nint flock(int f, int o) { errno = ENOLCK; return -1; }\n"
    )
    library = tmp_path / "no_locks.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    done = run(ready / "setup/venv", LD_PRELOAD=str(library))
    assert done.returncode == 0
    assert done.stdout.startswith("siteproof: warning: this file system has no locks (flock: 9: ")
    assert done.stdout.count("\n") == 1


# what tests need


def test_a_venv_with_tests_keeps_them_and_one_without_gets_them_when_asked(ready, tmp_path):
    new_python(tmp_path, 12)
    assert run(ready / "setup/venv").stdout == ""
    (ready / ".venv/bin/pytest").unlink()
    stamp = (ready / ".venv/siteproof-stamp").read_text().splitlines()
    (ready / ".venv/siteproof-stamp").write_text("\n".join(stamp[:2]) + "\n")
    assert run(ready / "setup/venv").stdout == ""
    assert (
        "making .venv"
        in run(ready / "setup/venv", "--tests", PYTHON=str(tmp_path / "python3.12")).stdout
    )


def test_the_lock_of_a_site_has_no_tools_of_tests():
    pins = {
        lock: set(re.findall(r"^([a-z][\w-]*)==", (TOP / "setup" / lock).read_text(), re.MULTILINE))
        for lock in ("requirements.lock", "tests.lock")
    }
    tools = {"pytest", "pytest-xdist", "hypothesis", "mypy", "ruff", "mpi4py", "complexipy"}
    assert tools <= pins["tests.lock"]
    assert (
        pins["requirements.lock"] & (pins["tests.lock"] | {"polars", "polars-runtime-32"}) == set()
    )
