"""The programs in benchmarks/ still fit what they measure."""

import os
import runpy
import sys

import pytest
from clone import TOP

FOLDER = TOP / "benchmarks"
PROGRAMS = [path for path in FOLDER.glob("*.py") if "\n    main(benchmark)\n" in path.read_text()]
# Short runs of those that call an analysis, and no command.
SHORT = {"screen.py": ["--series", "200", "--steps", "2"], "plateau.py": ["--curves", "1"]}


@pytest.fixture
def start(monkeypatch, capsys):
    """Run a program in this process, as starting Python costs more than the program."""

    def run(path, *words):
        monkeypatch.setattr(sys, "argv", [str(path), *words])
        monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
        with pytest.raises(SystemExit) as end:
            runpy.run_path(str(path), run_name="__main__")
        return end.value.code, capsys.readouterr().out

    before = dict(os.environ)
    yield run
    os.environ.clear()
    os.environ.update(before)


def test_each_program_says_how_it_is_used(start):
    for path in PROGRAMS:
        code, printed = start(path, "--help")
        assert code == 0, path
        assert "usage: " + path.name in printed, path


def test_each_program_has_its_section():
    assert len(PROGRAMS) > 10
    told = (FOLDER / "README.md").read_text()
    assert [path.name for path in PROGRAMS if f"\n## {path.name}\n" not in told] == []


@pytest.mark.parametrize("name", SHORT)
def test_what_scores_an_analysis_runs(start, name):
    code, printed = start(FOLDER / name, *SHORT[name])
    assert code == 0, printed
    assert printed.count("\n") >= 3
