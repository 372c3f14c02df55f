"""`siteproof nodes`: a record a reason, the gravest first, and a last line that answers."""

import csv
import io
import json

import pytest
from fleets import CRITERIA, broken, furnish, good, names, run_of, write_site

EVEN = dict.fromkeys(names(8), 100)


@pytest.fixture
def fleet(world):
    return furnish(world)


NEXT = "next: siteproof gate --system here"
RUN = "reframe -c checks/ -r --system here --mode maintenance -S"


def test_all_ok_is_one_answer_and_exit_code_0(fleet):
    fleet.keep(good())
    done = fleet.ask("nodes")
    assert done.code == 0
    assert done.out.splitlines()[1:] == [f"nodes of here: 8 OK; {NEXT}"]


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
    nodes = {node["node"]: node for node in json.loads(fleet.ask("nodes", "--json").out)["nodes"]}
    lost, slow = nodes["n006"]["findings"][0], nodes["n004"]["findings"][0]
    assert (lost["kind"], lost["message"]) == ("node_lost", "left no result")
    assert (slow["kind"], slow["details"]["median"]) == ("slow", 100)
    assert slow["details"]["deficit"] == pytest.approx(0.3)
    assert lines[1:] == [
        "FAILED    n006",
        "      Stream: did not answer: left no result  since 2026-11-02  1 other reason",
        "SLOW      n004  Stream.triad  70 MB/s  30.0 % below the others",
        "      seen once, run again to confirm  since 2026-11-02",
        "UNTESTED  n002",
        "      Stream.triad: not measured  since 2026-11-02",
        f"run again: {RUN} nodes=n004",
        f"measure: {RUN} nodes=n002",
        f"nodes of here: 1 FAILED, 1 SLOW, 1 UNTESTED, 5 OK of 8; {NEXT}",
    ]


def test_why_ends_as_nodes_does_for_a_node_without_criteria(fleet):
    write_site(fleet.sites, criteria="{}\n")
    fleet.keep(run_of(EVEN | {"n004": 70}))
    assert fleet.ask("nodes").code == 1
    assert fleet.ask("why", "n003").code == 0
    done = fleet.ask("why", "n004")
    assert done.code == 1
    assert done.out.splitlines()[-1].startswith("n004: SLOW, 0 of 0 criteria are met")


def test_nodes_with_the_same_reason_are_one_record_the_largest_group_first(fleet):
    low = dict.fromkeys(names(8)[2:5], 50.004) | {"n007": 55.5}
    fleet.keep(
        [*run_of({n: v for n, v in (EVEN | low).items() if n != "n001"}), broken("n001", "timeout")]
    )
    lines = fleet.ask("nodes", COLUMNS="80").out.splitlines()
    value = "C-TRIAD, Stream.triad  50.0 to 55.5 MB/s  limit >= 60 MB/s"
    assert " ".join(lines[1:3]).split() == f"FAILED n[003-005,007] {value}".split()
    assert lines[3].split()[:2] == ["since", "2026-11-02"]
    assert lines[4].split() == ["FAILED", "n001"]
    assert "50.004" not in "".join(lines)


def test_nodes_with_one_reason_are_one_record_however_long_each_has_it(fleet):
    for run in range(1, 5):
        low = {"n002": 50} | ({"n005": 50} if run == 4 else {})
        fleet.keep(run_of(EVEN | low, run))
    told = fleet.ask("nodes").out
    assert told.count("C-TRIAD") == 1
    assert "FAILED  n[002,005]" in told


def test_a_reason_has_the_value_as_verdict_prints_it(fleet):
    write_site(fleet.sites, criteria=CRITERIA.replace("60 MB/s", "0.06 GB/s"))
    fleet.keep(run_of(EVEN | {"n004": 41.234}))
    told = {name: fleet.ask(name, COLUMNS="80").out for name in ("verdict", "nodes", "gate")}
    for name, text in told.items():
        assert "0.0412 GB/s" in text, name
        assert "41.23" not in text, name


def test_what_a_tool_wrote_at_length_is_told_by_why(fleet):
    noise = "mpi4py exited with 1: " + "srun: error: Unable to load any plugin " * 5
    others = run_of({n: v for n, v in EVEN.items() if n != "n003"})
    fleet.keep([*others, broken("n003", "generic", why=noise)])
    told = fleet.ask("nodes").out
    assert "Stream: no value: mpi4py exited with 1  since 2026-11-02  1 other reason" in told
    assert "Unable" not in told
    assert "Unable to load any plugin" in fleet.ask("why", "n003").out


def test_a_node_names_the_change_that_explains_it(fleet):
    for run in range(1, 31):
        fleet.keep(run_of(EVEN | {"n004": 100 if run < 15 else 80}, run))
    (alert,) = json.loads(fleet.ask("trend", "--json").out)["alerts"]
    assert alert["nodes"] == "n004"
    done = fleet.ask("nodes", COLUMNS="80")
    assert f"since 2026-11-16, 16 runs  change {alert['id']}" in done.out
    row = next(csv.DictReader(io.StringIO(fleet.ask("nodes", "--plain").out), delimiter="\t"))
    assert (row["node"], row["runs"], row["change"]) == ("n004", "16", alert["id"])


def test_untested_alone_is_exit_code_3(fleet):
    fleet.keep(run_of({n: 100 for n in names(8)[:6]}))
    done = fleet.ask("nodes")
    assert (done.code, done.out.splitlines()[-1]) == (
        3,
        f"nodes of here: 2 UNTESTED, 6 OK of 8; next: {RUN} 'nodes=n[007-008]'",
    )


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
    assert done.out.splitlines()[-1] == (
        "Stream.triad: slow in some run: n[004,007]; next: siteproof why n007 --system here"
    )
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
