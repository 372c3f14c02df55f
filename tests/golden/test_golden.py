"""What every command printed at b0d88dd is what it prints now; and the data of that day loads."""

import subprocess
import sys
from pathlib import Path

import pytest
import record
import screens
from cases import CASES
from clone import TOP

from siteproof.report import recompute

SETS = sorted(path.name.removesuffix(".tar.gz") for path in record.SETS.glob("*.tar.gz"))


@pytest.fixture(scope="session")
def worlds(tmp_path_factory):
    """Unpacked sets, which cases that change nothing share."""
    return record.Worlds(tmp_path_factory.mktemp("golden"))


@pytest.mark.parametrize("page", screens.DOCS, ids=lambda path: path.stem)
def test_a_screen_in_the_docs_is_what_its_command_prints(page):
    text = page.read_text(encoding="utf-8")
    assert screens.renewed(text) == text, "'make golden' writes the screens anew, if it is meant"


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=f"{case.set}-{record.path_of(case).stem}") for case in CASES]
)
def test_it_prints_and_shows_what_was_recorded(case, worlds):
    told = record.difference(case, record.record(case, worlds.of(case)))
    assert not told, f"{told}\n'make golden' records it anew, if it is meant"


def test_no_recording_is_without_its_command():
    assert not record.left_over()


def test_the_five_sets_are_there():
    assert SETS == ["campaign", "extenci", "jetstream-tacc", "thishost", "year"]


PAGES = {
    "campaign": ("testbed", "--campaign before", "--campaign after", ""),
    "extenci": ("extenci", ""),
    "jetstream-tacc": ("jetstream-tacc", ""),
    "thishost": ("thishost", ""),
    "year": ("here", "--campaign winter", "--campaign autumn", ""),
}


@pytest.mark.parametrize("name", SETS)
def test_each_page_is_judged_alike_by_the_program_that_it_carries(name, tmp_path):
    world = record.World(name, tmp_path)
    system, *campaigns = PAGES[name]
    program = TOP / "siteproof/report/recompute.py"
    beside = ("--perflogs", world.data / "perflogs")
    for campaign in campaigns:
        words = ("report", "--system", system, "--output", "a.html", *campaign.split())
        assert world.told(words).startswith("exit code 0")
        done = subprocess.run(
            [sys.executable, "-S", "-B", program, world.data / "a.html", *beside],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert " 0 differ" in done.stdout
        texts, rows = recompute.read(str(world.data / "a.html"))
        keys = [row["criterion"] for row in recompute.rows_of(texts, "criteria")]
        shown = {row["criterion"] for row in rows if "criterion" in row}
        assert set(keys) == shown, "the program compares what the page's tables show, too"


@pytest.mark.parametrize("name", SETS)
def test_every_file_of_that_day_is_read_and_nothing_is_refused(name, tmp_path):
    world = record.World(name, tmp_path)
    lint, history = (world.told((word,)) for word in ("lint", "history"))
    assert lint.startswith("exit code 0\n") and "no mistake" in lint
    assert history.startswith("exit code 0\n") and " 0 refused" in history
    files = len([*(world.data / "perflogs").glob("*/*/*.jsonl")])
    assert f" samples in {files:,} files" in history


def test_a_difference_is_shown_and_ends_with_1(tmp_path):
    clone = tmp_path / "clone"
    clone.mkdir()
    for name in ("siteproof", "checks", "site-config", "sweeps", "tests", "reframe_settings.py"):
        (clone / name).symlink_to(TOP / name)
    (clone / "tests").unlink()
    (clone / "tests" / "golden").mkdir(parents=True)
    for path in Path(record.HERE).glob("*.py"):
        (clone / "tests" / "golden" / path.name).write_bytes(path.read_bytes())
    kept = clone / "tests/golden/recorded/help/02-accept.txt"
    kept.parent.mkdir(parents=True)
    old = record.path_of(next(c for c in CASES if (c.set, c.name) == ("help", "accept")))
    kept.write_text(old.read_text().replace("Accept a campaign", "Except a campaign"))
    done = subprocess.run(
        [sys.executable, clone / "tests/golden/record.py", "--only", "help/accept"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "-  Except a campaign" in done.stdout
    assert "+  Accept a campaign" in done.stdout
