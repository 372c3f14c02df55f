"""Criteria over links: each directed pair is judged, by the median of its newest job's trials."""

from decimal import Decimal
from fractions import Fraction

import pytest
from click.testing import CliRunner
from fleets import header
from nets import METRIC, TCP, failed, head, load, ok, star
from reasons import kinds

from siteproof.answers.criterion import Verdict
from siteproof.cli import why as why_module
from siteproof.compare import comparison
from siteproof.record.finding import Kind
from siteproof.record.samples import Sample
from siteproof.verdict import judgement

AGGREGATE = """\
C-AGG: {description: All at once, metric: TcpBandwidth.throughput, subject: system,
        links: [lan], at_least: 9 Gb/s, source: contract}
"""
MTU = """\
C-MTU: {description: Large packets, metric: PathMtu.mtu, subject: client, links: [lan],
        equals: 9000 B, source: contract}
"""


@pytest.fixture
def judge(tmp_path, monkeypatch):
    """The verdict on the site's only criterion."""

    def _judge(found, **keys):
        site = load(tmp_path, monkeypatch, **keys)
        (only,) = judgement.judge_samples(site, list(found), "all of it").verdicts
        return only

    return _judge


def words(result):
    return {n.node: str(n.verdict) for n in result.nodes}


def without(found, *pairs):
    return [s for s in found if f"{s.node}>{s.dims['peer']}" not in pairs]


# ---- which pairs


def test_every_directed_pair_of_the_link_must_keep_it(judge):
    found = judge(star())
    assert (found.verdict, found.ok, len(found.nodes)) == (Verdict.PASS, 12, 12)
    assert {"n1>s1", "s1>n1"} <= words(found).keys()


def test_a_slow_pair_fails_in_its_direction_only_and_is_the_worst(judge):
    found = judge(star(slow={"s1>n4": 8.9, "n2>s1": 5}))
    assert found.verdict is Verdict.FAIL
    assert [n.node for n in found.nodes if n.verdict is Verdict.FAIL] == ["n2>s1", "s1>n4"]
    assert found.worst.node == "n2>s1"


def test_an_unmeasured_pair_makes_it_incomplete(judge):
    found = judge(without(star(), "s1>n3"))
    assert (found.verdict, kinds(found)) == (Verdict.INCOMPLETE, [Kind.NOT_MEASURED])
    assert found.nodes[0].node == "s1>n3"


def test_all_with_all_asks_for_every_two_nodes_of_both_ends(judge):
    found = judge([], count=3, pattern="all", servers="s[1-2]")
    assert len(found.nodes) == 5 * 4
    assert found.verdict is Verdict.INCOMPLETE


def test_of_random_pairs_those_that_were_drawn_are_asked_in_both_directions(judge):
    found = judge(
        [ok("n1>n2", 9.4), ok("n2>n1", 9.4), ok("n3>n4", 9.4)],
        count=4,
        pattern="random:1",
        servers="compute",
    )
    assert words(found) == {
        "n1>n2": "PASS",
        "n2>n1": "PASS",
        "n3>n4": "PASS",
        "n4>n3": "INCOMPLETE",
    }


def test_a_node_that_was_in_no_random_pair_is_named(judge):
    found = judge(
        [ok("n1>n2", 9.4), ok("n2>n1", 9.4)], count=3, pattern="random:1", servers="compute"
    )
    assert words(found)["n3"] == "INCOMPLETE"


def test_random_pairs_that_nobody_has_drawn_are_incomplete(judge):
    found = judge([], pattern="random:3", servers="compute")
    assert (found.verdict, kinds(found)) == (Verdict.INCOMPLETE, [Kind.NOTE])


def test_figures_of_another_link_answer_nothing(judge):
    found = judge([*without(star(), "n1>s1"), ok("n1>s1", 9.4, link="wan")])
    assert (found.verdict, found.nodes[0].node) == (Verdict.INCOMPLETE, "n1>s1")
    (why,) = found.nodes[0].findings
    assert (why.kind, why["link"], why["expected"]) == (Kind.OTHER_LINK, "wan", "lan")


def test_of_two_links_each_pair_is_asked_over_each(judge):
    both = TCP.replace("[lan]", "[lan, wan]")
    found = judge(
        [*star(server="s3"), *star(count=2, server="s3", link="wan")], criteria=both, servers="s3"
    )
    assert found.verdict is Verdict.PASS
    assert {"n1>s3 over lan", "n1>s3 over wan"} <= words(found).keys()
    assert len(found.nodes) == 12 + 4


def test_roles_narrow_the_pairs(judge):
    narrow = TCP.replace("at_least", "nodes: [service], at_least")
    found = judge([], criteria=narrow, count=3, pattern="all", servers="s1")
    assert set(words(found)) == {f"n{i}>s1" for i in (1, 2, 3)} | {f"s1>n{i}" for i in (1, 2, 3)}


# ---- trials and jobs


def test_the_median_of_the_trials_counts(judge):
    trials = [ok("n1>s1", v, trial=t) for t, v in enumerate((8.0, 9.1, 9.3), start=1)]
    found = judge([*without(star(), "n1>s1"), *trials])
    mine = next(n for n in found.nodes if n.node == "n1>s1")
    assert (mine.verdict, mine.value) == (Verdict.PASS, Fraction("9.1"))


def test_of_an_even_number_of_trials_the_middle_is_exact(judge):
    trials = [ok("n1>s1", v, trial=t) for t, v in enumerate((8.9, 9.1), start=1)]
    mine = next(n for n in judge([*without(star(), "n1>s1"), *trials]).nodes if n.node == "n1>s1")
    assert (mine.verdict, mine.value) == (Verdict.PASS, 9)


def test_too_few_trials_are_incomplete(judge):
    asked = TCP.replace("at_least", "trials: 2, at_least")
    once = judge(star(trial=1), criteria=asked)
    assert (once.verdict, kinds(once)) == (Verdict.INCOMPLETE, [Kind.TRIALS_MISSING])
    assert (once.findings[0]["trials"], once.findings[0]["expected"]) == (1, 2)
    assert judge([*star(trial=1), *star(trial=2)], criteria=asked).verdict is Verdict.PASS


def test_the_newest_job_answers(judge):
    assert judge([*star(5, run=1), *star(run=2)]).verdict is Verdict.PASS
    assert judge([*star(run=1), *star(5, run=2)]).verdict is Verdict.FAIL


def test_a_newer_quick_run_changes_nothing(judge):
    assert judge([*star(run=1), *star(5, run=2, mode="quick")]).verdict is Verdict.PASS


def test_each_size_must_keep_it_and_the_worst_is_told(judge):
    sizes = [ok("n1>s1", v, dims={"size": s}) for s, v in (("8", 9.9), ("64", 8.1), ("1", 9.5))]
    mine = judge([*without(star(), "n1>s1"), *sizes]).nodes[0]
    assert (mine.node, mine.verdict, mine.value) == ("n1>s1", Verdict.FAIL, Fraction("8.1"))


# ---- failures


def test_a_pair_that_failed_has_no_figure_in_either_direction(judge):
    for status, word, kind in (
        ("timeout", "ERROR", Kind.NO_VALUE),
        ("login", "ERROR", Kind.NO_VALUE),
        ("invalid", "FAIL", Kind.WRONG_ANSWER),
        ("interrupted", "INCOMPLETE", Kind.INTERRUPTED),
        ("node_lost", "INCOMPLETE", Kind.NODE_LOST),
    ):
        found = judge([*without(star(), "n2>s1", "s1>n2"), failed("n2>s1", status)])
        told = words(found)
        assert (told["n2>s1"], told["s1>n2"], str(found.verdict)) == (word, word, word), status
        (why,) = found.nodes[0].findings
        assert (why.kind, why.status, why.message) == (kind, status, "because")


def test_the_direction_that_has_a_figure_keeps_it(judge):
    found = judge([*without(star(), "s1>n2"), failed("n2>s1")])
    assert (words(found)["n2>s1"], words(found)["s1>n2"]) == ("PASS", "ERROR")


def test_a_wrong_answer_in_one_trial_is_a_wrong_answer(judge):
    found = judge([*star(trial=1), failed("n2>s1", "invalid")])
    assert words(found)["n2>s1"] == "FAIL"


def test_an_interrupted_pair_is_answered_by_an_older_job(judge):
    found = judge([*star(run=1), failed("n2>s1", "interrupted", run=2)])
    assert found.verdict is Verdict.PASS


def test_a_failure_that_names_no_link_counts_for_the_pair(judge):
    found = judge([*without(star(), "n2>s1", "s1>n2"), failed("n2>s1", link="")])
    assert words(found)["n2>s1"] == "ERROR"
    found = judge([*without(star(), "n2>s1", "s1>n2"), failed("n2>s1", link="wan")])
    assert words(found)["n2>s1"] == "INCOMPLETE"


def test_a_check_of_single_nodes_does_not_disturb(judge):
    other = Sample(header(7, "Stream"), "n1", "Stream.*", status="timeout")
    assert judge([*star(), other]).verdict is Verdict.PASS


# ---- waivers, baselines, links as a whole, clients


def test_a_waiver_of_a_node_excuses_its_pairs(judge):
    waiver = "W: {nodes: n2, waives: C-TCP, problem: old card, owner: me, expires: 2099-01-01}\n"
    found = judge(star(slow={"n2": 1}), waivers=waiver)
    assert found.verdict is Verdict.PASS
    assert [n.node for n in found.nodes if n.waived] == ["n2>s1", "s1>n2"]
    assert judge(star(slow={"n3": 1}), waivers=waiver).verdict is Verdict.FAIL


def test_a_baseline_of_the_link_makes_a_pair_regressed(judge):
    usual = (
        "system: here\nB: {description: usual, metric: TcpBandwidth.throughput, links: [lan], "
        "nodes: [compute], scope: every pair, at_least: 9.2 Gb/s, "
        "source: own, taken: 2026-11-01}\n"
    )
    found = judge(star(slow={"n2>s1": 9.1}), baselines=usual)
    assert found.verdict is Verdict.REGRESSED
    assert words(found)["n2>s1"] == "REGRESSED"


def whole(value, run=1, link="lan"):
    return Sample(head(run, link), "", METRIC, Decimal(str(value)), "Gb/s", dims={"link": link})


def test_a_figure_of_the_whole_link_is_judged_once_a_link(judge):
    found = judge([*star(1), whole(9.5), whole(1, link="wan")], criteria=AGGREGATE)
    assert words(found) == {"lan": "PASS"}
    assert judge([whole(8)], criteria=AGGREGATE).verdict is Verdict.FAIL
    assert judge(star(), criteria=AGGREGATE).verdict is Verdict.INCOMPLETE


def test_a_client_is_asked_for_what_has_no_direction(judge):
    found = [ok(f"n{i}>s1", 9000, metric="PathMtu.mtu", unit="B") for i in range(1, 7)]
    assert judge(found, criteria=MTU).verdict is Verdict.PASS
    small = ok("n6>s1", 1500, metric="PathMtu.mtu", unit="B")
    told = words(judge([*found[:-1], small], criteria=MTU))
    assert (told["n6>s1"], len(told)) == ("FAIL", 6)


# ---- why


@pytest.fixture
def ask(tmp_path, monkeypatch):
    """`siteproof why` on samples, without a run of the whole program."""

    def _ask(subject, found):
        site = load(tmp_path, monkeypatch)
        told = judgement.judge_samples(site, found, "all of it")
        monkeypatch.setattr(why_module, "judge_system", lambda *_, **__: told)
        return CliRunner().invoke(why_module.why, [subject])

    monkeypatch.setattr("siteproof.cli.why", why_module)
    return _ask


def test_why_explains_a_pair(ask):
    done = ask("n2>s1", star(slow={"n2>s1": 5}))
    assert done.exit_code == 1
    assert "C-TCP: FAIL, 5 Gb/s by iperf3" in done.output
    assert "s1>n2" not in done.output
    assert done.output.splitlines()[-1].startswith(
        "0 of 1 criteria are met on n2>s1; next: reframe "
    )


def test_why_explains_a_node_by_its_pairs(ask):
    lines = ask("n2", star(slow={"n2>s1": 5})).output.splitlines()
    first = next(line for line in lines if line.startswith("  C-TCP: "))
    assert first.startswith("  C-TCP: n2>s1: FAIL, 5 Gb/s")
    assert any(line.startswith("  C-TCP: s1>n2: PASS") for line in lines)


def test_why_tells_the_worst_pairs_of_a_node_in_many(ask):
    lines = ask("s1", star(slow={"n2>s1": 5})).output.splitlines()
    assert lines[2].startswith("  C-TCP: n2>s1: FAIL")
    assert "  C-TCP: 4 more pairs of s1, 4 of them PASS" in lines


def test_why_explains_a_criterion_of_pairs(ask):
    lines = ask("C-TCP", star(slow={"n2>s1": 5})).output.splitlines()
    assert "  n2>s1: FAIL, 5 Gb/s by iperf3" in lines
    assert lines[-1] == (
        "11 of 12 pairs meet it: FAIL; next: siteproof matrix TcpBandwidth.throughput --system here"
    )


def test_why_of_an_unknown_pair_is_a_mistake(ask):
    done = ask("n2>n3", star())
    assert "'n2>n3' is neither a criterion nor a node or pair" in str(done.exception)


TOGETHER = """\
C-ALL: {description: Sum, metric: TcpBandwidth.aggregate, subject: system, links: [lan],
        at_least: 50 Gb/s, source: contract}
"""


def sum_of(direction, value=None, status="ok", run=1):
    """The figure of the link in one direction, or why there is none."""
    dims = {"link": "lan", "direction": direction}
    if status != "ok":
        return Sample(head(run), "", "TcpBandwidth.*", status=status, why="because", dims=dims)
    return Sample(head(run), "", "TcpBandwidth.aggregate", Decimal(value), "Gb/s", dims=dims)


BOTH_WAYS = [
    (sum_of("in", 60), "", "PASS"),
    (sum_of("in", 40), "", "FAIL"),
    (sum_of("in", 40), "out", "PASS"),
    (sum_of("in", status="generic"), "", "ERROR"),
    (sum_of("in", status="interrupted"), "", "INCOMPLETE"),
    (sum_of("in", status="tool_missing"), "", "INCOMPLETE"),
    (sum_of("in", status="generic"), "out", "PASS"),
]


def test_a_sum_in_one_direction_does_not_answer_for_the_other(tmp_path, monkeypatch):
    for back, direction, verdict in BOTH_WAYS:
        told = f"conditions: {{direction: {direction}}}, " if direction else ""
        site = load(tmp_path, monkeypatch, criteria=TOGETHER.replace("source:", f"{told}source:"))
        found = judgement.judge_samples(site, [sum_of("out", 60), back], "all")
        assert [str(v.verdict) for v in found.verdicts] == [verdict], (back, direction)


def test_the_sum_of_a_link_is_compared_under_the_links_name(tmp_path, monkeypatch):
    site = load(tmp_path, monkeypatch)

    def sums(run, value):
        return [
            *star(run=run),
            Sample(
                head(run),
                "",
                "TcpBandwidth.aggregate",
                Decimal(value),
                "Gb/s",
                dims={"link": "lan", "direction": "out"},
            ),
        ]

    found = comparison.compare(site, sums(1, 90), sums(2, 45), tmp_path)
    row = next(r for r in found.rows if r.name.startswith("TcpBandwidth.aggregate"))
    assert (row.name, row.role, str(row.nodes)) == (
        "TcpBandwidth.aggregate [direction out, link lan]",
        "link",
        "lan",
    )
    assert row.change.change == pytest.approx(-0.5)
