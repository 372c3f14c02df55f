"""Figures of values that are not alike: two environments, and bounds that judge no single node."""

import re
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from itertools import compress

import fleets
import numpy as np
import pytest
import years
from rows import rows

from siteproof.record import samples
from siteproof.record.series import Series
from siteproof.report import material, past
from siteproof.report.chapters import changes, distribution, heatmap, trend

RUNS = 30
STEP = 15


@contextmanager
def world(folder, patch, criteria="{}\n", baselines="{}\n"):
    """Where samples are kept, and what a report is made from once they are."""
    fleets.write_site(folder / "sites", 8, criteria=criteria)
    (folder / "sites/here/baselines.yaml").write_text(baselines)
    perflogs = folder / "data/perflogs"
    perflogs.mkdir(parents=True)
    for name, path in (("SITES", "sites"), ("DATA", "data"), ("CACHE", "cache")):
        patch.setenv(f"SITEPROOF_{name}", str(folder / path))
    made = cache(lambda: material.gather("here"))
    yield perflogs, made
    made().close()


def keep(perflogs, found):
    samples.write(perflogs, found[0].header, found)


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Two environments on the same nodes; the fleet fell in one of them, n002 in the other."""
    folder = tmp_path_factory.mktemp("two")
    criteria = (
        "C-1: {description: d, metric: Stream.triad, at_least: 100 GB/s, source: s,\n"
        "  scope: every node}\n"
    )
    with pytest.MonkeyPatch.context() as patch, world(folder, patch, criteria) as (perflogs, made):
        own = {"nodes": 8, "runs": RUNS, "metrics": ("Stream.triad",)}
        years.write(perflogs, **own, steps=[years.Step("Stream.triad", STEP, -0.1, ("n002",))])
        years.write(
            perflogs,
            **own,
            environment="gnu",
            partition="other",
            seed=2,
            steps=[years.Step("Stream.triad", STEP, -0.3)],
        )
        yield distribution.chapter(made()), trend.chapter(made()), made()


def test_two_environments_are_told_apart_by_their_names(two):
    for section in two[:2]:
        titles = [f.title for f in section.figures if "of n0" not in f.title]
        assert sorted(titles) == ["Stream.triad of compute, gnu", "Stream.triad of compute, system"]
        assert len({f.name for f in section.figures}) == len(section.figures)


def test_each_environment_has_its_own_past(two):
    for figure in two[1].figures[:2]:
        fell = "gnu" in figure.title
        assert ("step of -30" in figure.caption) is fell
        assert ("no step of the whole fleet" in figure.caption) is not fell
        newest = next(f for f in two[0].figures if f.title == figure.title)
        middle = float(newest.table.rows[0][1])
        assert f"and {middle:.6g} GB/s in the last run" in figure.caption


def test_a_node_stands_beside_the_fleet_of_its_own_environment(two):
    change = next(f for f in two[1].figures if f.title == "Stream.triad of n002")
    fleet = next(
        m
        for m in (
            trend._middle(two[2].once(trend.past.read), one)
            for one in two[2].once(distribution.fleets)
        )
        if m.one.key.environment == "system"
    )
    assert re.search(r"Stream\.triad of n002 .*, -(9|10)\.\d %, since", change.caption)
    assert trend.covers(two[2].survey.alerts[0], fleet.one)
    assert "gnu" not in change.svg


MIDDLE = """\
C-MEDIAN: {description: d, metric: Stream.triad, at_least: 100 MB/s, source: s, scope: median,
  max_age: none}
"""


@pytest.mark.deep
def test_the_bound_of_a_median_accuses_no_node(tmp_path, monkeypatch):
    usual = (
        "system: here\nB-MEDIAN: {metric: Stream.triad, at_least: 100 MB/s, source: s, "
        "scope: median, taken: 2026-01-01}\n"
    )
    with world(tmp_path, monkeypatch, MIDDLE, usual) as (perflogs, made):
        for run in range(3):
            keep(perflogs, fleets.run_of({n: 104 - i for i, n in enumerate(fleets.names(8))}, run))
        section = distribution.chapter(made())
        assert made().judged.verdicts[0].verdict == "PASS"  # 100.5 is the median of 104 to 97
        assert section.lead.endswith("none has a bound.")
        assert "beyond" not in section.figures[0].caption
        assert "C-MEDIAN ≥ 100 MB/s, median" in section.figures[0].svg
        told = heatmap.chapter(made())
        assert "at least once: none." in told.figures[0].caption
        assert "without an answer: none." in told.lead


@rows(
    "rule, beyond",
    [
        (
            "metric: Stream.triad, equals: 100 MB/s, rounding: nearest 10 MB/s",
            {"n004", "n005", "n006"},
        ),
        ("metric: Hpl.time, at_most: 104.99 s", {"n005", "n006"}),
        ("metric: Hpl.time, at_most: 100 s, rounding: nearest 10 s", {"n005", "n006"}),
        ("metric: Stream.triad, at_least: 0.1 GB/s", {"n001", "n004"}),
    ],
)
@pytest.mark.deep
def test_a_bound_has_the_sides_that_the_contract_gives_it(tmp_path, monkeypatch, rule, beyond):
    criteria = f"C-1: {{description: d, {rule}, source: s, max_age: none}}\n"
    metric, unit = ("Hpl.time", "s") if "Hpl" in rule else ("Stream.triad", "MB/s")
    values = {"n001": 99.99, "n002": 100.01, "n003": 100, "n004": 94.99, "n005": 105, "n006": 106}
    with world(tmp_path, monkeypatch, criteria) as (perflogs, made):
        for run in range(2):
            keep(perflogs, fleets.run_of(values, run, metric, unit))
        verdict = made().judged.verdicts[0]
        assert {
            n.node for n in verdict.nodes if n.value is not None and n.verdict == "FAIL"
        } == beyond
        found = made().site, Series(metric, (), "system", "compute", ()), made().site.criteria
        mark = [m.beyond(list(values.values())) for m in past.marks(*found, unit)]
        assert set(compress(values, np.any(mark, axis=0))) == beyond
        if metric == "Hpl.time":
            return  # no headline figure, so no chapter has it
        assert set(distribution.fleets(made())[0].broken()) == beyond
        worst = heatmap.chapter(made()).figures[0].table
        column = worst.columns.index("beyond a bound")
        assert {row[0] for row in worst.rows if row[column] != "0"} == beyond


def test_values_under_other_conditions_are_told_apart(tmp_path, monkeypatch):
    with world(tmp_path, monkeypatch, MIDDLE) as (perflogs, made):
        for run in range(2):
            found = fleets.run_of(dict.fromkeys(fleets.names(4), 100 + run), run)
            keep(
                perflogs,
                [
                    replace(s, own_conditions={"array_size": size}, trial=trial)
                    for trial, size in enumerate(("8", "16"))
                    for s in found
                ],
            )
        titles = distribution.titles(distribution.fleets(made()))
        assert sorted(titles) == [f"Stream.triad of compute, array_size {n}" for n in (16, 8)]


@rows("since, shown", [("2025-12-25T00:00", 1), ("2026-01-20T00:00", 0)])
@pytest.mark.deep
def test_a_page_lists_the_episodes_of_its_period(tmp_path, monkeypatch, since, shown):
    with world(tmp_path, monkeypatch, MIDDLE) as (perflogs, _):
        half = years.Step("Stream.triad", 30, -0.5, ("n004",), last=37)
        years.write(perflogs, nodes=8, runs=80, metrics=("Stream.triad",), steps=[half])
        held = material.gather("here", since=since)
        tables = changes.chapter(held).sections[0].tables
        held.close()
    every = [(t.title, dict(zip(t.columns, row, strict=True))) for t in tables for row in t.rows]
    found = [row for title, row in every if title.startswith("Episodes from")]
    assert len(found) == shown
    assert len({row["id"] for _, row in every}) == len(every), "no change is in two tables"
    for row in found:
        assert (row["nodes"], row["series"], row["runs after"]) == ("n004", "Stream.triad", "8")
        assert -52 < float(row["change"].removesuffix(" %")) < -48
        assert row["first after"].startswith("2025-12-21")
        assert "recovered 2025-12-29" in row["remark"]


@pytest.mark.deep
def test_a_drift_is_told_by_its_ends_and_has_no_moment(tmp_path, monkeypatch):
    with world(tmp_path, monkeypatch, MIDDLE) as (perflogs, made):
        years.write(
            perflogs,
            nodes=8,
            runs=200,
            metrics=("Stream.triad",),
            drifts=[years.Drift("Stream.triad", -0.2, ("n004",))],
        )
        held = made()
        drawn = next(f for f in trend.chapter(held).figures if f.title.endswith("of n004"))
        told = changes.chapter(held)
    assert "drift" in drawn.caption
    assert "confidence" not in drawn.caption and "days, most likely" in drawn.caption
    row = dict(zip(drawn.table.columns, drawn.table.rows[0], strict=True))
    assert (row["nodes"], row["runs after"]) == ("n004", "200")
    by = float(row["change"].removesuffix(" %"))
    assert -11.5 < by < -8.5  # 10 % in 200 days
    assert float(row["after"]) / float(row["before"]) - 1 == pytest.approx(by / 100, abs=0.001)
    assert " on 2026-06-08" not in drawn.svg
    assert row["last before"].startswith("2025-11-21 02:15")  # its first run, not its last
    assert "1 open change for the worse" in told.lead
    steps = told.sections[0].filled[0]
    every = [dict(zip(steps.columns, row, strict=True)) for row in steps.rows]
    assert ("n004", "200") in {(row["nodes"], row["runs after"]) for row in every}
