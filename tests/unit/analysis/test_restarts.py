"""A node that restarts while it is tested, or whose slurmd does, is named; a maintenance is not."""

from decimal import Decimal

from fleets import header, judged, load, names

from siteproof.analysis.uniformity import Age, ages, are_many, restarted
from siteproof.gate.decision import Excuse, decide
from siteproof.nodes import states
from siteproof.record.finding import Finding, Kind
from siteproof.record.samples import Sample
from siteproof.wording.findings import sentence

DAY = 86400.0
WORDS = {
    "node": "the node restarted during the tests: up for {} s",
    "slurmd": "slurmd restarted during the tests: {} s old",
    "no slurmd": "no slurmd was running",
}


def look(at=100.0, began=0.0, boot="b", age=DAY, slurmd=DAY, seen=True, campaign="c"):
    return Age(campaign, began, at, boot, age, slurmd, seen)


def fleet_with(odd, count=8):
    """What restarted in a fleet in which one node has these looks and the others are well."""
    well = {
        f"n{number}": [look(), look(200, age=DAY + 100, slurmd=DAY + 100)]
        for number in range(1, count)
    }
    found = restarted(well | {"odd": odd})
    return found, are_many(found, count)


def test_in_a_fleet_in_which_nothing_restarted_nothing_is_found():
    assert fleet_with([look(), look(200, age=DAY + 100, slurmd=DAY + 100)]) == ([], False)


def test_a_restart_of_one_node_is_found_with_what_did():
    for seen, what, age, time in (
        ([look(age=30, slurmd=20)], "node", 30, "00:01:40 UTC"),
        ([look(slurmd=20)], "slurmd", 20, "00:01:40 UTC"),
        ([look(slurmd=None, seen=False)], "no slurmd", None, "00:01:40 UTC"),
        ([look(), look(200, 150, age=DAY + 100, slurmd=DAY)], "slurmd", DAY, "00:03:20 UTC"),
        ([look(), look(200, 150, "other", age=60, slurmd=60)], "node", 60, "00:03:20 UTC"),
        (
            [look(slurmd=20), look(200, 150, age=DAY + 100, slurmd=120)],
            "slurmd",
            20,
            "00:01:40 UTC",
        ),
    ):
        (found,), many = fleet_with(seen)
        assert (found.kind, found.subject, many) == (Kind.NOTE, "odd", False), seen
        metric = "Health.uptime" if what == "node" else "Health.slurmd_age"
        assert (found.check, found.metric) == ("Health", metric), seen
        assert (found.get("age"), found["time"]) == (age, time), seen
        words = WORDS[what].format(age and round(age))
        assert sentence(found).startswith(f"{words} at {time}; it counts until 3 tests"), seen
        assert found["needed"] == 3, seen
        assert found.since.startswith(f"1970-01-01T{time.partition(' ')[0]}"), seen


def test_what_proves_no_restart_within_the_campaign_accuses_nobody():
    for seen in (
        [look(slurmd=101)],  # it started before the session did
        [look(slurmd=None, seen=None)],  # measured by an older version
        [look(), look(200, 150, age=DAY + 100, slurmd=70, campaign="another")],
        [look(), look(200, 150, "other", age=70, slurmd=70, campaign="another")],
        [
            look(slurmd=20),
            *(look(n, n - 50, age=DAY + n - 100, slurmd=n - 80) for n in (200, 300, 400)),
        ],
    ):
        assert fleet_with(seen) == ([], False), seen


def test_restarts_of_many_are_a_maintenance():
    every = {f"n{n}": [look(age=30, slurmd=20)] for n in range(8)}
    found = restarted(every)
    assert {why.subject for why in found} == set(every)
    assert are_many(found, 8)
    two = {n: held if n in ("n0", "n1") else [look()] for n, held in every.items()}
    assert are_many(restarted(two), 8), "two of eight are a quarter"
    one = {n: held if n == "n0" else [look()] for n, held in every.items()}
    assert [why.subject for why in restarted(one)] == ["n0"]
    assert not are_many(restarted(one), 8)


def test_where_no_node_sees_a_slurmd_nothing_is_found():
    assert restarted({f"n{n}": [look(slurmd=None, seen=False)] for n in range(8)}) == []


def test_three_nodes_accuse_nobody():
    found, many = fleet_with([look(slurmd=20)], count=3)
    assert ([why.subject for why in found], many) == (["odd"], True)


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
    found = ages([*health("n001", 500, 20), *health("n002", 500, None)])
    began = 1795284000.0
    assert found["n001"] == [Age("20261121T180000Z-abc", began, began + 59, "b", 500.0, 20.0, True)]
    assert found["n002"][0].seen is False
    assert found["n002"][0].slurmd is None


def test_nodes_names_the_node_whose_slurmd_came_back_and_warns_of_many(tmp_path, monkeypatch):
    site = load(tmp_path, monkeypatch)
    found = [s for n in names(8) for s in health(n, 9000, 20 if n == "n003" else 9000)]
    report = states.report(judged(site, found))
    assert str(report.of(states.State.FAILED)) == "n003"
    (why,) = report.nodes["n003"].findings
    assert (why.metric, why["age"]) == ("Health.slurmd_age", 20)
    every = [s for n in names(8) for s in health(n, 9000, 20)]
    report = states.report(judged(site, every))
    assert not report.of(states.State.FAILED)
    (many,) = [why for why in report.warnings if "role" in dict(why.details)]
    assert (many["role"], many["count"], many["of"]) == ("compute", 8, 8)


def test_many_are_counted_among_the_nodes_that_were_tested(tmp_path, monkeypatch):
    site = load(tmp_path, monkeypatch)
    three = [s for n in names(3) for s in health(n, 9000, 20)]
    (many,) = states.report(judged(site, three)).warnings
    assert (many.kind, many["count"], many["of"]) == (Kind.NOTE, 3, 3)


def test_a_known_flapping_node_may_be_waived():
    found, _ = fleet_with([look(slurmd=20)])
    report = states.NodeReport("odd", "compute", states.State.FAILED, found, {})
    for metric, back in (("Health.slurmd_age", True), ("Health.uptime", False)):
        waiver = Finding(Kind.WAIVED, waived_by="W")
        excuse = Excuse(waiver, metrics=frozenset({metric}), checks=frozenset({"Health"}))
        assert decide({"odd": report}, {"odd": [excuse]}).rulings["odd"].back is back
