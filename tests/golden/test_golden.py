"""What every command printed is what it prints now, as are the screens of the docs."""

import json
import subprocess
import sys

import pytest
import record
import screens
from cases import CASES
from clone import TOP

from siteproof.cli.export import schema_of
from siteproof.report import recompute


def test_each_screen_in_the_docs_is_what_its_command_prints():
    pages = {page.name: page.read_text(encoding="utf-8") for page in screens.DOCS}
    wrong = [
        page.name for page in screens.DOCS if screens.renewed(pages[page.name]) != pages[page.name]
    ]
    assert not wrong, "'make golden' writes the screens anew, if it is meant"


@pytest.mark.parametrize("case", [pytest.param(one, id=f"{one.set}-{one.name}") for one in CASES])
def test_it_prints_and_shows_what_was_recorded(case):
    told = record.difference(case, record.record(case, record.world_of(case)))
    assert not told, f"{told}\n'make golden' records it anew, if it is meant"


def test_no_two_cases_have_one_recording_and_none_is_without_its_command():
    assert len({record.path_of(case) for case in CASES}) == len(CASES)
    assert not record.left_over()


def test_export_schema_prints_the_schema_of_a_document():
    code, out, _ = record.shared("help").asked(("export", "schema", "nodes"))
    assert (code, json.loads(out)) == (0, schema_of("nodes"))


PAGES = {
    "campaign": ("testbed", "--campaign after"),
    "extenci": ("extenci", ""),
    "thishost": ("thishost", ""),
    "year": ("here", "--campaign winter"),
}


@pytest.mark.parametrize("name", PAGES)
def test_each_page_is_judged_alike_by_the_program_that_it_carries(name, tmp_path, capsys):
    world, (system, campaign) = record.shared(name), PAGES[name]
    page = tmp_path / "a.html"
    words = ("report", "--system", system, "--output", str(page), *campaign.split())
    assert world.told(words).startswith("exit code 0")
    assert recompute.recompute(page.read_text(encoding="utf-8")) == 0
    assert " 0 differ" in capsys.readouterr().out
    if name == "thishost":  # the program alone, without a library
        program = TOP / "siteproof/report/recompute.py"
        done = subprocess.run(
            [sys.executable, "-S", "-B", program, page], capture_output=True, text=True
        )
        assert (done.returncode, " 0 differ" in done.stdout) == (0, True), done


def case_of(name):
    return next(case for case in CASES if f"{case.set}/{case.name}" == name)


@pytest.mark.parametrize(
    ("name", "old", "new", "told"),
    [
        (
            "help/sweeps",
            "sweep --system",
            "swept --system",
            ["-$ siteproof swept", "+$ siteproof sweep"],
        ),
        (
            "year/compare-json",
            '"exit code": 1',
            '"exit code": 0',
            ["year/compare-json.json: .exit code: 0 -> 1"],
        ),
    ],
)
def test_a_difference_is_shown_and_ends_with_1(tmp_path, monkeypatch, capsys, name, old, new, told):
    case = case_of(name)
    text = record.path_of(case).read_text(encoding="utf-8")
    assert old in text
    monkeypatch.setattr(record, "RECORDED", tmp_path)
    record.path_of(case).parent.mkdir()
    record.path_of(case).write_text(text.replace(old, new, 1), encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["record.py", "--only", name])
    assert record.main() == 1
    printed = capsys.readouterr().out
    assert all(line in printed for line in told), printed
    monkeypatch.setattr(sys, "argv", ["record.py", "--only", name, "--write"])
    assert record.main() == 0
    assert record.path_of(case).read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    ("old", "new", "paths"),
    [
        ({"a": 1, "b": [1, 2]}, {"b": [1, 2], "a": 1}, []),
        ({"a": 1}, {"b": 1}, [".a: only recorded", ".b: only now"]),
        ([1, 2], [1], [": 2 items -> 1 items"]),
        ({"a": [{"b": 1}, {"b": 2}]}, {"a": [{"b": 1}, {"b": "2"}]}, ['.a[1].b: 2 -> "2"']),
        ([True], [1], ["[0]: true -> 1"]),
        ({"a": {}}, {"a": []}, [".a: {} -> []"]),
    ],
)
def test_documents_are_compared_by_path_and_spelled_so_that_they_are_read_again(old, new, paths):
    assert list(record.unlike(old, new, "")) == paths
    long = {"one": [old] * 30, "text\nof two": "x\n" * 90, "none": {}}
    assert json.loads(record.spelled(long)) == long
