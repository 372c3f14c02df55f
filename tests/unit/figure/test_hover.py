"""What a browser shows over the parts of a figure: the values that are there."""

import re
from datetime import UTC, datetime, timedelta
from html import unescape
from itertools import pairwise

import numpy as np

from siteproof.figure import distribution, grid, heatmap, line_plot, strips, time_plot
from siteproof.figure.distribution import Distribution
from siteproof.figure.grid import Matrix
from siteproof.figure.heatmap import HeatMap
from siteproof.figure.line_plot import Line, LinePlot
from siteproof.figure.pixels import Kind
from siteproof.figure.strips import Strips
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


def test_a_cell_of_a_matrix_shows_its_pair_its_value_and_its_kind():
    kinds, words = {("a", "b"): 0, ("b", "a"): 5}, {("a", "b"): "9.4"}
    shown = hovers(grid.draw("m", "c", Matrix("t", ["a", "b"], ["a", "b"], kinds, words)))
    assert [text for _, _, text in shown] == [
        "a to b: 9.4, not clearly worse",
        "b to a: not measured",
    ]
    shown = hovers(grid.draw("m", "c", Matrix("t", ["a"], ["b"], kinds, words, split=True)))
    assert [text for _, _, text in shown] == [
        "a to b: 9.4, not clearly worse; b to a: not measured"
    ]


def test_a_matrix_of_many_nodes_counts_the_cells_of_each_row():
    names = [f"n{n}" for n in range(30)]
    kinds = {(a, b): int(a == "n3") for a in names for b in names if a != b}
    shown = hovers(grid.draw("m", "c", Matrix("t", names, names, kinds, {})))
    assert len(shown) == len(names)
    assert shown[3][2] == "n3: 29 2 to 5 % worse"


def test_a_row_of_time_shows_its_shares_and_each_outage():
    first, day = BEGIN.timestamp(), 86_400
    fell, last = first + 9 * day, first + 10 * day
    states = {strips.UP: [(first, fell)], strips.DOWN: [(fell, last)]}
    drawn = strips.draw("s", "c", Strips("t", {"n1": states}, BEGIN, BEGIN + timedelta(days=10)))
    whole, outage = hovers(drawn)
    assert whole[2] == "n1: up 90.00 %, down 10.00 %"
    assert outage[2] == "n1: down from 2026-01-10 00:00 to 2026-01-11 00:00 UTC"
    assert whole[0] < outage[0] < outage[1] <= whole[1] + 0.1


def test_a_sweep_shows_the_values_of_all_curves_at_each_place():
    lines = [Line("write", [1, 2, 4], [10.0, 20.0, 30.0]), Line("read", [2], [7.0], [6.0], [8.0])]
    shown = hovers(line_plot.draw("l", "c", LinePlot("t", "tasks", "Ior, MiB/s", lines)))
    assert [text for _, _, text in shown] == [
        "tasks 1, Ior, MiB/s: write 10",
        "tasks 2, Ior, MiB/s: write 20; read 7 (6 to 8)",
        "tasks 4, Ior, MiB/s: write 30",
    ]
    assert all(a[1] <= b[0] + 0.2 for a, b in pairwise(shown))
    words = LinePlot("t", "stripe", "s", [Line("a", [0, 1], [1.0, 2.0])], labels=["one", "all"])
    assert [text for _, _, text in hovers(line_plot.draw("l", "c", words))] == [
        "stripe one, s: a 1",
        "stripe all, s: a 2",
    ]
