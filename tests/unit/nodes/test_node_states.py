"""Slow nodes: the edges first, then each state, then fleets of which the bad ones are known."""

import gzip
import json
from dataclasses import replace
from itertools import product

import fleets
import pytest
from fleets import broken, judged, names, past_of, run_of

from siteproof.answers import expected
from siteproof.answers.criterion import judge
from siteproof.nodes import states
from siteproof.nodes.states import State
from siteproof.record import descriptions
from siteproof.record.finding import Kind
from siteproof.record.samples import Sample
from siteproof.sites import Baseline
from siteproof.sites.stated import FactSection


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Makes a site of so many nodes; what the nodes say of themselves lies beside it."""
    monkeypatch.setenv("SITEPROOF_DATA", str(tmp_path))
    return lambda count=8, **keys: fleets.load(tmp_path / "sites", monkeypatch, count=count, **keys)


def report(site, now, before=()):
    now = list(now)
    return states.report(judged(site, now), past_of(site, [*before, *now]))


def slow(found):
    return set(found.of(State.SLOW))


def even(count=8, **different):
    """All nodes alike, but for those that are given."""
    return {**dict.fromkeys(names(count), 100.0), **different}


# ---- each state


def test_without_any_sample_every_node_is_untested_whatever_is_promised(site):
    found = report(site(), [])
    assert {n.state for n in found.nodes.values()} == {State.UNTESTED}
    assert found.suspect_share == 0


def test_a_node_that_is_thirty_per_cent_below_is_slow_at_once(site):
    found = report(site(), run_of(even(n003=70)))
    node = found.nodes["n003"]
    assert slow(found) == {"n003"}
    (why,) = node.findings
    assert (why.kind, why.subject, why.metric) == (Kind.SLOW, "n003", "Stream.triad")
    assert (why.value, why.unit) == ("70", "MB/s")
    assert (why["deficit"], why["median"], why["z"]) == (pytest.approx(0.3), 100, -150)
    assert (why["better"], why["rule"]) == ("higher", "once")
    assert str(found.retest) == "n003"


def test_ten_per_cent_want_a_second_run(site):
    place = site()
    once = report(place, run_of(even(n003=90)))
    assert slow(once) == set()
    (note,) = once.nodes["n003"].notes
    assert (note.kind, note.subject, note.metric) == (Kind.SLOW, "n003", "Stream.triad")
    assert (note["rule"], note["slow"], note["runs"]) == ("unconfirmed", 1, 1)
    assert str(once.retest) == "n003"
    twice = report(place, [*run_of(even(n003=90)), *run_of(even(n003=90), 2)])
    assert slow(twice) == {"n003"}
    assert twice.nodes["n003"].metrics["Stream.triad"].slow_runs == 2
    (why,) = twice.nodes["n003"].findings
    assert (why["rule"], why["slow"], why["runs"]) == ("confirmed", 2, 2)
    assert not twice.retest


def test_a_retest_of_the_slow_ones_alone_is_compared_with_the_whole_fleet(site):
    found = report(site(), [*run_of(even(n003=90, n004=90)), *run_of({"n003": 90, "n004": 100}, 2)])
    assert slow(found) == {"n003"}


def test_one_slow_run_counts_beside_a_fall_of_its_own(site):
    before = [s for run in range(1, 6) for s in run_of(even(), run)]
    found = report(site(), run_of(even(n003=88), 9), before)
    assert slow(found) == {"n003"}
    against_fleet, fell = found.nodes["n003"].findings
    assert (against_fleet.kind, against_fleet["rule"]) == (Kind.SLOW, "confirmed")
    assert (fell.kind, fell.metric, fell["rule"]) == (Kind.FELL, "Stream.triad", "confirmed")
    assert fell["change"] == pytest.approx(-0.12)
    assert found.nodes["n001"].metrics["Stream.triad"].change == 0


def test_what_was_measured_later_is_not_its_history(site):
    later = [s for run in range(10, 16) for s in run_of(even(), run)]
    found = report(site(), run_of(even(n003=88), 9), later)
    assert found.nodes["n003"].metrics["Stream.triad"].change is None


def test_of_two_earlier_values_no_change_is_told(site):
    for runs, change in ((2, None), (3, pytest.approx(-0.1))):
        before = [s for run in range(1, 1 + runs) for s in run_of(even(), run)]
        found = report(site(), run_of(even(n003=90), 9), before)
        assert found.nodes["n003"].metrics["Stream.triad"].change == change, runs


def test_a_step_of_the_whole_fleet_is_told_once_and_accuses_nobody(site):
    before = [s for run in range(1, 6) for s in run_of(even(), run)]
    now = {node: value * 0.8 for node, value in even().items()}
    found = report(site(), run_of(now, 9), before)
    assert slow(found) == set()
    (why,) = found.warnings
    assert (why.kind, why.metric, why["role"]) == (Kind.NOTE, "Stream.triad", "compute")
    assert why["change"] == pytest.approx(-0.2)


def test_other_conditions_are_another_series(site):
    fast = run_of(even(), 1, conditions={"program": "stream", "threads": "8"})
    slower = run_of(even(), 2, conditions={"program": "stream", "threads": "1"}, mode="quick")
    both = report(site(), [*fast, *[s for s in slower if s.node != "n001"]])
    assert slow(both) == set()


def test_a_warning_or_a_block_more_is_no_other_condition(site):
    head = fleets.header(1, conditions={"n": "92736", "memory_share": "0.5001"})
    own = {"n003": {"n": "92928", "memory_share": "0.5021", "blas_warning": "unknown processor"}}
    found = report(
        site(),
        [
            Sample(head, s.node, s.metric, s.value, s.unit, own_conditions=own.get(s.node, {}))
            for s in run_of(even(n003=50))
        ],
    )
    assert slow(found) == {"n003"}
    assert "n003" not in found.of(State.ODD)


def test_a_node_that_hides_in_a_series_of_its_own_is_odd(site):
    head = fleets.header(1, conditions={"program": "stream", "blas_kernel": "SkylakeX"})
    found = report(
        site(),
        [
            Sample(
                head,
                s.node,
                s.metric,
                s.value,
                s.unit,
                own_conditions={"blas_kernel": "Prescott"} if s.node == "n003" else {},
            )
            for s in run_of(even(n003=10))
        ],
    )
    assert found.nodes["n003"].state is State.ODD
    (why,) = found.nodes["n003"].findings
    assert (why.kind, why.subject, why.check) == (Kind.CONDITION_DIFFERS, "n003", "Stream")
    assert dict(why.details) == {
        "condition": "blas_kernel",
        "found": "Prescott",
        "majority": "SkylakeX",
    }


CRITERIA = """\
C-TRIAD:
  {description: d, metric: Stream.triad, at_least: 60 MB/s, source: s, scope: every node}
"""


def test_a_node_below_the_contract_has_failed(site):
    found = report(site(criteria=CRITERIA), run_of(even(n003=50)))
    assert found.nodes["n003"].state is State.FAILED
    contract, against_fleet = found.nodes["n003"].findings
    assert (contract.kind, contract.criterion, contract.metric, contract.check) == (
        Kind.MISSES_BOUND,
        "C-TRIAD",
        "Stream.triad",
        "Stream",
    )
    assert (contract.value, contract.unit, contract.bound) == ("50.00", "MB/s", "at least 60 MB/s")
    assert (against_fleet.kind, against_fleet.criterion) == (Kind.SLOW, "")


def test_a_node_below_its_baseline_is_slow_and_meets_the_contract(site):
    place = site(criteria=CRITERIA)
    now = run_of(even(n003=70))
    usual = Baseline(metric="Stream.triad", at_least="90 MB/s", source="s", taken="2026-01-01")
    (criterion,) = place.criteria.values()
    verdict = judge(
        "C-TRIAD", criterion, now, expected.nodes(place, criterion), {n: [usual] for n in even()}
    )
    both = replace(judged(place, now), verdicts=[verdict])
    why = states.report(both, past_of(place, now)).nodes["n003"].findings[0]
    assert (why.kind, why.criterion) == (Kind.BELOW_BASELINE, "C-TRIAD")
    assert (why.value, why.unit, why.bound) == ("70.00", "MB/s", "90 MB/s")


WITHOUT_N003 = {n: v for n, v in even().items() if n != "n003"}


def test_a_node_without_an_answer_or_with_a_wrong_one_has_failed(site):
    place = site()
    for status, kind in (
        ("invalid", Kind.WRONG_ANSWER),
        ("checksum", Kind.WRONG_ANSWER),
        ("timeout", Kind.NO_VALUE),
        ("node_lost", Kind.NODE_LOST),
    ):
        found = report(place, [*run_of(WITHOUT_N003), broken("n003", status)])
        assert found.nodes["n003"].state is State.FAILED, status
        why = found.nodes["n003"].findings[0]
        assert (why.kind, why.status, why.message) == (kind, status, "because")
        assert (why.subject, why.check) == ("n003", "Stream")
        assert found.nodes["n003"].untested, status


def test_a_failure_lasts_since_the_last_value_though_that_is_among_what_is_judged(site):
    place, good = site(), run_of(even(), 1)
    for status, failed in product(("invalid", "timeout", "node_lost"), (1, 2)):
        bad = [[*run_of(WITHOUT_N003, at), broken("n003", status, at)] for at in (2, 3)]
        runs = [*good, *(sample for run in bad[:failed] for sample in run)]
        why = next(why for why in report(place, runs).nodes["n003"].findings if why.status)
        assert why.get("lasting") == failed, status
        assert why.since == bad[0][-1].header.time, (status, failed)


def test_a_session_that_never_ran_on_the_node_is_not_counted_as_a_run_of_its_failure(site):
    runs = run_of(even(), 1, expected="n[001-008]")
    for at in (2, 3, 4):  # two sessions of the others, then one of all
        wanted = "n[001-008]" if at == 4 else "n[001-002,004-008]"
        runs += run_of(WITHOUT_N003, at, expected=wanted)
    runs.append(broken("n003", "timeout", 4, expected="n[001-008]"))
    why = report(site(), runs).nodes["n003"].findings[0]
    assert (why.kind, why.get("lasting")) == (Kind.NO_VALUE, 1)
    assert why.since == runs[-1].header.time


def test_a_missing_tool_is_no_failure_of_the_node(site):
    found = report(site(), [*run_of(WITHOUT_N003), broken("n003", "tool_missing")])
    assert found.nodes["n003"].state is State.UNTESTED


FAILURES = ("invalid", "checksum", "timeout", "killed", "generic", "parse", "node_lost")


def failing(status, *runs, node="n003"):
    """Sessions in which a node fails and the others do not."""
    others = {name: 100 for name in fleets.names(8) if name != node}
    return [s for run in runs for s in (*run_of(others, run), broken(node, status, run))]


def test_a_node_that_failed_twice_in_its_last_ten_sessions_cannot_be_relied_on(site):
    place = site()
    for status in FAILURES:
        once = [*failing(status, 1), *run_of(even(), 2)]
        assert report(place, once).nodes["n003"].state is State.OK, status
        twice = [*failing(status, 1, 2), *run_of(even(), 3)]
        (why,) = report(place, twice).nodes["n003"].findings
        assert (why.kind, why.check, why.status) == (Kind.NOTE, "Stream", status)
        assert dict(why.details) == {"failed": 2, "of": 3, "how": f"2 {status}"}, status
        assert why.since == fleets.header(1).time, status
        good = [s for run in range(3, 11) for s in run_of(even(), run)]
        assert report(place, [*twice[:-8], *good]).nodes["n003"].state is State.FLAPPING, status
        good += run_of(even(), 11)  # now one of the two is eleven sessions ago
        assert report(place, [*twice[:-8], *good]).nodes["n003"].state is State.OK, status


def test_what_says_nothing_about_a_node_or_happens_to_a_whole_job_makes_none_flap(site):
    place = site()
    for status in ("interrupted", "tool_missing"):
        runs = [*failing(status, 1, 2, 3), *run_of(even(), 4)]
        assert report(place, runs).nodes["n003"].state is State.OK, status
    all_of_them = [broken(node, "timeout", run) for run in (1, 2) for node in fleets.names(8)]
    assert report(place, [*all_of_them, *run_of(even(), 3)]).nodes["n003"].state is State.OK
    wrong = [broken(node, "invalid", run) for run in (1, 2) for node in fleets.names(8)]
    assert report(place, [*wrong, *run_of(even(), 3)]).nodes["n003"].state is State.FLAPPING


def test_the_most_severe_status_of_a_run_decides_in_whatever_order_it_was_written(site):
    place = site()
    for statuses in (["tool_missing", "invalid"], ["invalid", "tool_missing"]):
        runs = [*run_of(WITHOUT_N003), *(broken("n003", status) for status in statuses)]
        node = report(place, runs).nodes["n003"]
        wrong = [why.status for why in node.findings if why.is_wrong_answer]
        assert (node.state, wrong) == (State.FAILED, ["invalid"])


def test_the_same_failure_in_two_modes_is_one_reason(site):
    quick = broken("n003", "timeout", 2, mode="quick")
    found = report(site(), [*run_of(WITHOUT_N003), broken("n003", "timeout"), quick])
    kinds = [why.kind for why in found.nodes["n003"].findings]
    assert kinds == [Kind.NO_VALUE, Kind.NOT_MEASURED]


def test_a_failure_is_healed_by_a_newer_run_and_not_by_a_quick_one(site):
    place = site()
    runs = [*run_of(WITHOUT_N003), broken("n003", "timeout")]
    quick = report(place, [*runs, *run_of(even(), 2, mode="quick")])
    assert quick.nodes["n003"].state is State.FAILED
    again = report(place, [*runs, *run_of({"n003": 100}, 2)])
    assert again.nodes["n003"].state is State.OK


def test_a_wrong_answer_enters_no_median(site):
    """A sample that is not ok has no value; here it is even given one."""
    head = fleets.header(1)
    wrong = [
        Sample(head, n, "Stream.triad", run_of({n: 9e9})[0].value, "MB/s", status="invalid")
        for n in names(8)[:3]
    ]
    found = report(site(), [*run_of({n: 100 for n in names(8)[3:]}), *wrong])
    assert found.nodes["n004"].metrics["Stream.triad"].median == 100
    assert "Stream.triad" not in found.nodes["n001"].metrics
    assert set(found.of(State.FAILED)) == {"n001", "n002", "n003"}


def mismatches(count):
    """Of all nodes none, but so many on n003."""
    counts = {**dict.fromkeys(names(8), 0), "n003": count}
    return run_of(counts, metric="HostParameters.mismatches", unit="count")


def wrong_mtu():
    """One mismatch of n003, by its name."""
    head = fleets.header(1, "HostParameters", conditions={"program": "proc"})
    dims, told = {"parameter": "nic.em1.mtu"}, "expected 9000, found 1500"
    return [
        *mismatches(1),
        Sample(head, "n003", "HostParameters.mismatch", told, "text", dims=dims),
    ]


def test_a_host_parameter_that_is_wrong_makes_a_node_odd_by_name(site):
    found = report(site(), wrong_mtu())
    assert found.nodes["n003"].state is State.ODD
    (why,) = found.nodes["n003"].findings
    assert (why.kind, why.metric) == (Kind.PARAMETER_DIFFERS, "HostParameters.mismatches")
    assert (why["parameter"], why.value) == ("nic.em1.mtu", "expected 9000, found 1500")
    assert "HostParameters.mismatches" not in found.nodes["n001"].metrics


def test_host_parameters_that_nobody_named_are_counted(site):
    (why,) = report(site(), mismatches(2)).nodes["n003"].findings
    assert (why.kind, why.metric) == (Kind.PARAMETERS_DIFFER, "HostParameters.mismatches")
    assert why["count"] == "2.00"


def test_a_contract_on_host_parameters_says_which_are_wrong(site):
    promise = (
        "C-HOST:\n  {description: d, metric: HostParameters.mismatches, at_most: 0 count, "
        "source: s, scope: every node}\n"
    )
    found = report(site(criteria=promise), wrong_mtu())
    assert found.nodes["n003"].state is State.FAILED
    why = found.nodes["n003"].findings[0]
    assert (why.kind, why.criterion, why.bound) == (Kind.MISSES_BOUND, "C-HOST", "at most 0")
    assert why.message == "nic.em1.mtu: expected 9000, found 1500"


def test_a_field_that_others_have_otherwise_makes_a_node_odd(site, tmp_path):
    head = fleets.header(1, "SystemDescription")
    kept = {n: {"bios.version": "2.1", "kernel": "6.1"} for n in names(8)}
    kept["n003"] = {"bios.version": "1.9"}
    descriptions.write(tmp_path / "perflogs", head, kept)
    found = report(
        site(), run_of(dict.fromkeys(names(8), 2), metric=descriptions.COUNT, unit="count")
    )
    assert found.nodes["n003"].state is State.ODD
    assert {why.kind for why in found.nodes["n003"].findings} == {Kind.FIELD_DIFFERS}
    assert [
        (why["field"], why["found"], why["majority"], why["role"])
        for why in found.nodes["n003"].findings
    ] == [("bios.version", "1.9", "2.1", "compute"), ("kernel", "missing", "6.1", "compute")]
    path = descriptions.path_of(tmp_path / "perflogs", head)
    assert json.loads(gzip.decompress(path.read_bytes()))


def test_a_field_that_is_not_as_the_site_states_it_makes_a_node_odd(site, tmp_path):
    head, described = fleets.header(1, "SystemDescription"), site()
    facts = {"4.2": FactSection(source="the tender", fields={"bios.*": {"exact": "2.1"}})}
    roles = described.system.nodes
    roles["compute"] = roles["compute"].model_copy(update={"facts": facts})
    kept = {n: {"bios.version": "1.9"} for n in names(8)}
    kept["n003"] = {"kernel": "6.1", "bios.version": "2.1"}
    descriptions.write(tmp_path / "perflogs", head, kept)
    found = report(
        described, run_of(dict.fromkeys(names(8), 2), metric=descriptions.COUNT, unit="count")
    )
    assert set(found.of(State.ODD)) == set(names(8))
    (why,) = found.nodes["n001"].findings
    assert (why.kind, why["found"], why["expected"]) == (Kind.FACT_DIFFERS, "1.9", "2.1")
    assert Kind.FACT_DIFFERS not in {why.kind for why in found.nodes["n003"].findings}


def test_a_node_that_jumps_from_run_to_run_is_unstable(site):
    runs = [
        s
        for run, own in enumerate([100, 118, 82, 119, 84, 101, 100, 100], 1)
        for s in run_of(even(n003=own), run)
    ]
    found = report(site(), [s for s in runs if s.header.session < "s0006"])
    assert found.nodes["n003"].state in (State.UNSTABLE, State.SLOW)
    (why,) = [w for w in found.nodes["n003"].findings if "spread" in dict(w.details)]
    assert (why.metric, why["runs"], why["typical"]) == ("Stream.triad", 5, 0)
    assert why["spread"] > 0.15


def test_who_was_not_measured_is_untested(site):
    found = report(site(), run_of({n: 100 for n in names(8)[:6]}))
    assert str(found.of(State.UNTESTED)) == "n[007-008]"
    (why,) = found.nodes["n007"].findings
    assert (why.kind, why.check, why.metric) == (Kind.NOT_MEASURED, "Stream", "Stream.triad")
    promised = report(site(criteria=CRITERIA), [])
    assert len(promised.of(State.UNTESTED)) == 8


def test_what_keeps_a_node_out_hides_behind_nothing_that_does_not():
    states = list(State)
    assert states.index(State.ODD) < states.index(State.UNSTABLE)
    assert states.index(State.UNTESTED) < states.index(State.UNSTABLE)


def test_a_node_that_the_site_does_not_know_is_left_out(site):
    found = report(site(), run_of({**even(), "stranger": 1}))
    assert "stranger" not in found.nodes
