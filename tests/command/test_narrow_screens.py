"""A listing that is too wide is records: no line is longer than the screen, and nothing is cut."""

import re

import pytest
from click.testing import CliRunner

from siteproof.cli import group, shared
from siteproof.cli.shared import Entry, wrapped

NODES = "n[" + ",".join(f"{number:03}" for number in range(1, 320, 3)) + "]"
CELLS = ("TB-LONG-NAME-OF-A-CRITERION", "FAILED", "a reason of several words " * 6, "-", NODES)


def table():
    columns = ("criterion", "state", "why", "empty", "nodes")
    return shared.table(columns, [CELLS, ("TB-OTHER", "OK", "", "-", "n001")], "title")


@pytest.mark.parametrize("width", [40, 80, 140])
def test_a_wide_table_is_a_record_a_row(monkeypatch, capsys, width):
    monkeypatch.setenv("COLUMNS", str(width))
    shared.print_table(table())
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= width
    assert not re.search("[│┃…]", out)
    whole = out.replace("\n      ", "")
    for cell in (CELLS[0], CELLS[1], NODES):
        assert cell in whole
    assert " ".join(CELLS[2].split()) in " ".join(out.split())
    assert "empty" not in out


@pytest.mark.parametrize("width", [80, 200])
def test_a_table_that_fits_has_columns_and_no_lines(monkeypatch, capsys, width):
    monkeypatch.setenv("COLUMNS", str(width))
    columns = ("tasks", "rate")
    shared.print_table(shared.table(columns, [("128", "1.5 GB/s")], right=columns))
    head, row = capsys.readouterr().out.splitlines()
    assert (head.split(), row.split()) == (["tasks", "rate"], ["128", "1.5", "GB/s"])


def test_without_columns_a_pipe_is_80_wide(monkeypatch, capsys):
    monkeypatch.delenv("COLUMNS")
    shared.print_records([Entry(["name"], ["word " * 40])])
    assert 60 < max(map(len, capsys.readouterr().out.splitlines())) <= 80


def test_a_word_longer_than_the_screen_stays_whole():
    (line,) = wrapped(["x" * 200], 80)
    assert line.strip() == "x" * 200


def test_plain_is_one_line_a_row_whatever_a_cell_holds(capsys):
    shared.print_plain(("a", "b"), [("1\t2", "x\ny\x1b[2J")])
    assert capsys.readouterr().out == "a\tb\n1?2\tx?y?[2J\n"


def test_a_set_that_is_wrapped_has_no_blank_within_it(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    shared.print_wrapped(f"   107  stays out: {NODES}")
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert NODES in out.replace("\n      ", "")


def test_a_number_and_its_unit_are_on_one_line(monkeypatch, capsys):
    for width in range(40, 60):
        monkeypatch.setenv("COLUMNS", str(width))
        shared.print_wrapped("a value of some length that is 98.0 % worse than 155.9 GB/s, it is")
        out = capsys.readouterr().out
        assert "98.0 %" in out
        assert "155.9 GB/s" in out


def test_help_explains_plain():
    text = CliRunner().invoke(group, ["verdict", "--help"]).output
    assert "cells separated by tabs" in " ".join(text.split())
