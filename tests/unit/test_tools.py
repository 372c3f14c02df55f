"""The table of tools says only what a run has shown."""

import tools
from clone import TOP


def test_a_tool_counts_as_run_only_where_a_passed_test_has_said_so():
    rows = tools.table(["iperf3"]).splitlines()
    assert "| iperf3 | x | x |  | 3.12, 2026-11-23 |" in rows
    assert "| nuttcp |  | x | x | 6.1.2, 2026-11-23 |" in rows
    assert "| OpenStack |  |  | x |  |" in rows


def test_a_tool_that_nobody_named_has_a_row_and_our_own_scripts_have_none(monkeypatch, tmp_path):
    assert "host_parameters" not in tools.table([])
    monkeypatch.setattr(tools.recorded, "OUTPUTS", tmp_path)
    (tmp_path / "newtool").mkdir()
    (tmp_path / "newtool/1.0.txt").write_text("")
    assert "| newtool |  | x | x |  |" in tools.table([]).splitlines()


def test_only_passed_tests_are_noted(tmp_path, monkeypatch):
    log = tmp_path / "log"
    monkeypatch.setenv(tools.LOG, str(log))

    class Report:
        when, passed, user_properties = "call", False, [("tool", "fio"), ("told", "x")]

    tools.pytest_runtest_logreport(Report)
    assert not log.exists()
    Report.passed = True
    tools.pytest_runtest_logreport(Report)
    assert log.read_text() == "fio\n"


def test_the_table_is_written_between_its_marks_and_nowhere_else(tmp_path):
    (begin, end), page = tools.MARKS, tmp_path / "tools.md"
    page.write_text(f"before\n{begin}old\n{end}after\n")
    assert tools.write(page, "new\n")
    assert page.read_text() == f"before\n{begin}new\n{end}after\n"
    assert not tools.write(page, "new\n")


def test_the_table_of_layouts_is_that_of_the_recorded_outputs():
    begin, end = tools.MARKS_OF_LAYOUTS
    assert f"{begin}{tools.layouts()}{end}" in (TOP / "docs/tools.md").read_text()


def test_a_refusal_is_named_without_the_words_of_one_output(monkeypatch, tmp_path):
    monkeypatch.setattr(tools.recorded, "OUTPUTS", tmp_path)
    (tmp_path / "fio").mkdir()
    for name, made, origin in (
        ("2-tcp_a", "rate 1 MB/s", "recorded"),
        ("3-tcp_b", "rate 1 MB/s", "recorded"),
        ("3-bad", "OutputError parse: fio: 3.5 of 'x|y' in 2, a|b", "recorded"),
        ("3-cut", "OutputError parse: fio: cut off", "recorded, cut off"),
    ):
        (tmp_path / f"fio/{name}.txt").write_text("")
        (tmp_path / f"fio/{name}.expected").write_text(f"# origin: {origin}\n{made}\n")
    assert "| fio | 2, 3 | tcp a, tcp b | … of … in …, a\\|b |" in tools.layouts().splitlines()
