"""What somebody else has ended says nothing of a node: no failure, no attempt, only no figure."""

import pytest
from fleets import broken, furnish, good, judged, load, names, run_of

from siteproof.answers.criterion import Verdict
from siteproof.nodes import states

CRITERIA = """\
C-TRIAD:
  {description: d, metric: Stream.triad, at_least: 60 MB/s, source: s, scope: every node}
"""


def ended(run=1, nodes=None):
    return [
        broken(n, "interrupted", run, "left no result (job CANCELLED)") for n in nodes or names(8)
    ]


@pytest.fixture
def site(tmp_path, monkeypatch):
    return load(tmp_path, monkeypatch, criteria=CRITERIA)


def test_an_interrupted_job_leaves_its_nodes_untested_and_accuses_none(site):
    report = states.report(judged(site, ended()))
    assert str(report.of(states.State.UNTESTED)) == "n[001-008]"
    why = report.nodes["n001"].findings[0]
    assert (why.kind, why.check) == ("interrupted", "Stream")
    assert why.message == "left no result (job CANCELLED)"
    assert report.nodes["n001"].untested


def test_it_is_said_also_of_a_check_that_nobody_asks_for(site):
    report = states.report(
        judged(site, [*good(), *(broken(n, "interrupted", check="Health") for n in names(8))])
    )
    assert str(report.of(states.State.UNTESTED)) == "n[001-008]"


def test_what_was_measured_before_still_counts(site):
    found = [*good(1), *ended(2)]
    assert str(states.report(judged(site, found)).of(states.State.OK)) == "n[001-008]"
    [verdict] = judged(site, found).verdicts
    assert (verdict.verdict, verdict.ok) == (Verdict.PASS, 8)


def test_a_failure_before_is_not_taken_back(site):
    found = [*run_of({n: 100 for n in names(8)[1:]}), broken("n001", "timeout", 1), *ended(2)]
    report = states.report(judged(site, found))
    assert str(report.of(states.State.FAILED)) == "n001"


def test_a_wrong_answer_is_not_forgotten_because_of_interruptions(site):
    found = [
        *run_of({n: 100 for n in names(8)[1:]}),
        broken("n001", "invalid", 1),
        *ended(2),
        *ended(3),
        *ended(4),
    ]
    assert str(states.report(judged(site, found)).of(states.State.FAILED)) == "n001"
    found += good(5)
    assert not states.report(judged(site, found)).of(states.State.FAILED)


def test_the_verdict_is_incomplete_with_the_reason(site):
    [verdict] = judged(site, ended()).verdicts
    assert verdict.verdict is Verdict.INCOMPLETE
    assert [(why.kind, why.message) for why in verdict.findings] == [
        ("interrupted", "left no result (job CANCELLED)")
    ]


@pytest.fixture
def world_of_eight(world):
    return furnish(world)


def test_an_interrupted_session_takes_no_answer_back_and_is_named(world_of_eight):
    world_of_eight.keep([*good(1), *ended(2)])
    done = world_of_eight.ask("verdict")
    assert done.code == 0
    assert "interrupted" in done.out and "s0002" in done.out
    assert "interrupted: left no result" in world_of_eight.ask("why", "n003").out


def test_an_interrupted_session_alone_answers_nothing(world_of_eight):
    world_of_eight.keep(ended(2))
    assert world_of_eight.ask("verdict").code == 3
    why = " ".join(world_of_eight.ask("why", "n003").out.split())
    assert "does not count: not measured: interrupted" in why
    assert world_of_eight.ask("nodes", "--untested").out == "n[001-008]\n"


def test_the_gate_keeps_an_interrupted_node_out_as_untested(world_of_eight):
    world_of_eight.keep([*run_of({n: 100 for n in names(7)}), *ended(1, ["n008"])])
    done = world_of_eight.ask("gate")
    assert done.out.splitlines()[-2].startswith("1 of 8 nodes stay out: n008 UNTESTED")
    assert "FAILED" not in done.out
