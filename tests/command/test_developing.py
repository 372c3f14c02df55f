"""docs/developing.md: its examples are carried out in a copy, and their files counted."""

import re
import shutil
import sys

import pytest
from clone import TOP, World, copy_clone

PAGE = (TOP / "docs/developing.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^(Append to )?`([^`\n]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CHECK, CRITERION, SITE = "A new check", "A criterion for it", "A new site"
OWN, ANALYSIS = "A centre's own checks", "A new analysis"
MOST = {CHECK: 6, ANALYSIS: 2, SITE: 3}  # files of a new one
TESTS = ("tests/conftest.py", "tests/support", "tests/unit", "pyproject.toml", "sweeps", "setup")

# Tests that go through everything there is, by a part of their names.
ROOMS = (
    "tests/unit/sites/test_sites.py",
    "tests/unit/sites/test_lint.py",
    "tests/unit/sites/test_sister_sites.py",
    "tests/unit/test_tools.py",
    "tests/unit/test_rooms.py",
)
LISTS = "shipped or each_kind_of_mistake or quick_run or clone_is or catalogue or example]"


def examples(title):
    """The files of a section: path, text, and whether the text goes to the file's end."""
    [section] = [
        part
        for part in re.split(r"^## ", PAGE, flags=re.MULTILINE)
        if part.startswith(f"{title}\n")
    ]
    return [(path, text, bool(append)) for append, path, text in BLOCK.findall(section)]


def write(folder, title):
    for path, text, append in examples(title):
        target = folder / path
        assert target.exists() == append, path
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("a", encoding="utf-8") as file:
            file.write(text)


@pytest.fixture
def copied(tmp_path):
    """A copy of the clone in which the sites are its own, and no figure has been measured."""
    copy = copy_clone(tmp_path / "clone")
    for name in TESTS:
        (copy / name).parent.mkdir(exist_ok=True)
        if (TOP / name).is_dir():
            shutil.copytree(TOP / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(TOP / name, copy / name)
    (tmp_path / "world").mkdir()
    world = World(tmp_path / "world", copy)
    world.sites = copy / "site-config"
    yield world
    world.end_processes()


def must_pass(world, *words):
    done = world.run(
        sys.executable,
        "-m",
        "pytest",
        "-rA",
        "-p",
        "no:cacheprovider",
        *words,
        SITEPROOF_SITES="UNSET",
        SITEPROOF_SYSTEM="UNSET",
        SITEPROOF_DATA="UNSET",
        HYPOTHESIS_PROFILE="quick",
        HYPOTHESIS_STORAGE_DIRECTORY=str(world.folder / "hypothesis"),
    )
    assert done.code == 0, done
    return done.out


@pytest.mark.parametrize("title", MOST)
def test_a_unit_is_so_many_files(title):
    paths = [path for path, _, _ in examples(title)]
    assert 0 < len(set(paths)) == len(paths) <= MOST[title]


def test_the_check_measures_and_its_criterion_is_judged(copied):
    write(copied.clone, CHECK)
    write(copied.clone, CRITERION)
    for linter in (("ruff", "check", "checks", "siteproof/parsers"), ("siteproof", "lint")):
        done = copied.run(*linter)
        assert done.code == 0, str(done)
    done = copied.reframe("-r", "-n", "HashRate")
    assert done.code == 0, done
    assert copied.verdicts()["HERE-HASH"] == "PASS"
    why = copied.siteproof("why", "HERE-HASH").said
    assert "HashRate.rate" in why and "sha256sum" in why


@pytest.mark.long
def test_the_analysis_is_pure_and_does_what_its_tests_say(copied):
    write(copied.clone, ANALYSIS)
    paths = [path for path, _, _ in examples(ANALYSIS)]
    for linter in (("check",), ("format", "--check")):
        done = copied.run("ruff", *linter, *paths)
        assert done.code == 0, str(done)
    told = must_pass(copied, "tests/unit/test_rooms.py", "tests/unit/analysis/test_imbalance.py")
    assert "test_one_of_four_that_takes_twice_as_long" in told


def test_a_plain_test_of_the_centre_is_judged(copied):
    write(copied.clone, OWN)
    assert copied.run("siteproof", "lint", "thishost").code == 0
    done = copied.reframe("-r", "-n", "MyTest")
    assert done.code == 0, done
    assert copied.verdicts()["HERE-OWN"] == "PASS"


def test_a_wrong_checksum_is_a_wrong_answer_and_no_rate(copied):
    write(copied.clone, CHECK)
    copied.fake("sha256sum", f"cat >/dev/null; echo '{'0' * 64}  -'")
    assert copied.reframe("-r", "-n", "HashRate").code == 1
    assert copied.statuses() == {"HashRate.*": "invalid"}


@pytest.mark.long
def test_with_the_check_no_list_of_a_test_is_short_of_it(copied):
    write(copied.clone, CHECK)
    write(copied.clone, CRITERION)
    told = must_pass(
        copied,
        *ROOMS,
        "tests/unit/parsers",
        "-k",
        f"hash_rate or one_digit or expectation or every_parser or test_rooms or {LISTS}",
    )
    assert "test_recorded_output_gives_what_stands_beside_it[hash_rate]" in told
    assert "test_one_digit_changed_in_a_figure_never_moves_it_far" in told
    assert "test_each_kind_of_mistake_is_told_with_its_place" in told


def test_the_site_is_read_and_planned(copied):
    write(copied.clone, SITE)
    done = copied.siteproof("lint", "example")
    assert done.code == 0, done
    done = copied.siteproof("sites", "example")
    assert "compute  node[001-064]  A blade with two processors" in done.out
    assert "EX-STREAM  Memory bandwidth of every node (contract, 4.1.2)" in done.out
    done = copied.siteproof("plan", "--system", "example", "-n", "Stream")
    assert done.code == 0, done
    assert "1 job on 64 nodes" in " ".join(done.out.split())


@pytest.mark.long
def test_with_the_site_no_list_of_a_test_is_short_of_it(copied):
    write(copied.clone, SITE)
    told = must_pass(copied, *ROOMS, "-k", LISTS)
    assert "test_a_shipped_site_loads" in told
    assert "test_the_shipped_sites_have_no_mistake" in told
