"""Namespace on real folders of this machine: what a node lists, and what it leaves out."""

import json
import os
import shutil
import time
from pathlib import Path

import pytest

from siteproof.record import descriptions, samples
from siteproof.verdict.derived.bookkeeping import differing

RUN = ("-r", "-n", "Namespace")


@pytest.fixture
def disk(world):
    """The site's only file system, shared: a folder of the test's own, below /var/tmp."""
    folder = Path(f"/var/tmp/siteproof-pytest-{os.getpid()}-{time.time_ns()}")
    (folder / "run 1/deep/er").mkdir(parents=True)
    (folder / "run 1/line\nbreak").touch()
    (folder / "siteproof-test.x.n1.1.abc").mkdir()
    world.edit("system", "path: /var/tmp", f"shared: true, path: {folder}")
    world.disk, world.checks = folder, "checks/storage"
    yield world
    world.end_processes()
    shutil.rmtree(folder)


def listing(world):
    """The newest job's samples by metric, its conditions, and what it has listed."""
    path = max(world.samples(), key=lambda one: one.name)
    header, *lines = [json.loads(line) for line in path.read_text().splitlines()]
    head = samples.read(path)[0].header
    (paths,) = descriptions.read(descriptions.path_of(world.data / "perflogs", head)).values()
    return {line["metric"]: line["value"] for line in lines}, header["conditions"], list(paths)


def test_each_path_is_listed_once_and_our_own_are_left_out(disk):
    done = disk.reframe(*RUN)
    assert done.code == 0, done
    found, conditions, paths = listing(disk)
    assert found["Namespace.paths"] == "4"
    assert found["Namespace.digest"] == descriptions.digest(dict.fromkeys(paths, ""))
    assert sorted(paths) == ["run 1", "run 1/deep", "run 1/deep/er", "run 1/line%0Abreak"]
    assert conditions.items() >= {"folder": ".", "depth": "8"}.items()


def test_a_path_that_came_changes_the_digest_and_is_found_by_comparing(disk):
    disk.reframe(*RUN)
    before, _, paths = listing(disk)
    (disk.disk / "new").touch()
    disk.reframe(*RUN)
    after, _, more = listing(disk)
    assert before["Namespace.digest"] != after["Namespace.digest"]
    assert differing({"n1": paths, "n2": more}, 8) == {"new": ["n1"]}


def test_of_too_many_paths_the_upper_levels_are_listed(disk):
    done = disk.reframe(*RUN, "-S", "Namespace.max_paths=2")
    assert done.code == 0, done
    found, conditions, paths = listing(disk)
    assert (paths, conditions["depth"]) == (["run 1"], "1")


def test_a_folder_with_too_many_paths_is_an_error_that_names_the_limit(disk):
    (disk.disk / "second").touch()
    done = disk.reframe(*RUN, "-S", "Namespace.max_paths=1")
    assert done.code == 1
    assert "more than 1 paths" in done.out


def test_a_folder_of_the_file_system_is_listed_alone(disk):
    done = disk.reframe(*RUN, "-S", "Namespace.folder=run 1/deep")
    assert done.code == 0, done
    found, conditions, paths = listing(disk)
    assert (paths, conditions["folder"]) == (["er"], "run 1/deep")


def test_a_folder_elsewhere_is_refused(disk):
    for folder in ("/etc", "../other", "a/.."):
        done = disk.reframe(*RUN, "-S", f"Namespace.folder={folder}")
        assert done.code == 2, folder
        assert "is not a valid path" in done.err, folder


def test_what_nodes_do_not_share_is_not_compared(world):
    done = world.reframe(*RUN)
    assert "temporary is not shared: each node has files of its own" in done.out
    assert "temporary is of kind any, not lustre" in world.reframe("-r", "-n", "Lustre").out
    told = world.siteproof("plan", "-n", "Namespace|Lustre|Health").out
    assert "the file system is not shared: each node has files of its own: Namespace" in told
