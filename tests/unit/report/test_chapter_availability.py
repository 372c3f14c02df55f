"""The chapter on availability: figure and table of the same rows, and what is missing."""

import shutil
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from clone import SITES

from siteproof.record import availability_log
from siteproof.record.availability_log import ProbeResult
from siteproof.report.chapters import availability
from siteproof.report.material import Material
from siteproof.sites import load

NOW = datetime(2026, 11, 15, tzinfo=UTC)
PROBES = """
probes:
  login: {kind: ssh, target: login1, interval: 30 min}
  galaxy: {kind: http, target: 'http://galaxy/', interval: 30 min, gateway: true}
"""


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Two weeks, in which the gateway was down for a day and nothing was measured for another."""
    monkeypatch.setenv("SITEPROOF_SITES", str(tmp_path / "sites"))
    folder = shutil.copytree(SITES / "example", tmp_path / "sites/example")
    path = folder / "system.yaml"
    path.write_text(path.read_text() + PROBES)
    where = tmp_path / "perflogs/example/probes"
    where.mkdir(parents=True)
    for days in range(14):
        if days == 5:
            continue
        first = NOW - timedelta(days=14 - days)
        lines = [
            ProbeResult(
                int(first.timestamp()) + at, name, name, "tcp", "t:1", days != 9 or name == "login",
                1800, 0.1,
            ).line()
            for at in range(0, 86_400, 1800)
            for name in ("login", "galaxy")
        ]  # fmt: skip
        (where / f"{first:%Y-%m-%d}.h{availability_log.SUFFIX}").write_bytes(b"".join(lines))
    return material(tmp_path)


def material(tmp_path):
    judged = SimpleNamespace(site=load("example"), as_of=None, samples=[], sessions=None)
    return Material(judged, tmp_path / "perflogs", NOW)


def test_the_chapter_has_the_four_definitions_a_figure_and_its_values(made):
    section = availability.chapter(made)
    assert (
        section.lead
        == "Available for 100.00 % of the measured time; 312.05 of 336 h were measured."
    )
    (figure,) = section.figures
    rows = {row[0]: row for row in figure.table.rows}
    assert rows["gateway galaxy"][1] == "92.31 %"  # 288.05 of 312.05 h
    assert rows["service login"][-1] == "312.05"
    assert [row[0] for row in section.tables[0].rows] == ["system as a whole", "weighted by nodes"]
    for name in rows:
        assert name in figure.svg
    assert section.points[-1] == ("Not measured: 2026-11-06 00:03 UTC to 2026-11-07 00:00 UTC")


def test_where_nothing_was_measured_no_table_of_shares_is_empty(made):
    later = Material(made.judged, made.perflogs, NOW + timedelta(days=60))
    section = availability.chapter(later)
    assert section.lead == "Unknown; 0 of 336 h were measured." and not section.tables


def test_a_system_without_probes_and_events_has_no_chapter(tmp_path, monkeypatch):
    monkeypatch.setenv("SITEPROOF_SITES", str(tmp_path / "sites"))
    shutil.copytree(SITES / "example", tmp_path / "sites/example")
    assert availability.chapter(material(tmp_path)) is None
