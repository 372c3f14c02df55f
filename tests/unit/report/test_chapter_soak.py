"""The chapter on a soak: its failures, its timeline of bounded size, and when it is there."""

from datetime import datetime, timedelta
from types import SimpleNamespace

import pytest
import soaks
from soaks import begin

from siteproof import sites
from siteproof.report.chapters import soak
from siteproof.report.material import Material

END = datetime.fromisoformat("2026-11-08T13:50:00+00:00")
FAILURES = {
    (5, "n003", "Hpl"): "node_lost",
    (10, "n005", "Hpl"): "invalid",
    (12, "n006", "Stream"): "timeout",
}


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A page on a soak of 40 rounds, made at its end or later, or of a campaign."""
    soaks.write_site(tmp_path / "sites")
    monkeypatch.setenv("SITEPROOF_SITES", str(tmp_path / "sites"))
    soaks.write(tmp_path / "perflogs", failures=FAILURES, without={(20, "Stream")})
    soaks.write_events(tmp_path / "perflogs", [("n003", begin(5) + 60, begin(7))])
    site = sites.load("here")

    def make(later=timedelta(0), campaign=""):
        judged = SimpleNamespace(site=site, as_of=None, sessions=None, campaign=campaign)
        return Material(judged, tmp_path / "perflogs", END + later)

    make.perflogs = tmp_path / "perflogs"
    return make


def test_the_chapter_has_each_class_the_speeds_and_the_nodes_with_failures_first(made):
    section = soak.chapter(made())
    assert section.lead == (
        "Campaign soak: 40 rounds, 38 with all answers; 106.5 node-hours under load: 4 failures; "
        "the nodes were up for 99.38 % of the measured time."
    )
    failures, speeds = section.tables
    counts = {row[0]: row[1] for row in failures.rows}
    assert counts == {
        "node down": "1",
        "wrong answer": "1",
        "job or tool failed": "1",
        "below its bound": "0",
        "no answer": "1",
        "control daemon lost": "0",
        "round without record": "0",
    }
    assert [row[0] for row in speeds.rows] == ["Hpl.gflops", "Stream.triad"]
    (figure,) = section.figures
    rows = [(str(row[0]), *row[1:3], row[-1]) for row in figure.table.rows]
    assert rows[:4] == [
        ("n003", "40", "39", "1 node down"),
        ("n005", "40", "40", "1 wrong answer"),
        ("n006", "40", "40", "1 job or tool failed"),
        ("n001", "40", "40", "none"),
    ]
    for text in ("n003", "no single node", "under load", "down", "wrong answer", "Hpl.gflops"):
        assert f">{text}<" in figure.svg, text
    assert any(one.startswith("here: no answer, Stream, 1 result") for one in section.points)


def test_of_many_nodes_those_with_few_failures_share_a_row(made, monkeypatch):
    monkeypatch.setattr(soak, "MAX_STRIPS", 2)
    (figure,) = soak.chapter(made()).figures
    assert ">n003<" in figure.svg and ">6 other nodes<" in figure.svg and ">n001<" not in figure.svg
    assert len(figure.table.limited.rows) == 2 and len(figure.table.rows) == 8


def test_the_drawing_does_not_grow_with_the_rounds(made):
    few = len(soak.chapter(made()).figures[0].svg)
    soaks.write(made.perflogs, rounds=400, campaign="longer")
    later = timedelta(seconds=soaks.EVERY * 360)
    assert len(soak.chapter(made(later)).figures[0].svg) < 4 * few


def test_without_a_soak_of_late_there_is_no_chapter(made):
    assert soak.chapter(made(later=timedelta(days=31))) is None
    assert soak.chapter(made(later=timedelta(days=31), campaign="soak"))
    soaks.write(made.perflogs, rounds=3, campaign="evening")
    assert soak.chapter(made(campaign="evening")) is None
