"""Criteria on programs that ran over growing numbers of nodes."""

from decimal import Decimal

import fleets
import nets
import pytest
import recomputed
from rows import rows

from siteproof import sites
from siteproof.answers import reachable
from siteproof.record.samples import Sample
from siteproof.verdict import judgement
from siteproof.wording.findings import sentence

SCALING = """\
scaling:
  flow: {command: launch flow, answer: right, result: 'mean #', tolerance: 1 %, nodes: [1, 2, 4],
         tasks_per_node: 1, scaling: strong}
"""
CRITERION = """\
C: {{description: d, metric: Scaling.{metric}, subject: system, source: s, max_age: none,
     conditions: {{application: {application}{conditions}}}, {bound}}}
"""
NOT_ACCOUNTED = "no energy: Slurm accounts none"
HALVES = {1: 100, 2: 160, 4: 200}  # rates of all nodes together


@pytest.fixture
def judged(tmp_path, monkeypatch):
    """The verdict on a criterion from these samples, and its reason."""

    def judge(metric, bound, found, conditions="", application="flow"):
        keys = {"bound": bound, "conditions": conditions, "application": application}
        criteria = CRITERION.format(metric=metric, **keys)
        folder = nets.write_site(tmp_path / "sites", count=4, criteria=criteria)
        with (folder / "here" / "system.yaml").open("a") as file:
            file.write(SCALING)
        monkeypatch.setenv("SITEPROOF_SITES", str(folder))
        result = judgement.judge_samples(sites.load("here"), list(found), "all of it")
        recomputed.must_agree(result)
        unit = result.verdicts[0].nodes[0]
        judge.point, judge.unjudged = unit.point, result.unjudged
        why = unit.sample.why if unit.sample else " ".join(map(str, unit.findings))
        return f"{result.verdicts[0].verdict}", why

    return judge


def over(values, metric="printed", unit="count", run=1, environment="system", **conditions):
    """One job: the values of a program by number of nodes; None is a failure."""
    told = {"application": "flow", "sweep": "scaling.flow", "program": "own", **conditions}
    head = fleets.header(run, "Scaling", conditions=told, job=f"{run}.{environment}")
    known = {"provenance": {"nodes": f"n[1-{max(values)}]"}, "environment": environment}
    head = head.__class__(**{**vars(head), **known})
    for count, value in values.items():
        dims = {"tasks": str(count), "tasks_per_node": "1", "nodes": str(count)}
        if value is None:
            yield Sample(head, "", "Scaling.*", status="generic", why="it crashed", dims=dims)
        elif value == NOT_ACCOUNTED:
            status = "tool_missing"
            yield Sample(head, "", f"Scaling.{metric}", status=status, why=value, dims=dims)
        else:
            yield Sample(head, "", f"Scaling.{metric}", Decimal(str(value)), unit, dims=dims)


def alone(values):
    head = fleets.header(1, "Hpl", conditions={"program": "hpcc"}, job="alone")
    for number, value in enumerate(values, 1):
        yield Sample(head, f"n{number}", "Hpl.gflops", Decimal(value), "GFLOPS")


@rows(
    "conditions, bound, expected",
    [
        ("", "at_least: 50 %", "PASS"),
        ("", "at_least: 51 %", "FAIL"),
        (", nodes: '2'", "at_least: 80 %", "PASS"),
        (", nodes: {at_least: 3}", "at_least: 80 %", "FAIL"),
        (", nodes: '8'", "at_least: 1 %", "INCOMPLETE"),
    ],
)
def test_efficiency_is_relative_to_the_smallest_number_and_the_worst_decides(
    judged, conditions, bound, expected
):
    assert judged("efficiency", bound, over(HALVES), conditions)[0] == expected


def test_the_smallest_number_is_the_smallest_that_ran(judged):
    found = judged("efficiency", "at_least: 62.5 %", over({1: None, 2: 160, 4: 200}))
    assert found == ("PASS", "200 on 4, 160 on 2 nodes")
    assert judged("efficiency", "at_least: 1 %", over({1: 100}))[0] == "INCOMPLETE"


def test_another_application_that_fails_takes_nothing_back(judged):
    other = over({1: None, 2: None}, run=2, application="other")
    assert judged("efficiency", "at_least: 50 %", [*over(HALVES), *other])[0] == "PASS"


def test_of_several_applications_each_counts_and_the_worst_decides_and_is_named(judged):
    application = "[flow, other]"
    first = over({1: 100, 2: 120})
    found = [*first, *over({1: 1, 2: 2}, run=2, application="other")]
    told = judged("efficiency", "at_least: 80 %", found, application=application)
    assert told == ("FAIL", "120 on 2, 100 on 1 node")
    assert judged.point == "application flow"
    assert judged("printed", "at_least: 50 count", found, application=application)[0] == "FAIL"
    assert judged.point == "application other, nodes 1, tasks 1"


@rows(
    "conditions, metric, bound, told",
    [
        ("application: floe", "speed", "1 problems/h", "system.yaml has no scaling.floe"),
        (
            "application: flow, nodes: '8'",
            *("speed", "1 problems/h", "no application of scaling in system.yaml runs on 8 nodes"),
        ),
        ("application: flow, nodes: '4'", "speed", "1 problems/h", ""),
        ("application: flow", "plateau", "4 nodes", ""),
        (
            "application: flow",
            *("plateau", "5 nodes", "no application of scaling runs on 5 nodes; the most is 4"),
        ),
    ],
)
def test_lint_names_an_application_or_a_number_of_nodes_that_the_site_does_not_have(
    tmp_path, monkeypatch, conditions, metric, bound, told
):
    criteria = CRITERION.replace("application: {application}{conditions}", conditions)
    criteria = criteria.format(metric=metric, bound=f"at_least: {bound}")
    folder = nets.write_site(tmp_path / "sites", count=4, criteria=criteria)
    with (folder / "here" / "system.yaml").open("a") as file:
        file.write(SCALING)
    monkeypatch.setenv("SITEPROOF_SITES", str(folder))
    site = sites.load("here")
    why = reachable.lacking(site, site.criteria["C"], reachable.Sweeps())
    assert (sentence(why) if why else "") == told


@rows(
    "metric, bound, application, told",
    [
        ("gflops", "at_least: 1 GFLOPS", "hpl", ""),
        ("gflops", "at_least: 1 GFLOPS", "[flow, hpl]", ""),
        ("gflops", "at_least: 1 GFLOPS", "flow", "flow"),
        ("rate", "at_least: 1 atom-steps/s", "", "flow, hpl, silent"),
        ("rate", "at_least: 1 atom-steps/s", "hpl", "hpl"),
        ("printed", "at_least: 1 count", "", ""),
        ("printed", "at_least: 1 count", "silent", "silent"),
        ("speed", "at_least: 1 problems/h", "silent", ""),
        ("speed", "at_least: 1 problems/h", "flow", "flow"),
        ("differing_results", "equals: 0 count", "[hpl, silent]", "hpl, silent"),
        ("efficiency", "at_least: 50 %", "hpl", ""),
        ("energy", "at_most: 1 J", "", ""),
        ("share_of_hpl", "at_least: 50 %", "silent", "silent"),
    ],
)
def test_lint_names_the_programs_that_do_not_yield_the_metric(
    tmp_path, monkeypatch, metric, bound, application, told
):
    conditions = f"application: {application}" if application else ""
    criteria = CRITERION.replace("application: {application}{conditions}", conditions)
    folder = nets.write_site(
        tmp_path / "sites", count=4, criteria=criteria.format(metric=metric, bound=bound)
    )
    with (folder / "here" / "system.yaml").open("a") as file:
        file.write(SCALING.replace("nodes:", "prints: '#', nodes:", 1))
        more = "nodes: [1, 2], tasks_per_node: 1, scaling: weak"
        file.write(f"  hpl: {{program: hpl, {more}}}\n")
        file.write(f"  silent: {{command: launch s, answer: right, {more}}}\n")
    monkeypatch.setenv("SITEPROOF_SITES", str(folder))
    site = sites.load("here")
    why = reachable.lacking(site, site.criteria["C"], reachable.Sweeps())
    found = sentence(why) if why else ""
    end = f" of scaling in system.yaml: no program that yields Scaling.{metric}"
    assert found.endswith(end) == bool(told) and found.removesuffix(end) in (told, found)
    assert not told or found == told + end


def test_the_plateau_is_a_number_only_where_it_was_reached(judged):
    flat = {1: 100, 2: 200, 4: 204, 8: 203}
    assert judged("plateau", "at_least: 2 nodes", over(flat))[0] == "PASS"
    assert judged("plateau", "at_least: 1 nodes", over({1: 100, 2: 200, 4: 400}))[0] == "INCOMPLETE"


def test_a_plateau_on_more_nodes_than_any_run_had_names_the_largest_number(judged):
    verdict, why = judged("plateau", "at_least: 8 nodes", over({1: 100, 2: 200, 4: 400}))
    assert verdict == "INCOMPLETE"
    assert "('largest', 4), ('needed', '8')" in why


def test_what_a_value_that_a_criterion_requires_follows_from_is_covered(judged):
    judged("share_of_hpl", "at_least: 90 %", alone([25] * 4))
    assert judged.unjudged == []
    judged("gflops", "at_least: 9 GFLOPS", alone([25] * 4))
    assert judged.unjudged == ["Hpl.gflops"]


def test_the_whole_machine_is_a_part_of_the_sum_of_its_own_nodes(judged):
    whole = list(over({2: 50, 4: 90}, "gflops", "GFLOPS", program="hpcc"))
    nodes = list(alone([25, 25, 25, 25]))
    found = judged("share_of_hpl", "at_least: 90 %", [*whole, *nodes])
    assert found == ("PASS", "90 GFLOPS of 100 GFLOPS, the sum of 4 nodes")
    assert judged("share_of_hpl", "at_least: 90 %", [*whole, *nodes[:3]])[0] == "INCOMPLETE"
    other = over({4: 90}, "gflops", "GFLOPS", program="xhpl")
    assert judged("share_of_hpl", "at_least: 90 %", [*other, *nodes])[0] == "INCOMPLETE"


def test_energy_that_slurm_does_not_account_is_a_skip_whatever_failed_before(judged):
    failed, without = over({1: None, 2: None}), dict.fromkeys((1, 2), NOT_ACCOUNTED)
    found = judged("energy", "at_most: 9 J", [*failed, *over(without, "energy", "J", run=2)])
    assert found == ("SKIP", NOT_ACCOUNTED)
    some = over({1: 5, 2: NOT_ACCOUNTED}, "energy", "J", run=3)
    assert judged("energy", "at_most: 9 J", some)[0] == "INCOMPLETE"


def test_another_result_on_other_nodes_or_another_library_fails_and_is_named(judged):
    one = list(over({1: 10, 2: 10.05, 4: 9.95}, "result", "x", mpi="openmpi"))
    assert judged("differing_results", "at_most: 0 count", one)[0] == "PASS"
    other = over({4: 10.2}, "result", "x", environment="mpich", mpi="mpich")
    assert judged("differing_results", "at_most: 0 count", [*one, *other]) == (
        "FAIL",
        "10 on 1 node (system, openmpi); 10.2 on 4 nodes (mpich, mpich)",
    )
    assert judged("differing_results", "at_most: 0 count", one[:1])[0] == "INCOMPLETE"
