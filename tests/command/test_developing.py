"""docs/developing.md: its examples are carried out in a copy, and their files counted."""

import json
import re
import shutil
import sys

import pytest
from clone import TOP, World, copy_clone

PAGE = (TOP / "docs/developing.md").read_text(encoding="utf-8")
BLOCK = re.compile(
    r"^(Append to |Change )?`([^`\n]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
CHECK, CRITERION, SITE = "A new check", "A criterion for it", "A new site"
NO_ANSWER = "What is no answer"
ROUNDING, CHAPTER = "A new rule of rounding", "A new chapter"
OWN, ANALYSIS = "A centre's own checks", "A new analysis"
MADE = {ROUNDING: ["docs/reference/keys.md"]}  # files that a command makes of the others
MOST = {CHECK: 7, ROUNDING: 4, CHAPTER: 3, ANALYSIS: 2, SITE: 3}  # files of a new one
TESTS = ("tests/conftest.py", "tests/support", "tests/unit", "pyproject.toml", "sweeps", "setup")
# In place of Spack: what it would leave, with a program that prints the recorded output.
SPACK = r"""
folder=$2 step=$3 prefix='{store}/babelstream'
case $1 in --version) echo 1.2.0; exit ;; esac
case $step in
concretize) echo '{lock}' >"$folder/spack.lock" ;;
install)
    mkdir -p "$prefix/.spack" "$prefix/bin" "$folder/view/bin"
    echo '{{"spec": {{"nodes": [{{"hash": "{hash}"}}]}}}}' >"$prefix/.spack/spec.json"
    cp '{program}' "$prefix/bin/omp-stream"
    ln -sf "$prefix/bin/omp-stream" "$folder/view/bin/omp-stream" ;;
find) echo "{hash} $prefix" ;;
repo) echo "[+] builtin v2.2 /nowhere" ;;
esac
"""
HASH = "abcdefghijklmnopqrstuvwxyz234567"
LOCK = {
    "roots": [{"hash": HASH, "spec": "babelstream"}],
    "concrete_specs": {HASH: {"name": "babelstream", "version": "5.0"}},
}
OUTPUT = "tests/unit/parsers/outputs/babelstream/5.0.txt"

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
    """The files of a section: how it changes, path, and text."""
    [section] = [
        part
        for part in re.split(r"^## ", PAGE, flags=re.MULTILINE)
        if part.startswith(f"{title}\n")
    ]
    return BLOCK.findall(section)


def paths_of(title):
    return list(dict.fromkeys(path for _, path, _ in examples(title)))


def write(folder, title):
    for how, path, text in examples(title):
        target = folder / path
        assert target.exists() == bool(how), path
        target.parent.mkdir(parents=True, exist_ok=True)
        before = target.read_text(encoding="utf-8") if how else ""
        after = changed(before, text, path) if how == "Change " else before + text
        target.write_text(after, encoding="utf-8")


def changed(before, difference, path):
    """A text with the lines of a difference replaced; they must be there once."""
    lines = [(line[0], line[1:]) for line in difference.splitlines(keepends=True)]
    old = "".join(line for mark, line in lines if mark != "+")
    assert f"\n{before}".count(f"\n{old}") == 1, path
    return before.replace(old, "".join(line for mark, line in lines if mark != "-"))


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
    assert 0 < len(paths_of(title) + MADE.get(title, [])) <= MOST[title]


@pytest.fixture
def built(copied):
    """The check and its criterion, with its environment built; the program is a recording."""
    write(copied.clone, CHECK)
    write(copied.clone, CRITERION)
    program = copied.folder / "omp-stream"
    program.write_text(f"#!/bin/sh\ncat '{copied.clone / OUTPUT}'\n", encoding="utf-8")
    program.chmod(0o755)
    names = {"store": copied.folder / "store", "program": program}
    copied.fake("spack", SPACK.format(lock=json.dumps(LOCK), hash=HASH, **names))
    copied.data.mkdir()
    done = copied.siteproof("build", "babelstream")
    assert done.code == 0, done
    return copied


def test_the_check_measures_in_its_environment_and_its_criterion_is_judged(built):
    for linter in (("ruff", "check", "checks", "siteproof/parsers"), ("siteproof", "lint")):
        done = built.run(*linter)
        assert done.code == 0, str(done)
    done = built.reframe("-r", "-n", "BabelStream")
    assert done.code == 0, done
    assert built.verdicts()["HERE-BABELSTREAM"] == "PASS"
    why = built.siteproof("why", "HERE-BABELSTREAM").said
    assert "BabelStream.triad" in why and "omp-stream" in why and "6797.374" in why


def test_the_rule_of_rounding_is_the_same_in_a_verdict_and_on_its_page(copied):
    write(copied.clone, ROUNDING)
    [key] = [line for line in PAGE.splitlines() if line.startswith("rounding: truncated")]
    criteria = copied.clone / "site-config/thishost/criteria.yaml"
    with criteria.open("a", encoding="utf-8") as file:
        for name, rule in (("CUT", key), ("NEAR", key.replace("truncated", "nearest"))):
            file.write(
                f"HERE-{name}: {{description: d, metric: Stream.triad, at_least: 5.3 GB/s, {rule}, "
                "conditions: {mode: quick}, source: s}\n"
            )
    copied.recorded_likwid()  # 5288.04 MB/s
    copied.reframe("-r", "-n", "Stream")
    verdicts = copied.verdicts()
    assert (verdicts["HERE-CUT"], verdicts["HERE-NEAR"]) == ("FAIL", "PASS")
    page = copied.folder / "page.html"
    assert copied.siteproof("report", "--output", page).code == 0
    again = copied.run(sys.executable, copied.clone / "siteproof/report/recompute.py", page)
    assert again.code == 0 and re.search(r"HERE-CUT +FAIL", again.out), again


@pytest.mark.long
def test_the_tests_of_rounding_hold_for_the_new_rule(copied):
    write(copied.clone, ROUNDING)
    told = must_pass(
        copied,
        "tests/unit/foundations/test_rounding.py",
        "tests/unit/answers/test_recompute.py",
        "tests/unit/sites/test_sites_promise.py",
        "-k",
        "not manual",
    )
    assert "test_truncated_values_lose_what_is_beyond_the_step" in told


def test_the_chapter_and_its_link_are_on_the_page(copied):
    write(copied.clone, CHAPTER)
    for linter in (("check",), ("format", "--check")):
        done = copied.run("ruff", *linter, *paths_of(CHAPTER))
        assert done.code == 0, str(done)
    told = must_pass(copied, "tests/unit/report/test_chapter_programs.py")
    assert "test_a_program_of_two_checks_is_one_row" in told
    copied.recorded_likwid()
    copied.reframe("-r", "-n", "Stream")
    page = copied.folder / "page.html"
    assert copied.siteproof("report", "--output", page).code == 0
    text = page.read_text(encoding="utf-8")
    assert 'id="section-programs"' in text and 'href="#section-programs"' in text
    assert "1 program gave these values." in text


@pytest.mark.long
def test_the_analysis_is_pure_and_does_what_its_tests_say(copied):
    write(copied.clone, ANALYSIS)
    for linter in (("check",), ("format", "--check")):
        done = copied.run("ruff", *linter, *paths_of(ANALYSIS))
        assert done.code == 0, str(done)
    told = must_pass(copied, "tests/unit/test_rooms.py", "tests/unit/analysis/test_imbalance.py")
    assert "test_one_of_four_that_takes_twice_as_long" in told


def test_a_plain_test_of_the_centre_is_judged(copied):
    write(copied.clone, OWN)
    assert copied.run("siteproof", "lint", "--system", "thishost").code == 0
    done = copied.reframe("-r", "-n", "MyTest")
    assert done.code == 0, done
    assert copied.verdicts()["HERE-OWN"] == "PASS"


def test_a_failed_validation_is_a_wrong_answer_and_no_rate(built):
    program = built.folder / "store/babelstream/bin/omp-stream"
    with program.open("a", encoding="utf-8") as file:
        file.write("echo 'Validation failed on a[]. Average error 1' >&2\n")
    assert built.reframe("-r", "-n", "BabelStream").code == 1
    assert built.statuses() == {"BabelStream.*": "invalid"}


@pytest.mark.long
def test_with_the_check_no_list_of_a_test_is_short_of_it(copied):
    write(copied.clone, CHECK)
    write(copied.clone, NO_ANSWER)
    write(copied.clone, CRITERION)
    told = must_pass(
        copied,
        *ROOMS,
        "tests/unit/parsers",
        "-k",
        f"babelstream or one_digit or expectation or every_parser or test_rooms or {LISTS}",
    )
    assert "test_recorded_output_gives_what_stands_beside_it[babelstream]" in told
    assert "test_one_digit_changed_in_a_figure_never_moves_it_far" in told
    assert "test_each_kind_of_mistake_is_told_with_its_place" in told


def test_the_site_is_read_and_planned(copied):
    write(copied.clone, SITE)
    done = copied.siteproof("lint", "--system", "example")
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
