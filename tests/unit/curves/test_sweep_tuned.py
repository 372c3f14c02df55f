"""Sweeps over knobs answer what SC11 says of its tuning: which values, and how many samples."""

from dataclasses import replace
from decimal import Decimal

import pytest
from reasons import reasons
from rows import rows

from siteproof import sites
from siteproof.answers.attempts import refusal
from siteproof.curves import whole_sweep
from siteproof.record.finding import Kind
from siteproof.record.samples import Header, Sample
from siteproof.verdict import judgement

RPCS, DIRTY = "knob.lustre.osc.*.max_rpcs_in_flight", "knob.lustre.osc.*.max_dirty_mb"


@pytest.fixture
def site(monkeypatch):
    monkeypatch.delenv("SITEPROOF_SITES", raising=False)
    return sites.load("sc11-wan")


def sample(rpcs, trial=1, *, read="", dirty="own", status="ok", check="Ior"):
    header = Header(
        "20261121T120000Z-1",
        "sc11-wan",
        "seattle",
        "system",
        check,
        "1",
        "2026-11-21T12:00:00+00:00",
        "maintenance",
        conditions={"sweep": "lustre_knobs_ior", "sweep_hash": "x", "program": "ior"},
    )
    good = status == "ok"
    return Sample(
        header,
        "",
        f"{check}.{'write' if good else '*'}",
        Decimal(100) if good else None,
        "MiB/s" if good else "",
        status=status,
        trial=trial,
        dims={"tasks": "1", RPCS: rpcs, DIRTY: dirty},
        own_conditions={RPCS: read or rpcs, DIRTY: "32" if dirty == "own" else dirty},
    )


def verdict(site, found, criterion):
    swept = whole_sweep.of_all(site, found)
    judged = judgement.judge_samples(site, [*found, *swept.samples], "these", swept)
    return next(v for v in judged.verdicts if v.id == criterion)


def sweep(*values, **more):
    return [sample(str(value), trial, **more) for value in values for trial in (1, 2, 3)]


def test_all_powers_of_two_that_were_read_back_pass(site):
    found = [*sweep(8, 16, 32, 64, 128), *sweep("own", read="8")]
    assert str(verdict(site, found, "SC11-SWEEP-RPCS").verdict) == "PASS"
    assert str(verdict(site, found, "SC11-BEST").verdict) == "PASS"


def test_a_value_that_was_not_read_back_does_not_count(site):
    found = [*sweep(8, 16, 64, 128), *sweep(32, read="64")]
    assert str(verdict(site, found, "SC11-SWEEP-RPCS").verdict) == "FAIL"


def test_a_value_that_was_read_in_two_forms_is_one_value(site):
    found = [*sweep(8, 16, 64, 128), sample("8", 4, read="8.0")]
    assert str(verdict(site, found, "SC11-SWEEP-RPCS").verdict) == "FAIL"


def test_a_sweep_without_the_ends_is_no_answer(site):
    found = verdict(site, sweep(16, 32, 64), "SC11-SWEEP-RPCS")
    assert str(found.verdict) == "INCOMPLETE"


def test_a_failed_value_does_not_count(site):
    found = [*sweep(8, 16, 32, 128), *sweep(64, status="invalid")]
    assert str(verdict(site, found, "SC11-SWEEP-RPCS").verdict) == "FAIL"


def test_one_sample_a_point_is_too_few(site):
    assert str(verdict(site, [sample("8"), sample("128")], "SC11-BEST").verdict) == "FAIL"


def test_what_stays_the_machines_own_is_no_value_of_the_sweep(site):
    assert str(verdict(site, sweep(8, 128), "SC11-SWEEP-DIRTY").verdict) == "INCOMPLETE"


def test_knobs_of_tcp_say_nothing_of_a_file_system(site):
    assert whole_sweep.of_all(site, sweep(8, 128, check="TcpSweep")).samples == []


@rows("rpcs, dirty, answers", [("own", "own", True), ("8", "own", False), ("own", "256", False)])
def test_what_was_measured_with_turned_knobs_answers_no_contract(site, rpcs, dirty, answers):
    """Nor does its failure accuse anybody: a sweep goes where it is slow on purpose."""
    told = {
        "file_system": "seattle",
        "tasks_per_node": "1",
        "api": "POSIX",
        "layout": "file_a_task",
        "stripe_count": "30",
    }
    found = [
        replace(s, dims={**s.dims, "tasks": "30"}, own_conditions={**s.own_conditions, **told})
        for s in sweep(rpcs, dirty=dirty, read="8")
    ]
    judged = verdict(site, found, "SC11-IOR30-LAN-WRITE")
    assert str(judged.verdict) == ("FAIL" if answers else "INCOMPLETE")
    if not answers:
        ((kind, held),) = reasons(judged)
        assert kind is Kind.SETTING_CHANGED
        assert held["setting"].startswith("lustre.osc.*.")
    bad = [replace(s, metric="Ior.*", status="invalid", value=None, unit="") for s in found]
    assert str(verdict(site, bad, "SC11-IOR30-LAN-WRITE").verdict) == (
        "FAIL" if answers else "INCOMPLETE"
    )


def test_a_knob_that_all_points_had_set_answers_no_contract_either(site):
    fixed = replace(sample("own"), dims={"tasks": "30", "tasks_per_node": "1"})
    why = refusal(site.criteria["SC11-IOR30-LAN-WRITE"], fixed)
    assert (why.kind, why["setting"]) == (Kind.SETTING_CHANGED, "lustre.osc.*.max_rpcs_in_flight")
