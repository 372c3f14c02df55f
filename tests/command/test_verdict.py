"""Samples against criteria: each word, what outweighs what, and which nodes are named."""

import ast
import json
import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from fleets import furnish, names, run_of
from reasons import kinds, reasons

import siteproof
from siteproof.judge.criterion import judge
from siteproof.judge.severity import OF_STATUS, WRONG, Verdict, exit_code, most_severe
from siteproof.record import samples
from siteproof.record.finding import Finding, Kind
from siteproof.record.samples import Header, Sample
from siteproof.sites import Baseline, Criterion, Hardware

BLADES = [f"iu-c{number:03}" for number in range(1, 321)]
FACTS = {node: Hardware() for node in ("n1", "n2", "n3")}
PACKAGE = Path(siteproof.__file__).parent
START = datetime(2026, 11, 21, tzinfo=UTC)


def header(session=1, mode="acceptance", **keys):
    """A session a number, one after the other."""
    moment = (START + timedelta(minutes=session)).isoformat(timespec="seconds")
    return Header(
        **{
            "session": f"s{session:03}",
            "system": "here",
            "partition": "all",
            "environment": "system",
            "check": "Stream",
            "job": "1",
            "time": moment,
            "mode": mode,
            "conditions": {"program": "stream"},
            **keys,
        }
    )


def ok(node, value, session=1, unit="GB/s", **keys):
    return Sample(header(session, **keys), node, "Stream.triad", Decimal(str(value)), unit)


def bad(node, status, session=1, why="because", **keys):
    return Sample(header(session, **keys), node, "Stream.*", status=status, why=why)


def criterion(**keys):
    promise = {} if {"report_only", "at_most", "equals"} & set(keys) else {"at_least": "65 GB/s"}
    return Criterion(
        **{
            "description": "d",
            "metric": "Stream.triad",
            "source": "s",
            "scope": "every node",
            **promise,
            **keys,
        }
    )


def verdict(*found, baseline=None, expected=FACTS, **keys):
    usual = {node: [baseline] for node in expected} if baseline else None
    return judge("C", criterion(**keys), found, expected, usual)


def all_three(value=70, **keys):
    return [ok(node, value, **keys) for node in FACTS]


# ---- each word


def test_it_passes_when_every_node_keeps_it():
    found = verdict(*all_three())
    assert (found.verdict, found.ok, found.findings) == (Verdict.PASS, 3, ())


def test_one_short_node_fails_it_and_is_the_worst():
    found = verdict(ok("n1", 70), ok("n2", 64.9), ok("n3", 90))
    assert (found.verdict, found.ok, found.worst.node) == (Verdict.FAIL, 2, "n2")


def test_a_node_that_was_not_measured_makes_it_incomplete():
    found = verdict(ok("n1", 70), ok("n3", 70))
    assert (found.verdict, kinds(found)) == (Verdict.INCOMPLETE, [Kind.NOT_MEASURED])
    assert found.nodes[0].node == "n2"


@pytest.mark.parametrize(
    ("status", "word", "kind"),
    [
        ("invalid", "FAIL", Kind.WRONG_ANSWER),
        ("node_lost", "INCOMPLETE", Kind.NODE_LOST),
        ("timeout", "ERROR", Kind.NO_VALUE),
        ("parse", "ERROR", Kind.NO_VALUE),
        ("generic", "ERROR", Kind.NO_VALUE),
        ("login", "ERROR", Kind.NO_VALUE),
        ("checksum", "FAIL", Kind.WRONG_ANSWER),
    ],
)
def test_a_node_without_a_value_gives_the_word_of_its_status(status, word, kind):
    found = verdict(ok("n1", 70), ok("n2", 70), bad("n3", status))
    assert found.verdict == word
    (why,) = found.findings
    assert (why.kind, why.check, why.status, why.message) == (kind, "Stream", status, "because")


def test_it_is_skipped_only_where_no_node_has_the_tool():
    missing = [bad(node, "tool_missing") for node in FACTS]
    assert verdict(*missing).verdict is Verdict.SKIP
    assert verdict(ok("n1", 70), *missing[1:]).verdict is Verdict.INCOMPLETE
    assert verdict(ok("n1", 60), *missing[1:]).verdict is Verdict.FAIL
    assert verdict(*missing[1:]).verdict is Verdict.INCOMPLETE


def test_a_figure_that_is_only_reported_is_skipped():
    found = verdict(*all_three(1), report_only="for interest")
    assert (found.verdict, kinds(found)) == (Verdict.SKIP, [Kind.REPORTED_ONLY])
    assert found.findings[0].message == "for interest"


def test_it_is_incomplete_where_no_node_has_the_role():
    assert verdict(*all_three(), expected={}).verdict is Verdict.INCOMPLETE


def test_it_regresses_when_it_is_kept_and_short_of_the_baseline():
    usual = Baseline(
        metric="Stream.triad", at_least="100 GB/s", tolerance="10 %", source="s", taken="2026-11-21"
    )
    assert verdict(*all_three(89.9), baseline=usual).verdict is Verdict.REGRESSED
    assert verdict(*all_three(90), baseline=usual).verdict is Verdict.PASS
    assert verdict(*all_three(60), baseline=usual).verdict is Verdict.FAIL


def test_a_baseline_for_another_program_says_nothing():
    usual = Baseline(
        metric="Stream.triad",
        at_least="100 GB/s",
        source="s",
        taken="2026-11-21",
        programs=["likwid-bench"],
    )
    assert verdict(*all_three(70), baseline=usual).verdict is Verdict.PASS


ORDER = ["FAIL", "ERROR", "REGRESSED", "INCOMPLETE", "PASS"]  # of nodes; no node is PENDING


@pytest.mark.parametrize("worse", range(len(ORDER) - 1))
def test_the_most_severe_node_decides(worse):
    usual = Baseline(metric="Stream.triad", at_least="100 GB/s", source="s", taken="2026-11-21")
    made = {
        "FAIL": lambda n: [ok(n, 60)],
        "ERROR": lambda n: [bad(n, "timeout")],
        "INCOMPLETE": lambda n: [],
        "REGRESSED": lambda n: [ok(n, 70)],
        "PASS": lambda n: [ok(n, 110)],
    }
    for lighter in range(worse + 1, len(ORDER)):
        found = [*made[ORDER[lighter]]("n1"), *made[ORDER[worse]]("n2"), *made["PASS"]("n3")]
        assert verdict(*found, baseline=usual).verdict == ORDER[worse]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["PASS"], 0),
        (["PASS", "SKIP"], 3),
        (["SKIP"], 3),
        ([], 3),
        (["PASS", "PENDING"], 3),
        (["PASS", "INCOMPLETE"], 3),
        (["FAIL", "INCOMPLETE"], 1),
        (["ERROR", "PASS"], 1),
        (["REGRESSED", "PASS"], 1),
        (["REGRESSED", "INCOMPLETE"], 1),
        (["PENDING", "SKIP"], 3),
        (["ERROR", "PENDING"], 1),
    ],
)
def test_the_exit_code_is_that_of_the_table(words, code):
    assert exit_code(map(Verdict, words)) == code


def test_the_order_is_that_of_the_words_and_every_status_has_one():
    """DESIGN.md, "Words"; whatever lists verdicts lists them in the order of this enumeration."""
    assert list(Verdict) == ["FAIL", "ERROR", "REGRESSED", "INCOMPLETE", "PENDING", "SKIP", "PASS"]
    assert most_severe(reversed(Verdict)) is Verdict.FAIL
    assert most_severe([]) is None
    assert {"ok", *OF_STATUS} == set(samples.STATUSES)
    assert WRONG == ("invalid", "checksum")


def test_nothing_else_in_the_package_lists_verdicts_in_an_order_of_its_own():
    """A tuple or list of three words or more is an order; a mapping or a pair of them is none."""
    words, found = {str(word) for word in Verdict}, []
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Tuple | ast.List):
                continue
            named = [e.attr for e in node.elts if isinstance(e, ast.Attribute)]
            told = [e.value for e in node.elts if isinstance(e, ast.Constant)]
            if len(words & {*named, *map(str, told)}) > 2:
                found.append(path.name)
    assert set(found) == {"severity.py", "recompute.py"}  # the latter runs without the package


# ---- what cannot be measured here


MISSING = [bad(node, "tool_missing") for node in FACTS]
HERE = "no such device"


def test_not_here_accepts_that_it_is_never_answered_and_says_why():
    for found in ([], MISSING, [bad("n1", "interrupted")], all_three(mode="quick")):
        told = verdict(*found, not_here=HERE)
        assert (told.verdict, told.excused, told.others) == (Verdict.SKIP, True, 0)
        assert told.findings == (Finding(Kind.NOT_HERE, message=HERE),)
        assert {node.findings for node in told.nodes} == {told.findings}
    assert verdict(expected={}, not_here=HERE).excused


@pytest.mark.parametrize(
    ("found", "word"),
    [
        (all_three(), "PASS"),
        (all_three(60), "FAIL"),
        ([bad("n1", "timeout")], "ERROR"),
        ([bad("n1", "node_lost")], "INCOMPLETE"),
        ([ok("n1", 70)], "INCOMPLETE"),
    ],
)
def test_what_was_tried_decides_whatever_not_here_says(found, word):
    for scope in ("every node", "median"):
        told = verdict(*found, not_here=HERE, scope=scope)
        assert (told.verdict, told.excused) == (word, False)


def test_a_skip_that_nobody_answers_for_is_not_excused():
    assert not verdict(*MISSING).excused
    assert verdict(*MISSING, report_only="for interest").excused


# ---- which sample answers


def test_the_newest_sample_of_a_node_counts_and_not_its_best():
    assert verdict(*all_three(70), ok("n2", 60, session=2)).verdict is Verdict.FAIL
    assert verdict(*all_three(60), *all_three(70, session=2)).verdict is Verdict.PASS
    assert verdict(*all_three(70), bad("n2", "timeout", session=2)).verdict is Verdict.ERROR


def test_the_order_in_which_samples_are_read_does_not_matter():
    found = [*all_three(70), ok("n2", 60, session=2), bad("n3", "parse", session=3)]
    assert verdict(*found).verdict == verdict(*reversed(found)).verdict == Verdict.FAIL


def test_a_quick_run_neither_answers_nor_disturbs():
    quick = all_three(10, session=2, mode="quick")
    assert verdict(*all_three(70), *quick).verdict is Verdict.PASS
    found = verdict(*quick)
    assert found.verdict is Verdict.INCOMPLETE
    expected = "maintenance or acceptance"
    held = {"condition": "mode", "found": "quick", "expected": expected}
    assert reasons(found) == [(Kind.OTHER_CONDITION, held)]


def test_a_quick_run_that_broke_disturbs_as_little():
    assert verdict(*all_three(70), bad("n1", "timeout", 2, mode="quick")).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("node_lost", Kind.NODE_LOST),
        ("generic", Kind.NO_VALUE),
        ("timeout", Kind.NO_VALUE),
        ("tool_missing", Kind.NO_VALUE),
        ("interrupted", Kind.INTERRUPTED),
        ("invalid", Kind.WRONG_ANSWER),
    ],
)
def test_what_gave_no_value_has_its_own_end_as_reason_before_the_conditions(status, kind):
    found = verdict(ok("n1", 70, mode="quick"), bad("n2", status, mode="quick", why="mains lost"))
    of_node = {node.node: node for node in found.nodes}
    assert found.verdict is of_node["n2"].verdict is Verdict.INCOMPLETE
    assert [(f.kind, f.status, f.message) for f in of_node["n2"].findings] == [
        (kind, status, "mains lost")
    ]
    assert kinds(of_node["n1"]) == [Kind.OTHER_CONDITION]


def test_a_node_that_was_measured_after_its_failure_lacks_only_the_mode():
    found = verdict(*all_three(70, session=2, mode="quick"), bad("n1", "node_lost", mode="quick"))
    assert {kind for node in found.nodes for kind in kinds(node)} == {Kind.OTHER_CONDITION}


def test_reasons_that_read_alike_are_one_reason():
    other = {"check": "Other", "mode": "quick"}
    lost = [bad("n1", "node_lost", mode="quick"), bad("n2", "node_lost", **other)]
    assert verdict(*lost, bad("n3", "node_lost", mode="quick")).others == 0


def test_only_a_program_that_may_answer_does():
    other = all_three(70, conditions={"program": "likwid-bench"})
    found = verdict(*other, programs=["stream"])
    assert found.verdict is Verdict.INCOMPLETE
    held = {"program": "likwid-bench", "expected": "stream"}
    assert reasons(found) == [(Kind.OTHER_PROGRAM, held)]


def test_conditions_are_asked_of_each_sample():
    small = all_three(70, conditions={"program": "stream", "n": "3"})
    large = all_three(70, conditions={"program": "stream", "n": "8"})
    assert verdict(*large, conditions={"n": {"at_least": "5"}}).verdict is Verdict.PASS
    found = verdict(*small, conditions={"n": {"at_least": "5"}})
    assert found.verdict is Verdict.INCOMPLETE
    held = {"condition": "n", "found": "3", "expected": ">= 5"}
    assert reasons(found) == [(Kind.OTHER_CONDITION, held)]
    found = verdict(*all_three(70), conditions={"n": "5"})
    held = {"condition": "n", "found": "unknown", "expected": "5"}
    assert reasons(found) == [(Kind.OTHER_CONDITION, held)]


# ---- median, text, rounding


def test_the_median_is_judged_once_all_nodes_are_measured():
    values = [ok("n1", 60), ok("n2", 66), ok("n3", 90)]
    assert verdict(*values, scope="median").verdict is Verdict.PASS
    assert verdict(*values, scope="mean", at_least="72.1 GB/s").verdict is Verdict.FAIL
    found = verdict(*values[:2], scope="median")
    assert found.verdict is Verdict.INCOMPLETE
    missing = (Kind.MEMBERS_MISSING, {"node": "n3", "more": 0})
    assert reasons(found) == [missing, (Kind.NOT_MEASURED, {})]


def test_a_median_without_some_nodes_takes_the_gravest_reason():
    found = verdict(ok("n1", 60), bad("n3", "invalid"), scope="median")
    assert found.verdict is Verdict.FAIL
    missing = (Kind.MEMBERS_MISSING, {"node": "n3", "more": 1})
    assert reasons(found) == [missing, (Kind.WRONG_ANSWER, {})]
    assert (found.findings[1].status, found.findings[1].message) == ("invalid", "because")


def test_it_passes_by_rounding_and_says_so():
    found = verdict(*all_three(64.5), rounding="nearest 1 GB/s")
    assert found.verdict is Verdict.PASS
    assert found.by_rounding
    assert not verdict(*all_three(65), rounding="nearest 1 GB/s").by_rounding
    assert verdict(*all_three(64.49), rounding="nearest 1 GB/s").verdict is Verdict.FAIL


def test_a_failure_names_the_variables_that_steered_a_library():
    steered = {"conditions": {"program": "stream", "env.OMP_NUM_THREADS": "2", "env.KMP_X": "1"}}
    found = verdict(*all_three(60, **steered))
    assert found.verdict is Verdict.FAIL
    steers = (Kind.STEERED, {"variables": "KMP_X=1 OMP_NUM_THREADS=2"})
    assert reasons(found) == [(Kind.MISSES_BOUND, {}), steers]
    assert verdict(*all_three(70, **steered)).findings == ()
    assert reasons(verdict(*all_three(60))) == [(Kind.MISSES_BOUND, {})]


def test_the_most_common_reason_is_given_and_the_others_are_counted():
    found = verdict(bad("n1", "parse"), bad("n2", "timeout"), bad("n3", "timeout"))
    assert ([why.status for why in found.findings], found.others) == (["timeout"], 1)
    found = verdict(*(bad(node, "timeout", session=n) for n, node in enumerate(FACTS, 1)))
    assert ([why.status for why in found.findings], found.others) == (["timeout"], 0)


def test_a_tie_passes_or_fails_as_the_contract_rounds():
    even = {"rounding": "nearest 1 GB/s", "ties": "even"}
    assert verdict(*all_three(64.5), **even).verdict is Verdict.FAIL
    assert verdict(*all_three(65.5), at_least="66 GB/s", **even).by_rounding


def test_the_highest_is_the_worst_where_low_is_good():
    found = verdict(ok("n1", 3), ok("n2", 9), ok("n3", 5), at_most="10 GB/s")
    assert found.worst.node == "n2"


# ---- the command, on Jetstream's blades


def blades(world, hpl, stream=100, session=1, **keys):
    """Samples of all blades as checks leave them; a value of None: the node was lost."""
    for check, metric, unit, values, own in (
        ("Hpl", "gflops", "GFLOPS", hpl, {"program": "xhpl", "memory_share": "0.51"}),
        ("Stream", "triad", "GB/s", stream, {"program": "stream"}),
    ):
        head = header(
            session,
            check=check,
            system="jetstream-iu",
            partition="compute",
            expected="iu-c[001-320]",
            **{"conditions": own, **keys},
        )
        values = values if isinstance(values, dict) else dict.fromkeys(BLADES, values)
        samples.write(
            world.data / "perflogs",
            head,
            [
                Sample(head, node, f"{check}.{metric}", Decimal(str(value)), unit)
                if value is not None
                else Sample(head, node, f"{check}.*", status="node_lost", why="left no result")
                for node, value in values.items()
            ],
        )


@pytest.fixture
def jetstream(world):
    """The shipped description of 320 blades; `told` gives a criterion and the whole table."""
    world.site("jetstream-iu")
    world.data.mkdir()

    def told(key, *words):
        text = world.siteproof("verdict", "--system", "jetstream-iu", *words)
        record = json.loads(
            world.siteproof("verdict", "--system", "jetstream-iu", "--json", *words).out
        )
        assert record["exit_code"] == text.code
        return next(c for c in record["criteria"] if c["id"] == key), text

    world.told = told
    return world


def test_blades_above_eighty_percent_pass(jetstream):
    blades(jetstream, 695)
    found, _ = jetstream.told("JS-4.1.1-HPL")
    assert (found["verdict"], found["nodes_ok"], found["by_rounding"]) == ("PASS", 320, False)


def test_a_blade_that_passes_only_by_rounding_is_told(jetstream):
    blades(jetstream, {**dict.fromkeys(BLADES, 695), "iu-c007": "641.1"})
    found, text = jetstream.told("JS-4.1.1-HPL")
    assert found["by_rounding"]
    assert "rounding" in text.out
    why = jetstream.siteproof("why", "JS-4.1.1-HPL", "--system", "jetstream-iu").out
    edge = next(line for line in why.splitlines() if "iu-c007" in line)
    assert "REGRESSED, 641.1 GFLOPS -> 80 %" in edge
    assert "passes only by rounding" in edge
    assert "passes from  >= 641.088 GFLOPS as measured" in why


@pytest.mark.parametrize(("value", "word"), [("641.088", "REGRESSED"), ("641.087", "FAIL")])
def test_the_edge_is_where_the_report_draws_it(jetstream, value, word):
    blades(jetstream, {**dict.fromkeys(BLADES, 695), "iu-c007": value})
    assert jetstream.told("JS-4.1.1-HPL")[0]["verdict"] == word


def test_one_lost_blade_makes_it_incomplete_by_name(jetstream):
    blades(jetstream, {**dict.fromkeys(BLADES, 695), "iu-c111": None})
    found, text = jetstream.told("JS-4.1.1-HPL")
    assert (found["verdict"], found["nodes_ok"]) == ("INCOMPLETE", 319)
    assert "iu-c111" in text.out
    assert jetstream.siteproof("why", "JS-4.1.1-HPL", "--system", "jetstream-iu").code == 3


def test_a_blade_that_nobody_measured_is_not_forgotten(jetstream):
    blades(jetstream, dict.fromkeys(BLADES[:-1], 695))
    found, text = jetstream.told("JS-4.1.1-HPL")
    assert found["verdict"] == "INCOMPLETE"
    assert "iu-c320" in text.out


def test_slow_blades_fail_and_the_worst_are_named_first(jetstream):
    slow = {"iu-c200": 400, "iu-c013": 300, "iu-c100": 500, "iu-c050": 600}
    blades(jetstream, {**dict.fromkeys(BLADES, 695), **slow})
    found, text = jetstream.told("JS-4.1.1-HPL")
    assert (found["verdict"], found["nodes_ok"]) == ("FAIL", 316)
    assert [n["node"] for n in found["nodes"][:4]] == ["iu-c013", "iu-c200", "iu-c100", "iu-c050"]
    assert "4 failed iu-c[013,050,100,200]  worst iu-c013" in text.out
    assert text.code == 1


def test_blades_below_their_usual_rate_have_regressed(jetstream):
    blades(jetstream, 695, stream=80)
    found, text = jetstream.told("JS-4.1.1-STREAM")
    assert (found["verdict"], found["nodes_ok"]) == ("REGRESSED", 320)
    (why,) = found["findings"]
    assert (why["kind"], why["bound"]) == ("below_baseline", "100.5 GB/s")
    assert text.code == 1


def test_a_quick_run_after_the_acceptance_changes_nothing(jetstream):
    blades(jetstream, 695)
    before = jetstream.told("JS-4.1.1-HPL")
    blades(jetstream, 1, stream=1, session=2, mode="quick")
    after = jetstream.told("JS-4.1.1-HPL")
    assert {**after[0], "age": 0} == {**before[0], "age": 0}
    assert after[1].out == before[1].out


def test_criteria_without_a_check_are_pending_and_say_so(jetstream):
    blades(jetstream, 695)
    file = jetstream.sites / "jetstream-iu/system.yaml"  # without its services
    file.write_text(file.read_text().partition("\nservices:\n")[0] + "\n")
    found, text = jetstream.told("JS-4.2-LAUNCH")
    assert (found["verdict"], found["nodes_expected"]) == ("PENDING", 0)
    assert found["findings"] == [{"kind": "no_check", "metric": "Service.failures"}]
    assert "wait" in text.out and "for a check that does not exist yet" in text.out
    assert jetstream.siteproof("why", "JS-4.2-LAUNCH", "--system", "jetstream-iu").code == 3


def test_the_json_holds_what_a_program_needs(jetstream):
    blades(jetstream, {**dict.fromkeys(BLADES, 695), "iu-c007": "641.1", "iu-c111": None})
    done = jetstream.siteproof("verdict", "--system", "jetstream-iu", "--json")
    record = json.loads(done.out)
    assert set(record) >= {"system", "samples_of", "exit_code", "criteria"}
    words = {str(word) for word in Verdict}
    for found in record["criteria"]:
        assert set(found) >= {  # test_export_json.py has the whole form
            "id",
            "verdict",
            "why",
            "metric",
            "bound",
            "source",
            "by_rounding",
            "nodes_ok",
            "nodes_expected",
            "nodes",
        }
        assert found["verdict"] in words
        assert len(found["nodes"]) == found["nodes_expected"]
        for node in found["nodes"]:
            assert set(node) >= {"node", "verdict", "why", "value", "unit", "rounded", "session"}
            assert node["verdict"] in words
            assert node["value"] is None or Decimal(node["value"]).is_finite()
    hpl = next(c for c in record["criteria"] if c["id"] == "JS-4.1.1-HPL")
    edge = next(n for n in hpl["nodes"] if n["node"] == "iu-c007")
    assert (edge["value"], edge["unit"], edge["rounded"]) == ("641.1", "GFLOPS", "80")


def test_the_value_of_a_median_is_the_median(world):
    world.edit("system", "set: localhost", "set: 'n[1-3]'")
    world.edit("criteria", "metric: Stream.triad", "metric: Stream.triad\n  scope: median")
    head = header(system="thishost")
    samples.write(
        world.data / "perflogs",
        head,
        [
            Sample(head, f"n{i}", "Stream.triad", Decimal(v), "MB/s")
            for i, v in ((1, "2000.5"), (2, "9000"), (3, "3000.25"))
        ],
    )
    record = json.loads(world.siteproof("verdict", "--json").out)
    found = next(c for c in record["criteria"] if c["id"] == "HERE-STREAM")
    assert found["nodes"][0]["node"] == "median of 3"
    assert found["nodes"][0]["value"] == "3000.25"
    assert "PASS        HERE-STREAM  3.000 GB/s" in world.siteproof("verdict").out
    assert "3000.25 MB/s" in world.siteproof("why", "HERE-STREAM").out


# ---- why


def test_why_explains_a_criterion_with_bound_conditions_and_every_node(jetstream):
    blades(jetstream, {**dict.fromkeys(BLADES, 695), "iu-c013": 300})
    done = jetstream.siteproof("why", "JS-4.1.1-HPL", "--system", "jetstream-iu")
    assert done.code == 1
    for told in (
        "PTI-TR16-005",
        ">= 80 % of peak = 645.12 GFLOPS, nearest 1 %",
        "memory_share",
        "program xhpl",
        "iu-c013: FAIL, 300 GFLOPS -> 37 %",
    ):
        assert told in done.out
    last = "319 of 320 nodes meet it: FAIL; next: siteproof why iu-c013 --system jetstream-iu"
    assert done.out.splitlines()[-1] == last


def test_verdict_and_why_say_where_ties_go_to_even(jetstream):
    old = "rounding: nearest 1 %\n"
    jetstream.edit("criteria", old, old + "  ties: even\n", name="jetstream-iu")
    blades(jetstream, "641.088")  # 79.5 %: an exact tie
    found, _ = jetstream.told("JS-4.1.1-HPL")
    assert found["verdict"] == "REGRESSED"  # 80 is even; of its baseline it is short
    assert found["rounding"] == "nearest 1 %, ties to even"
    told = jetstream.siteproof("why", "JS-4.1.1-HPL", "--system", "jetstream-iu").out
    assert ">= 80 % of peak = 645.12 GFLOPS, nearest 1 %, ties to even" in told
    assert "passes from  >= 641.088 GFLOPS as measured" in told
    jetstream.edit("criteria", "at_least: 80 %", "at_least: 79 %", name="jetstream-iu")
    told = jetstream.siteproof("why", "JS-4.1.1-HPL", "--system", "jetstream-iu").out
    assert "passes from  > 633.024 GFLOPS as measured" in told  # 78.5 % goes to 78


def test_why_explains_a_node_with_each_sample_and_why_it_does_not_count(jetstream):
    blades(jetstream, 695)
    blades(
        jetstream,
        700,
        session=2,
        conditions={"program": "hpcc", "memory_share": "0.1"},
        campaign="c",
    )
    done = jetstream.siteproof(
        "why", "iu-c013", "--system", "jetstream-iu", "--since", "2026-11-20"
    )
    assert "JS-4.1.1-HPL: PASS, 695 GFLOPS" in done.out
    assert "does not count: measured with hpcc" in done.out
    assert "[counts]" in done.out


def test_why_of_a_stranger_is_refused(jetstream):
    blades(jetstream, 695)
    done = jetstream.siteproof("why", "iu-c999", "--system", "jetstream-iu")
    assert "'iu-c999' is neither a criterion nor a node" in done.refused()
    done = jetstream.siteproof("why", "JS-4.1.1-HLP", "--system", "jetstream-iu")
    assert "(did you mean 'JS-4.1.1-HPL'?)" in done.refused()


# ---- how long it takes


@pytest.mark.slow
def test_fifty_sessions_of_320_nodes_and_thirty_criteria(world, record_property):
    site = world.site("jetstream-iu")
    one = """
  metric: Stream.triad
  nodes: [compute]
  at_least: 65 GB/s
  description: one of thirty
  source: test"""
    (site / "criteria.yaml").write_text("\n".join(f"C-{i}:{one}" for i in range(30)) + "\n")
    for more in site.glob("criteria-*.yaml"):
        more.unlink()
    (site / "baselines.yaml").write_text("{}\n")
    for session in range(50):
        head = header(session, system="jetstream-iu", partition="compute", campaign="c")
        samples.write(
            world.data / "perflogs",
            head,
            [
                Sample(head, node, f"Stream.{metric}", Decimal(100), "GB/s")
                for node in BLADES
                for metric in ("copy", "scale", "add", "triad")
            ],
        )
    begun = time.monotonic()
    done = world.siteproof("verdict", "--system", "jetstream-iu")
    seconds = time.monotonic() - begun
    assert done.code == 0, done
    record_property("told", f"verdict on 320 nodes x 30 criteria x 50 sessions: {seconds:.1f} s")


# ---- the command


def test_a_missing_node_hides_no_regression(world):
    """The same word for the verdict, the exit code, the page, JSON, JUnit and OpenMetrics."""
    here = furnish(world)
    (world.sites / "here/baselines.yaml").write_text(
        "system: here\nU: {metric: Stream.triad, at_least: 100 MB/s, source: us, "
        "taken: 2026-01-01}\n"
    )
    here.keep(run_of({**dict.fromkeys(names(7), 100), "n003": 80}))
    done = here.ask("verdict")
    last = "verdict on here: 1 REGRESSED; next: siteproof why C-TRIAD --system here"
    assert (done.code, done.out.splitlines()[-1]) == (1, last)
    page = world.folder / "page.md"
    assert here.ask("report", "--output", str(page)).code == 0
    assert "# here: REGRESSED" in page.read_text() or "REGRESSED. No promise" in page.read_text()
    told = json.loads(here.ask("export", "json").out)
    assert (told["exit_code"], told["counts"]["REGRESSED"]) == (1, 1)
    assert '<failure type="REGRESSED"' in here.ask("export", "junit").out
    assert 'siteproof_exit_code{system="here"} 1' in here.ask("export", "openmetrics").out
    assert here.ask("why", "C-TRIAD").code == here.ask("accept", "latest", "--why", "x").code == 1
