"""A check that is not where the catalogue says is named, whatever became of its file."""

import shutil

import pytest
from clone import TOP

from siteproof.sites import catalogue, load
from siteproof.sweeps.keys import SWEEPS_ONLY

TABLE = catalogue.read()[0]


@pytest.fixture
def root(tmp_path):
    """A folder with the checks of the clone, and its package."""
    shutil.copytree(TOP / "checks", tmp_path / "checks")
    (tmp_path / "siteproof").symlink_to(TOP / "siteproof")
    return tmp_path


def lost(root):
    return {name: str(one) for name, one in catalogue.lost(TABLE, SWEEPS_ONLY, root).items()}


def test_every_check_of_the_catalogue_is_in_its_file(root):
    assert lost(root) == {}


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("class Stream(", "class Strem(", "has no class Stream"),
        ("@rfm.simple_test\n", "", "has Stream without @rfm.simple_test"),
        ("class Stream(", "class Stream(:", "is not valid Python (line"),
        ("class Stream(", "\0", "is not valid Python"),
        ("class Stream(", "(" * 300, "is not valid Python"),
    ],
    ids=["renamed", "unmarked", "syntax", "nul", "deep"],
)
def test_a_file_without_its_check_is_named(root, old, new, told):
    path = root / "checks/cpu/stream.py"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    found = lost(root)
    assert list(found) == ["Stream"]
    assert found["Stream"].startswith(f"checks/cpu/stream.py {told}")


def test_a_file_that_is_gone_or_no_file_is_named(root):
    path = root / "checks/cpu/stream.py"
    path.unlink()
    assert lost(root) == {"Stream": "checks/cpu/stream.py does not exist"}
    path.symlink_to("/nowhere/stream.py")
    assert lost(root) == {"Stream": "checks/cpu/stream.py does not exist"}
    path.unlink()
    path.mkdir()
    assert lost(root) == {"Stream": "checks/cpu/stream.py is a folder"}


def test_a_link_to_a_file_with_the_check_is_as_good_as_the_file(root):
    path = root / "checks/cpu/stream.py"
    path.rename(root / "stream.py")
    path.symlink_to(root / "stream.py")
    assert lost(root) == {}


def test_a_class_that_only_sweeps_use_needs_no_mark(root):
    (root / "checks/storage/fio_sweep.py").unlink()
    assert lost(root) == {"FioSweep": "checks/storage/fio_sweep.py does not exist"}


def test_a_check_in_another_file_is_lost_to_the_catalogue_and_not_gone(root):
    path = root / "checks/cpu/stream.py"
    path.rename(root / "checks/network/memory.py")
    (one,) = catalogue.lost(TABLE, SWEEPS_ONLY, root).values()
    assert one.elsewhere == "checks/network/memory.py"
    assert catalogue.missing(TABLE, SWEEPS_ONLY, root) == {}


def test_lint_names_the_check_its_metrics_and_who_needs_it(root, monkeypatch):
    monkeypatch.chdir(TOP)
    (root / "checks/cpu/stream.py").unlink()
    (root / "checks/storage/fio_sweep.py").unlink()
    sweeps = {"FioSweep": ["fio_depth"]}
    told = catalogue.lint([load("thishost")], sweeps, SWEEPS_ONLY, root)
    stream, fio = sorted(map(str, told))
    assert "fio_sweep.py does not exist, so nothing measures FioSweep." in fio
    assert "needed by the sweeps fio_depth" in fio
    assert stream.startswith("checks/cpu/catalogue.yaml:")
    assert "stream.py does not exist, so nothing measures Stream.triad, Stream.copy" in stream
    assert "needed by HERE-STREAM of thishost in Stream.triad.file" in stream


def test_lint_names_the_file_in_which_a_check_is_now(root):
    (root / "checks/cpu/stream.py").rename(root / "checks/network/memory.py")
    (told,) = catalogue.lint([], {}, SWEEPS_ONLY, root)
    assert "Name checks/network/memory.py, which has Stream" in str(told)
