"""A node that restarts while it is tested, or whose slurmd does, is named; a maintenance is not."""

from decimal import Decimal

import pytest
from fleets import header, judged, load, names

from siteproof.analysis.restarts import Look, looks, restarted
from siteproof.gate.decision import Excuse, decide
from siteproof.nodes import states
from siteproof.record.samples import Sample

DAY = 86400.0


def look(at=100.0, began=0.0, boot="b", age=DAY, slurmd=DAY, seen=True, campaign="c"):
    return Look(campaign, began, at, boot, age, slurmd, seen)


def told(odd, count=8, **keys):
    """What is said of a fleet in which one node has these looks and the others are well."""
    well = {
        f"n{number}": [look(), look(200, age=DAY + 100, slurmd=DAY + 100)]
        for number in range(1, count)
    }
    return restarted(well | {"odd": odd}, **keys)


def test_a_fleet_in_which_nothing_restarted_is_told_nothing():
    assert told([look(), look(200, age=DAY + 100, slurmd=DAY + 100)]) == ({}, "")


@pytest.mark.parametrize(
    ("looks", "what"),
    [
        ([look(age=30, slurmd=20)], "Health.uptime: the node restarted"),
        (
            [look(slurmd=20)],
            "Health.slurmd_age: slurmd restarted meanwhile: 20 s old at 00:01:40 UTC",
        ),
        ([look(slurmd=None, seen=False)], "Health.slurmd_age: no slurmd was there"),
        ([look(), look(200, 150, age=DAY + 100, slurmd=DAY)], "slurmd restarted"),
        ([look(), look(200, 150, "other", age=60, slurmd=60)], "the node restarted"),
        ([look(slurmd=20), look(200, 150, age=DAY + 100, slurmd=120)], "slurmd restarted"),
    ],
    ids=["node, one look", "slurmd, one look", "no slurmd", "slurmd, two", "node, two", "older"],
)
def test_a_restart_of_one_node_is_told_with_what_did(looks, what):
    found, warning = told(looks)
    assert list(found) == ["odd"]
    assert what in found["odd"]
    assert "3 looks in a row" in found["odd"]
    assert warning == ""


@pytest.mark.parametrize(
    "looks",
    [
        [look(slurmd=101)],  # it started before the session did
        [look(slurmd=None, seen=None)],  # measured by an older version
        [look(), look(200, 150, age=DAY + 100, slurmd=70, campaign="another")],
        [look(), look(200, 150, "other", age=70, slurmd=70, campaign="another")],
        [
            look(slurmd=20),
            *(look(n, n - 50, age=DAY + n - 100, slurmd=n - 80) for n in (200, 300, 400)),
        ],
    ],
    ids=["before", "unknown", "another campaign", "another boot then", "three good looks since"],
)
def test_what_proves_no_restart_within_the_campaign_accuses_nobody(looks):
    assert told(looks) == ({}, "")


def test_restarts_of_many_are_a_maintenance_and_told_as_one():
    every = {f"n{n}": [look(age=30, slurmd=20)] for n in range(8)}
    found, warning = restarted(every)
    assert found == {}
    assert "8 of 8 nodes, or their slurmd, restarted" in warning
    two = {n: held if n in ("n0", "n1") else [look()] for n, held in every.items()}
    assert restarted(two)[0] == {}, "two of eight are a quarter"
    one = {n: held if n == "n0" else [look()] for n, held in every.items()}
    assert list(restarted(one)[0]) == ["n0"]


def test_where_no_node_sees_a_slurmd_nothing_is_said():
    assert restarted({f"n{n}": [look(slurmd=None, seen=False)] for n in range(8)}) == ({}, "")


def test_three_nodes_accuse_nobody():
    found, warning = told([look(slurmd=20)], count=3)
    assert (found, bool(warning)) == ({}, True)


def health(node, age, slurmd, at="20261121T180000Z-abc", **keys):
    """One look, a minute after its session began."""
    head = header(1, "Health", session=at, time="2026-11-21T18:01:00+00:00", **keys)
    count = {"uptime": age, "slurmd_age": slurmd, "time": 1795284059}  # the clock: a second before
    return (
        [Sample(head, node, "Health.boot", "b", "text")]
        + [
            Sample(head, node, f"Health.{name}", Decimal(value), "s")
            for name, value in count.items()
            if value is not None
        ]
        + (
            []
            if slurmd is not None
            else [
                Sample(
                    head, node, "Health.not_read", "why", "text", dims={"parameter": "slurmd_age"}
                )
            ]
        )
    )


def test_looks_are_read_from_samples():
    found = looks([*health("n001", 500, 20), *health("n002", 500, None)])
    began = 1795284000.0
    assert found["n001"] == [
        Look("20261121T180000Z-abc", began, began + 59, "b", 500.0, 20.0, True)
    ]
    assert found["n002"][0].seen is False
    assert found["n002"][0].slurmd is None


def test_nodes_names_the_node_whose_slurmd_came_back_and_warns_of_many(tmp_path, monkeypatch):
    site = load(tmp_path, monkeypatch)
    found = [s for n in names(8) for s in health(n, 9000, 20 if n == "n003" else 9000)]
    report = states.report(judged(site, found), [])
    assert str(report.of(states.State.FAILED)) == "n003"
    assert "slurmd restarted meanwhile: 20 s old" in report.nodes["n003"].reasons[0]
    every = [s for n in names(8) for s in health(n, 9000, 20)]
    report = states.report(judged(site, every), [])
    assert not report.of(states.State.FAILED)
    assert any("somebody works on the machine" in warning for warning in report.warnings)


def test_a_known_flapping_node_may_be_waived():
    found, _ = told([look(slurmd=20)])
    report = states.NodeReport("odd", "compute", states.State.FAILED, [found["odd"]], {})
    for thing, back in (("Health.slurmd_age", True), ("Health.uptime", False)):
        excuse = Excuse(frozenset({thing}), frozenset(), "why")
        assert decide({"odd": report}, {"odd": [excuse]}).rulings["odd"].back is back
