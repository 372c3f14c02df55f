"""`siteproof nodes`: the bad first, node sets at the end, and a last line that answers."""

import json

import pytest
from fleets import broken, furnish, good, names, run_of

EVEN = dict.fromkeys(names(8), 100)


@pytest.fixture
def fleet(world):
    return furnish(world)


def test_all_ok_is_one_line_and_exit_code_0(fleet):
    fleet.keep(good())
    done = fleet.ask("nodes")
    assert done.code == 0
    assert done.out.splitlines() == ["OK       n[001-008]", "nodes of here: 8 OK"]


def test_bad_nodes_come_first_with_why(fleet):
    fleet.keep(
        [
            *run_of({**{n: v for n, v in EVEN.items() if n not in ("n002", "n006")}, "n004": 70}),
            broken("n006", "node_lost", why="left no result"),
        ]
    )
    done = fleet.ask("nodes")
    lines = done.out.splitlines()
    assert done.code == 1
    row = {n: next(i for i, line in enumerate(lines) if f" {n} " in line) for n in ("n004", "n006")}
    assert row["n006"] < row["n004"]
    nodes = {node["node"]: node for node in json.loads(fleet.ask("nodes", "--json").out)["nodes"]}
    lost, slow = nodes["n006"]["findings"][0], nodes["n004"]["findings"][0]
    assert (lost["kind"], lost["message"]) == ("node_lost", "left no result")
    assert (slow["kind"], slow["details"]["median"]) == ("slow", 100)
    assert slow["details"]["deficit"] == pytest.approx(0.3)
    assert lines[-7:] == [
        "FAILED   n006",
        "SLOW     n004",
        "UNTESTED n002",
        "OK       n[001,003,005,007-008]",
        "untested: n002: Stream.triad: not measured",
        "run again: reframe -c checks/ -r -S nodes=n004",
        "nodes of here: 1 FAILED, 1 SLOW, 1 UNTESTED, 5 OK",
    ]


def test_untested_alone_is_exit_code_3(fleet):
    fleet.keep(run_of({n: 100 for n in names(8)[:6]}))
    done = fleet.ask("nodes")
    assert (done.code, done.out.splitlines()[-1]) == (3, "nodes of here: 2 UNTESTED, 6 OK")


def test_untested_prints_a_node_set_and_nothing_else(fleet):
    fleet.keep(run_of({n: 100 for n in names(8)[:6]}))
    done = fleet.ask("nodes", "--untested")
    assert (done.code, done.out) == (0, "n[007-008]\n")


def test_untested_since_a_time_speaks_of_that_time(fleet):
    fleet.keep([*good(1), *run_of({"n001": 100}, 5)])
    assert fleet.ask("nodes", "--untested", "--since", "2026-11-01").out == ""
    assert fleet.ask("nodes", "--untested", "--since", "2026-11-05").out == "n[002-008]\n"


def test_nothing_untested_prints_nothing(fleet):
    fleet.keep(good())
    done = fleet.ask("nodes", "--untested")
    assert (done.code, done.out) == (0, "")


def test_before_the_first_run_all_are_untested(fleet):
    assert fleet.ask("nodes").code == 3
    assert fleet.ask("nodes", "--untested").out == "n[001-008]\n"


def test_one_metric_is_ranked_from_the_worst_on(fleet):
    fleet.keep(run_of({**EVEN, "n004": 90, "n007": 70}))
    done = fleet.ask("nodes", "--metric", "Stream.triad")
    assert done.out.index("n007") < done.out.index("n004") < done.out.index("n001")
    assert done.out.splitlines()[-1] == "Stream.triad: slow in some run: n[004,007]"
    assert "'Stream.tirad'" in fleet.ask("nodes", "--metric", "Stream.tirad").refused()


def test_nodes_for_programs(fleet):
    fleet.keep(run_of({**EVEN, "n004": 70}))
    done = fleet.ask("nodes", "--json")
    record = json.loads(done.out)
    assert (done.code, record["exit_code"]) == (1, 1)
    node = next(n for n in record["nodes"] if n["node"] == "n004")
    assert node["state"] == "SLOW"
    assert node["metrics"]["Stream.triad"]["deficit"] == pytest.approx(0.3)
    assert record["states"]["SLOW"] == "n004"


def test_a_reason_cannot_steer_the_terminal(fleet):
    fleet.keep(
        [
            *run_of({n: v for n, v in EVEN.items() if n != "n003"}),
            broken("n003", "timeout", why="[red]a\x1b[31mb"),
        ]
    )
    done = fleet.ask("nodes")
    assert "\x1b" not in done.out
    assert "[red]a?[31mb" in done.out
