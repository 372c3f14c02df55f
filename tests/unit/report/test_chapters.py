"""Chapters of a fleet's figures: who is where, in every run, and over time."""

import re
import xml.etree.ElementTree as ElementTree
from contextlib import closing
from dataclasses import replace
from decimal import Decimal

import fleets
import pytest
import years
from rows import rows

from siteproof.record import samples
from siteproof.report import material, past
from siteproof.report.chapters import distribution, heatmap, links, matrix, sweeps, trend
from siteproof.report.summary import begin

RUNS, NODES = 40, 12
CRITERIA = """\
C-TRIAD: {description: Memory, metric: Stream.triad, at_least: 160 GB/s, rounding: nearest 1 GB/s,
  source: s, scope: every node, max_age: none}
"""
BASELINES = """\
system: here
B-TRIAD: {metric: Stream.triad, at_least: 175 GB/s, tolerance: 2 %, source: s, taken: 2026-01-01}
"""
RACKS = "groups:\n  r1: 'n[001-006]'\n  r2: 'n[007-012]'\n"


def furnish(folder, patch, criteria=CRITERIA, more=RACKS, count=NODES):
    fleets.write_site(folder / "sites", count, more, criteria)
    (folder / "sites/here/baselines.yaml").write_text(BASELINES)
    perflogs = folder / "data/perflogs"
    perflogs.mkdir(parents=True)
    for name, path in (("SITES", "sites"), ("DATA", "data"), ("CACHE", "cache")):
        patch.setenv(f"SITEPROOF_{name}", str(folder / path))
    return perflogs


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """n002 breaks the contract from run 25 on, n003 has timeouts, the fleet's HPL steps at 20."""
    with pytest.MonkeyPatch.context() as patch:
        perflogs = furnish(tmp_path_factory.mktemp("chapters"), patch)
        years.write(
            perflogs,
            nodes=NODES,
            runs=RUNS,
            metrics=("Stream.triad", "Hpl.gflops"),
            steps=[
                years.Step("Stream.triad", 25, -0.2, ("n002",)),
                years.Step("Hpl.gflops", 20, -0.06),
            ],
            gaps=[
                years.Gap(30, RUNS, ("n003",), "Stream.triad", "timeout"),
                years.Gap(33, 34, ("n004",), "", "node_lost"),
                years.Gap(10, 12),
            ],
            changes=[
                years.Change(20, "kernel", "6.6.1-1"),
                years.Change(0, "n", "180000", "conditions", "Hpl"),
                years.Change(20, "n", "179808", "conditions", "Hpl"),
            ],
        )  # a block less
        held = material.gather("here")
        yield held
        held.close()


@pytest.fixture(scope="module")
def told(made):
    """The chapters, made once."""
    return {c.__name__.rpartition(".")[2]: c.chapter(made) for c in (distribution, heatmap, trend)}


def texts(figure):
    root = ElementTree.fromstring(figure.svg)
    return [e.text for e in root.iter("{http://www.w3.org/2000/svg}text")]


def named(section, name):
    return next(f for f in section.figures if f.name == name)


def row(figure, first):
    return next(r for r in figure.table.rows if r[0].startswith(first))


def test_the_figure_with_broken_bounds_comes_first_and_says_how_many(told):
    section = told["distribution"]
    first = section.figures[0]
    assert first.name == "distribution-stream-triad"
    assert list(first.metrics) == ["Stream.triad"]
    assert re.match(
        r"11 nodes between 14\d.* GB/s and 18\d.* GB/s, median 18\d.*; 1 beyond the "
        r"bound, the worst n002; 1 node of compute without a value\.",
        first.caption,
    )
    assert "in 1 of them some node is beyond its bound" in section.lead


def test_the_table_of_a_distribution_tells_what_is_drawn(made, told):
    first = told["distribution"].figures[0]
    words = texts(first)
    assert "C-TRIAD ≥ 160 GB/s (nearest 1 GB/s)" in words
    assert "baseline B-TRIAD ≥ 171.5 GB/s" in words
    median = float(row(first, "median of 11 nodes")[1])
    assert f"median {median:.4g} GB/s" in words
    assert row(first, "bound C-TRIAD")[1] == "159.5"  # the worst that rounds to 160
    bad = row(first, "n002")
    assert f"n002 {bad[2]}" in words and bad[3] == "FAILED"
    newest = [s for s in made.judged.samples if s.metric == "Stream.triad" and s.node == "n002"]
    assert float(bad[1]) == pytest.approx(float(newest[-1].number) / 1000, rel=5e-4)
    assert float(bad[1]) / median - 1 == pytest.approx(
        float(bad[2].removesuffix(" %")) / 100, abs=0.001
    )


def test_a_metric_without_a_bound_is_drawn_with_its_median(told):
    hpl = named(told["distribution"], "distribution-hpl-gflops")
    assert "bound" not in hpl.caption
    assert any(t.startswith("median 2") for t in texts(hpl))


def test_every_node_in_every_run_is_one_map_and_the_worst_stand_on_top(told):
    section = told["heatmap"]
    whole = named(section, "heatmap-nodes")
    assert re.match(r"12 nodes on 37 days with runs from 2025-11-21 to 2025-12-30", whole.caption)
    assert "1 beyond a bound, 1 failed" in whole.caption
    assert [r[0] for r in whole.table.rows[:3]] == ["n002", "n003", "n004"]
    assert section.lead.endswith("worse, failed or without an answer: n002, n003, n004.")
    assert len(whole.svg) < 60_000


@pytest.mark.deep
def test_runs_that_have_no_room_in_the_map_are_named(made, monkeypatch):
    assert not [p for p in heatmap.chapter(made).points if "not drawn" in p]
    monkeypatch.setattr(heatmap, "MAX_COLUMNS", 10)
    section = heatmap.chapter(made)
    assert "12 nodes on 10 days with runs from 2025-12-21" in section.figures[0].caption
    assert section.points[-1] == "Runs before 2025-12-21 are not drawn."


def test_the_table_of_the_map_counts_its_cells(told):
    triad = named(told["heatmap"], "heatmap-stream-triad")
    bad, lost = row(triad, "n002"), row(triad, "n003")
    names = triad.table.columns
    assert dict(zip(names, bad, strict=True)) | {"lowest share": ""} == {
        "node": "n002",
        "state": "FAILED",
        "days with runs": "37",
        "clearly worse": "15",
        "beyond a bound": "15",
        "failed": "0",
        "no answer": "0",
        "lowest share": "",
        "worse since": "2025-12-16",
    }
    assert float(bad[7].removesuffix(" %")) < -18
    assert (lost[5], lost[8]) == ("10", "2025-12-21")
    assert row(triad, "n004")[6] == "2"


def test_no_cell_is_called_typical_whose_share_may_be_low(told):
    whole = named(told["heatmap"], "heatmap-nodes")
    assert "not clearly worse" in texts(whole) and "typical or better" not in texts(whole)
    assert "Clearly worse is a value more than" in told["heatmap"].points[0]


def test_a_step_of_the_whole_fleet_accuses_no_node_in_the_map(made):
    found = made.once(past.read)
    kinds, _ = heatmap._judged(made, found)
    hpl = found.metric == found.metrics.index("Hpl.gflops")
    assert (kinds[hpl] > 0).mean() < 0.02


def test_the_fleet_over_time_shows_its_step_and_what_changed(told):
    section = told["trend"]
    hpl = named(section, "trend-hpl-gflops-compute")
    assert "step of -6" in hpl.caption
    labels = texts(hpl)
    assert any(t.startswith("1: -6") for t in labels) and any("kernel" in t for t in labels)
    assert [r[2] for r in hpl.table.rows] == ["17", "20"]
    before, after = (float(r[3]) for r in hpl.table.rows)
    assert after / before - 1 == pytest.approx(-0.06, abs=0.005)
    triad = named(section, "trend-stream-triad-compute")
    assert "no step of the whole fleet" in triad.caption
    assert [r[2] for r in triad.table.rows] == ["10", "27"]
    assert "runs of a month" in triad.table.note


def test_the_most_severe_change_of_a_node_stands_beside_the_fleet(told):
    section = told["trend"]
    change = next(f for f in section.figures if f.title == "Stream.triad of n002")
    assert " Stream.triad of n002 (r1): " in change.caption
    assert ", -20.0 %, since 2025-12-16 02:15; worse; " in change.caption
    assert {"n002", "median of 11 nodes"} <= set(texts(change))
    row = dict(zip(change.table.columns, change.table.rows[0], strict=True))
    assert (row["nodes"], row["runs before"], row["runs after"]) == ("n002", "22", "15")
    assert float(row["after"]) / float(row["before"]) - 1 == pytest.approx(
        float(row["change"].removesuffix(" %")) / 100, abs=0.001
    )


def test_figures_have_names_of_their_own_and_each_says_something(told):
    found = [f for section in told.values() for f in section.figures]
    assert len({f.name for f in found}) == len(found) >= 7
    for figure in found:
        assert figure.caption.endswith(".") and figure.table.rows and figure.svg.startswith("<svg")
        assert not re.search(r"\d\.\d{7}", figure.caption + str(figure.table.rows))


@pytest.mark.parametrize("chapter", [sweeps, links, matrix])
def test_a_chapter_without_anything_to_tell_is_left_out(made, chapter):
    assert chapter.chapter(made) is None


def test_the_median_of_trials_is_one_figure(tmp_path, monkeypatch):
    perflogs = furnish(tmp_path, monkeypatch, more="", count=2)
    (first, second) = fleets.run_of({"n001": 1, "n002": 4}, 1, unit="B/s")
    trials = [replace(first, value=Decimal(n), trial=trial) for trial, n in enumerate((1, 9, 2))]
    samples.write(perflogs, first.header, [*trials, second])
    with closing(material.gather("here")) as held:
        found = past.read(held)
    assert dict(zip(found.place.tolist(), found.value.tolist(), strict=True)) == {0: 2.0, 1: 4.0}


NEWER = {  # the status of n002's newest run, its mode: whether its older value stands
    ("invalid", "maintenance"): False,
    ("timeout", "maintenance"): False,
    ("node_lost", "maintenance"): False,
    ("interrupted", "maintenance"): True,
    ("tool_missing", "maintenance"): False,  # others of its job have the program
    ("invalid", "quick"): True,
}


@rows("status, mode", NEWER)
@pytest.mark.deep
def test_a_value_that_a_newer_failure_took_back_is_not_drawn_as_good(
    status, mode, tmp_path, monkeypatch
):
    perflogs = furnish(tmp_path, monkeypatch, more="", count=4)
    values = {"n001": 170e3, "n002": 171e3, "n003": 172e3, "n004": 173e3}
    first = fleets.run_of(values, 1, campaign="winter")
    rest = {node: value for node, value in values.items() if node != "n002"}
    second = fleets.run_of(rest, 2, campaign="winter")
    samples.write(perflogs, first[0].header, first)
    if mode == "maintenance":
        lost = replace(fleets.broken("n002", status, 2, "mains"), header=second[0].header)
        samples.write(perflogs, second[0].header, [*second, lost])
    else:
        lost = fleets.broken("n002", status, 2, "mains", mode=mode, campaign="winter", job="2")
        samples.write(perflogs, lost.header, [lost])
    with closing(material.gather("here", name="winter")) as held:
        figure = distribution.chapter(held).figures[0]
    stands = NEWER[status, mode]
    assert ("4 nodes between" in figure.caption) is stands
    assert ("; n002: " in figure.caption and "mains" in figure.caption) is not stands
    assert (row(figure, "n002")[1] == "-") is not stands


def test_a_fleet_whose_newest_run_failed_as_a_whole_keeps_its_course(tmp_path, monkeypatch):
    perflogs = furnish(tmp_path, monkeypatch, more="", count=2)
    for run in range(4):
        found = fleets.run_of({"n001": 170e3, "n002": 171e3}, run, campaign="winter")
        samples.write(perflogs, found[0].header, found)
    head = fleets.header(4, campaign="winter")
    lost = [replace(fleets.broken(n, "invalid", 4), header=head) for n in ("n001", "n002")]
    samples.write(perflogs, head, lost)
    with closing(material.gather("here", name="winter")) as held:
        assert distribution.chapter(held) is None
        figure = trend.chapter(held).figures[0]
    assert "4 runs of 2 nodes" in figure.caption


def test_no_history_is_not_told_as_no_change(tmp_path, monkeypatch):
    perflogs = furnish(tmp_path, monkeypatch, more="", count=3)
    for run in range(5):
        found = fleets.run_of({"n001": 170e3, "n002": 171e3, "n003": 172e3}, run)
        samples.write(perflogs, found[0].header, found)
    with closing(material.gather("here")) as held:
        section = trend.chapter(held)
        card = next(c for c in begin.build(held).cards if "history" in c.label)
    assert section is None or "too little history" in section.lead
    assert (card.number, card.label) == (0, "series with a history")
    assert card.note == "of 3; too little history, a step needs 10 runs of a node"


@pytest.mark.deep
def test_hostile_names_stay_texts(tmp_path, monkeypatch):
    evil = "<b>&amp;</b>"
    perflogs = furnish(tmp_path, monkeypatch, more="", count=2)
    for run in range(3):
        found = [
            replace(s, dims={"of": evil})
            for s in fleets.run_of({"n001": 100 + run, "n002": 99}, run)
        ]
        samples.write(perflogs, found[0].header, found)
    held = material.gather("here")
    try:
        figure = distribution.chapter(held).figures[0]
        title = ElementTree.fromstring(figure.svg).find("{http://www.w3.org/2000/svg}title")
        assert evil in figure.title and evil in title.text
        assert re.fullmatch("[a-z0-9-]+", figure.name)
        assert heatmap.chapter(held).figures
    finally:
        held.close()


def test_a_single_run_and_a_single_node_have_no_such_chapter(tmp_path, monkeypatch):
    perflogs = furnish(tmp_path, monkeypatch, more="", count=1)
    found = fleets.run_of({"n001": 100}, 1)
    samples.write(perflogs, found[0].header, found)
    held = material.gather("here")
    try:
        assert [c.chapter(held) for c in (distribution, heatmap, trend)] == [None, None, None]
    finally:
        held.close()
