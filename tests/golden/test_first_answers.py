"""What an operator asks first: since when, whose value, what is waived, what somebody knows."""

import shlex

import pytest
import record

WAIVER = "W: {nodes: n002, waives: C-TRIAD, problem: fan, owner: A, expires: 2026-12-31}\n"


@pytest.fixture
def year(tmp_path):
    """Asks a set that a test may change; an answer is in one line."""
    world = record.World("year", tmp_path)

    def ask(line):
        return " ".join(world.told((*shlex.split(line), "--system", "here")).split())

    ask.data = world.data
    return ask


def told(line):
    text = record.shared("campaign").told((*shlex.split(line), "--system", "testbed"))
    return " ".join(text.split())


def test_each_failure_of_one_session_has_the_day_of_that_session():
    nodes = told("nodes").split("FAILED ")[1:]
    assert all("since 2026-11-22" in node for node in nodes)
    assert "node002 FAILED (Stream), since 2026-11-22" in told("gate --brief")
    assert "cannot allocate, since 2026-11-22." in told("report --brief")
    assert "Hpl.gflops: not measured, since 2026-11-22" in told("why node002")


def test_beside_a_verdict_is_no_value_of_a_unit_that_passed():
    text = told("verdict")
    assert "ERROR TB-STREAM-ANY >= 100 MB/s 6 passed" in text
    assert "others 5617 MB/s, 56.2 times, worst node007, by likwid-bench" in text


def test_why_shows_the_pairs_that_no_criterion_covers_and_names_the_matrix():
    for subject in ("node005", "'node005>node001'"):
        text = told(f"why {subject}")
        assert "TcpBandwidth.throughput: node005>node001: 77.74 Mb/s, 2026-11-22" in text
        assert "no criterion covers it; all pairs: siteproof matrix TcpBandwidth.thr" in text


def test_a_check_that_failed_besides_the_criteria_is_in_the_brief_report():
    assert "3 INCOMPLETE; also failed: Health, SystemDescription." in told("report --brief")


def test_certain_names_the_nodes_that_it_keeps_out_and_those_that_it_leaves():
    text = told("gate --certain")
    assert "--certain keeps out no node, and leaves node[001-008] alone" in text


def test_a_metric_that_is_nearly_right_gets_the_nearest():
    assert "(did you mean 'Stream.triad'?)" in told("nodes --metric Stream.tirad")


def test_a_node_of_which_all_is_waived_is_called_so_and_needs_no_repair(year):
    (year.data / "sites/here/waivers.yaml").write_text(WAIVER)
    for command in ("nodes", "gate", "why n002"):
        text = year(command)
        assert "n002 SLOW, goes back: waived until 2026-12-31 by A: fan" in text, command
    assert "first repair" not in text and "next: " not in text


def test_a_change_that_is_acknowledged_is_called_so_where_it_explains_a_node(year):
    year("trend ack 6mwvbb --why firmware --by ops")
    assert "change 6mwvbb (acknowledged by ops), mrjkie" in year("nodes")
    assert "since 2026-11-15 (6 runs), acknowledged by ops" in year("why n002")
    assert "since 2026-11-15, acknowledged by ops." in year("report --brief")
