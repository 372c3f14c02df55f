"""Checks that are not what the catalogue says: broken, gone, moved; what the real ReFrame tells."""

import json
import os
import shutil

import pytest
from clone import LOADED, TOP, copy_clone

LESS = (  # root reads everything
    ["setpriv", "--inh-caps=-all", "--bounding-set=-dac_override,-dac_read_search"]
    if os.geteuid() == 0
    else []
)
STREAM = "checks/cpu/stream.py"


@pytest.fixture(scope="module")
def loaded_copy(tmp_path_factory):
    """A copy of the clone, whose ReFrame is loaded once."""
    clone = copy_clone(tmp_path_factory.mktemp("copied") / "clone")
    LOADED.add(clone)
    return clone


@pytest.fixture
def copied(good, loaded_copy):
    """A world of that copy, with all its checks."""
    shutil.rmtree(loaded_copy / "checks")
    shutil.copytree(TOP / "checks", loaded_copy / "checks")
    good.clone = loaded_copy
    return good


def broken(text, old, new):
    assert old in text
    return text.replace(old, new)


BREAKS = [
    (
        "import reframe as rfm",
        "import reframe as rfm\nimport not_there",
        "No module named 'not_there'",
    ),
    ("class Stream(", "class Strem(", "has no check Stream"),
    ("@rfm.simple_test", "", "has no check Stream"),
    ('("copy", "triad")', '("copy", "quad")', "has no check Stream"),
    ("class Stream(", "class Stream(:", "stream.py:{line}: cannot be loaded: invalid"),
    ("class Stream(", "\0", "cannot be loaded"),
    ("@rfm", "raise ValueError('no')\n@rfm", "ValueError: no"),
]


def test_a_broken_check_ends_the_run(copied):
    path = copied.clone / STREAM
    text = path.read_text()
    for old, new, told in BREAKS:
        path.write_text(broken(text, old, new))
        told = told.format(line=1 + text[: text.index(old)].count("\n"))
        assert told in copied.reframe("-r").refused(), new
    assert told in copied.reframe("-l").refused()


def test_a_check_that_is_gone_is_told_by_the_verdict(copied):
    good = copied
    (good.clone / STREAM).unlink()
    done = good.reframe("-r", "-n", "Hpl|HostParameters")
    assert done.code == 0
    assert f"siteproof: {STREAM} does not exist: Stream is not run" in done.err
    judged = json.loads(good.siteproof("verdict", "--json").out)
    (criterion,) = [found for found in judged["criteria"] if found["id"] == "HERE-STREAM"]
    assert criterion["verdict"] == "INCOMPLETE"
    reasons = {found["kind"]: found for found in criterion["findings"]}
    assert reasons.keys() == {"not_measured", "check_missing"}
    found = reasons["check_missing"]
    assert found["check"] == "Stream"
    assert found["details"]["file"] == STREAM
    assert "older" not in found["details"]
    assert STREAM in good.siteproof("why", "HERE-STREAM").out


def gone(path):
    path.unlink()


def to_nowhere(path):
    path.unlink()
    path.symlink_to("/nowhere/stream.py")


def folder(path):
    path.unlink()
    path.mkdir()


def renamed(path):
    path.rename(path.with_suffix(".py.old"))


LOSSES = [
    (gone, "does not exist"),
    (to_nowhere, "does not exist"),
    (folder, "is a folder"),
    (renamed, "does not exist"),
]


def test_a_check_file_that_reframe_passes_over_is_told_in_one_line(copied):
    checks = copied.clone / "checks"
    for lose, problem in LOSSES:
        shutil.rmtree(checks)
        shutil.copytree(TOP / "checks", checks)
        lose(copied.clone / STREAM)
        done = copied.reframe("-l")
        assert done.code == 0, done
        (line,) = done.err.splitlines()
        assert line.startswith(f"siteproof: {STREAM} {problem}: Stream is not run"), lose
        assert "HERE-STREAM of thishost" in line


def test_a_check_file_that_the_user_may_not_read_ends_the_run(copied):
    world = copied
    (world.clone / "checks/cpu/stream.py").chmod(0)
    line = world.run(*LESS, "reframe", "-c", "checks/", "-l").refused()
    assert line == f"siteproof: {STREAM}: cannot be read: Permission denied"


def test_lint_names_a_check_file_that_is_gone(copied):
    world = copied
    (world.clone / "checks/cpu/stream.py").unlink()
    done = world.siteproof("lint", "--system", "thishost")
    assert done.code == 2
    (line,) = [line for line in done.out.splitlines() if line.startswith("siteproof: ")]
    assert line.startswith("siteproof: checks/cpu/catalogue.yaml:")
    assert f"{STREAM} does not exist, so nothing measures Stream.triad" in line
    assert "HERE-STREAM of thishost" in line


def test_a_check_that_only_other_sites_need_is_a_warning(copied):
    world = copied
    (world.clone / "checks/storage/mdtest.py").unlink()
    (line,) = world.reframe("-l").err.splitlines()
    assert line.startswith("siteproof: warning: checks/storage/mdtest.py does not exist: Mdtest")
    assert line in world.siteproof("plan", "-n", "Hpl").err


def test_nothing_is_told_of_checks_that_were_not_asked_for(copied):
    (copied.clone / STREAM).unlink()
    for chosen in ("checks/network", "checks/cpu/hpl.py"):
        assert copied.run("reframe", "-c", chosen, "-l").err == "", chosen


def test_a_check_that_moved_to_another_file_is_still_run(copied):
    world = copied
    path = world.clone / "checks/cpu/stream.py"
    path.rename(path.with_name("memory.py"))
    done = world.reframe("-l", "-n", "Stream")
    assert "- Stream" in done.out
    assert done.err == ""


def test_an_older_answer_of_a_check_that_is_gone_stands_with_a_warning(copied):
    good = copied
    assert good.reframe("-r", "-n", "Stream").code == 0
    (good.clone / "checks/cpu/stream.py").unlink()
    assert good.verdicts()["HERE-STREAM"] == "PASS"
    (found,) = json.loads(good.siteproof("verdict", "--json").out)["findings"]
    assert (found["kind"], found["check"]) == ("check_missing", "Stream")
    assert (found["subject"], found["details"]["file"]) == ("localhost", STREAM)
    assert found["details"]["older"] == 1
    assert STREAM in " ".join(good.siteproof("verdict").out.split())
