"""Samples against criteria: each word, what outweighs what, and which nodes are named."""

import ast
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from reasons import kinds, reasons

import siteproof
from siteproof.answers.criterion import judge
from siteproof.record import samples
from siteproof.record.finding import (
    OF_STATUS,
    WRONG,
    Finding,
    Kind,
    Verdict,
    exit_code,
    most_severe,
)
from siteproof.record.samples import Header, Sample
from siteproof.sites import Baseline, Criterion, Hardware

BLADES = [f"iu-c{number:03}" for number in range(1, 321)]
FACTS = {node: Hardware() for node in ("n1", "n2", "n3")}
PACKAGE = Path(siteproof.__file__).parent
START = datetime.now(UTC).replace(microsecond=0) - timedelta(days=1)


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
    assert {"ok", *OF_STATUS} == samples.MEANINGS.keys()
    assert WRONG == ("invalid", "checksum", "unhealthy")


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
    assert set(found) == {"finding.py", "recompute.py"}  # the latter runs without the package


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
    missing = (Kind.NOTE, {"node": "n3", "more": 0})
    assert reasons(found) == [missing, (Kind.NOT_MEASURED, {})]


def test_a_median_without_some_nodes_takes_the_gravest_reason():
    found = verdict(ok("n1", 60), bad("n3", "invalid"), scope="median")
    assert found.verdict is Verdict.FAIL
    missing = (Kind.NOTE, {"node": "n3", "more": 1})
    assert reasons(found) == [missing, (Kind.WRONG_ANSWER, {})]
    assert (found.findings[1].status, found.findings[1].message) == ("invalid", "because")


def test_it_passes_by_rounding_and_says_so():
    found = verdict(*all_three(64.5), rounding="nearest 1 GB/s")
    assert found.verdict is Verdict.PASS
    assert found.by_rounding
    assert not verdict(*all_three(65), rounding="nearest 1 GB/s").by_rounding
    assert verdict(*all_three(64.49), rounding="nearest 1 GB/s").verdict is Verdict.FAIL


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
