"""What a browser shows over the parts of a figure: the values that are there."""

import re
from datetime import UTC, datetime, timedelta
from html import unescape

import numpy as np

from siteproof.figure import distribution, heatmap, time_plot
from siteproof.figure.distribution import Distribution
from siteproof.figure.heatmap import HeatMap
from siteproof.figure.pixels import Kind
from siteproof.figure.time_plot import Course, Trend

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
KINDS = [Kind("typical", "#ffffff"), Kind("failed", "#000000")]


def hovers(drawn):
    """The texts, each with left and right end of its place."""
    found = re.findall(
        r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)" height="[\d.]+"><title>([^<]*)', drawn
    )
    return [(float(x), float(x) + float(wide), unescape(text)) for x, wide, text in found]


def test_a_distribution_names_the_nodes_and_the_values_of_each_bin():
    values = {"n1": 100.0, "n2": 100.0, "n3": 140.0, "<n4>": 180.0, "n5": float("nan")}
    shown = hovers(distribution.draw("d", "c", Distribution("t", "MB/s", values)))
    assert [text for _, _, text in shown] == [
        "2 nodes, n1, n2: 100 MB/s",
        "n3: 140 MB/s",
        "<n4>: 180 MB/s",
    ]
    assert all(right <= left for (_, right, _), (left, _, _) in zip(shown, shown[1:], strict=False))


def test_a_course_shows_days_and_the_range_of_its_values():
    times = [BEGIN + timedelta(days=n) for n in range(120)]
    course = Course("n2", times, [100.0 + n for n in range(119)] + [float("nan")])
    shown = hovers(time_plot.draw("t", "c", Trend("t", "MB/s", [course])))
    assert 2 < len(shown) <= time_plot.STRIPS
    assert shown[0][2].startswith("2026-01-01") and ": n2: 100" in shown[0][2]
    assert shown[-1][2].endswith("218 MB/s")


def test_a_course_of_one_run_shows_it():
    shown = hovers(time_plot.draw("t", "c", Trend("t", "s", [Course("n2", [BEGIN], [5.0])])))
    assert [text for _, _, text in shown] == ["2026-01-01: n2: 5 s"]


def test_a_row_of_a_map_counts_its_cells():
    times = [BEGIN + timedelta(days=n) for n in range(3)]
    data = HeatMap("t", ["n1", "n2"], times, np.array([[0, 0, 1], [0, 0, 0]]), KINDS)
    assert [text for _, _, text in hovers(heatmap.draw("h", "c", data))] == [
        "n1: 2 typical, 1 failed",
        "n2: 3 typical",
    ]
