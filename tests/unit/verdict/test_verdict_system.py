"""Criteria on the system as a whole: its own figures answer, median of trials, and no node's do."""

from dataclasses import replace
from decimal import Decimal

import pytest
from fleets import header
from reasons import kinds

from siteproof import sites
from siteproof.checks import missing
from siteproof.record.finding import Kind
from siteproof.record.samples import Sample
from siteproof.verdict import judgement

SYSTEM = """\
system: here
description: A system
recognise: {fallback: true}
nodes:
  compute: {set: 'n[1-4]'}
partitions:
  compute: {description: All, role: compute, scheduler: local, environments: [system]}
environments:
  system: {description: Installed}
"""
CRITERIA = """\
C-READ:
  description: Four tasks read
  metric: Ior.read
  subject: system
  at_least: 100 MiB/s
  conditions: {tasks: 4}
  trials: 3
  source: contract
"""


@pytest.fixture
def site(tmp_path, monkeypatch):
    where = tmp_path / "here"
    where.mkdir()
    for name, text in (("system", SYSTEM), ("criteria", CRITERIA), ("baselines", "{}\n")):
        (where / f"{name}.yaml").write_text(text)
    monkeypatch.setenv("SITEPROOF_SITES", str(tmp_path))
    return sites.load("here")


def ok(value, trial, node="", tasks="4", run=1):
    return Sample(
        header(run, "Ior", conditions={"program": "ior"}),
        node,
        "Ior.read",
        Decimal(str(value)),
        "MiB/s",
        trial=trial,
        dims={"tasks": tasks},
    )


def lost(trial, tasks="4", status="timeout", run=1):
    return Sample(
        header(run, "Ior"),
        "",
        "Ior.*",
        status=status,
        why="because",
        trial=trial,
        dims={"tasks": tasks},
    )


def verdict(site, found):
    judged = judgement.judge_samples(site, found, "these").verdicts[0]
    return str(judged.verdict), judged


def test_the_median_of_the_trials_decides(site):
    assert verdict(site, [ok(v, t) for t, v in ((1, 90), (2, 100), (3, 200))])[0] == "PASS"
    word, judged = verdict(site, [ok(v, t) for t, v in ((1, 90), (2, 99.99), (3, 200))])
    assert word == "FAIL"
    assert [(n.node, str(n.value)) for n in judged.nodes] == [("here", "9999/100")]


def test_fewer_trials_than_the_contract_asks_are_incomplete(site):
    word, judged = verdict(site, [ok(200, 1), ok(200, 2)])
    assert (word, kinds(judged)) == ("INCOMPLETE", [Kind.TRIALS_MISSING])
    assert (judged.findings[0]["trials"], judged.findings[0]["expected"]) == (2, 3)
    assert verdict(site, [ok(200, 1), ok(200, 2), lost(3)])[0] == "INCOMPLETE"


def test_another_number_of_tasks_does_not_answer_and_its_failure_accuses_nobody(site):
    assert verdict(site, [ok(900, t, tasks="8") for t in (1, 2, 3)])[0] == "INCOMPLETE"
    good = [ok(200, t) for t in (1, 2, 3)]
    assert verdict(site, [*good, lost(1, tasks="8", run=2)])[0] == "PASS"


def test_a_wrong_answer_is_a_failure_and_a_lost_node_none(site):
    good = [ok(200, t) for t in (1, 2)]
    assert verdict(site, [*good, lost(3, status="invalid")])[0] == "FAIL"
    assert verdict(site, [lost(1)])[0] == "ERROR"
    assert verdict(site, [lost(1, status="node_lost")])[0] == "INCOMPLETE"
    assert verdict(site, [lost(1, status="tool_missing")])[0] == "SKIP"


def test_the_newest_job_counts(site):
    found = [ok(200, t) for t in (1, 2, 3)] + [ok(50, t, run=2) for t in (1, 2, 3)]
    assert verdict(site, found)[0] == "FAIL"


def test_a_nodes_figure_is_not_the_systems(site):
    of_node = [ok(200, t, node="n1") for t in (1, 2, 3)]
    for found in (of_node, []):
        assert kinds(verdict(site, found)[1]) == [Kind.NOT_MEASURED]


def test_a_link_as_a_whole_is_not_the_system(site):
    found = [replace(ok(200, t), dims={"tasks": "4", "link": "lan"}) for t in (1, 2, 3)]
    assert verdict(site, found)[0] == "INCOMPLETE"


def compared(site, found):
    [(name, value, unit, reference)] = missing.compared(site, "Ior", "read", "acceptance", found)
    low = reference[0]
    return value, unit, reference[1] is None or value >= low


def test_reframe_compares_the_same_median_with_the_same_bound(site):
    for values, kept in (
        ((90, 100, 200), True),
        ((90, 99.99, 200), False),
        ((100, 100, 100), True),
        ((1, 1, 500), False),
    ):
        found = [ok(v, t) for t, v in enumerate(values, 1)]
        assert compared(site, found) == (sorted(values)[1], "MiB/s", kept), values
        assert (verdict(site, found)[0] == "PASS") is kept, values


def test_reframe_compares_the_point_that_is_promised_and_not_a_slower_one(site):
    others = [ok(1, t, tasks="8") for t in (1, 2, 3)]
    assert compared(site, [*others, *(ok(200, t) for t in (1, 2, 3))]) == (200, "MiB/s", True)
    assert compared(site, [*others, *(ok(50, t) for t in (1, 2, 3))]) == (50, "MiB/s", False)
    assert compared(site, others) == (1, "MiB/s", True)
    assert missing.compared(site, "Ior", "read", "acceptance", [lost(1)]) == []


def test_reframe_has_no_bound_where_fewer_trials_decide_nothing(site):
    assert compared(site, [ok(50, 1), ok(60, 2)]) == (55, "MiB/s", True)
