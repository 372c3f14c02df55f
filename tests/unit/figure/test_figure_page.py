"""Figures for a page: texts, ids, sizes, edges; what they show without colour."""

import base64
import io
import re
import xml.etree.ElementTree as ElementTree
from datetime import UTC, date, datetime, timedelta
from functools import cache
from math import nan

import numpy as np
import pytest
from PIL import Image
from rows import rows

from siteproof.figure import (
    dates,
    distribution,
    grid,
    heatmap,
    labels,
    line_plot,
    ranges,
    shares,
    time_plot,
)
from siteproof.figure.dates import Timeline
from siteproof.figure.distribution import Distribution
from siteproof.figure.grid import Matrix
from siteproof.figure.heatmap import HeatMap
from siteproof.figure.labels import date_ticks, lanes, nice_ticks, numbers
from siteproof.figure.line_plot import Line, LinePlot
from siteproof.figure.marks import Label, Mark, in_lanes
from siteproof.figure.ranges import Ranges, Row
from siteproof.figure.shares import BROKEN, FAILED, KINDS, MISSING, SHORT, TYPICAL, kinds_of
from siteproof.figure.time_plot import Course, Region, Trend

EVIL = '<script>alert("1")</script> & id="x" $\\frac$ -->'
NODES = [f"n{n:03}" for n in range(1, 9)]
DAYS = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=n) for n in range(30)]
BOUND = Mark("bound", 90.0, "C-1 ≥ 90 MB/s", "at_least")


def histogram(name="d", said="says", **keys):
    values = {node: 100.0 + n for n, node in enumerate(NODES)}
    return distribution.draw(
        name,
        said,
        Distribution("D", "MB/s", keys.pop("values", values), **{"marks": [BOUND], **keys}),
    )


def chart(name="h", nodes=NODES, runs=6, cells=None, **keys):
    cells = np.zeros((len(nodes), runs), dtype=np.uint8) if cells is None else cells
    times = [DAYS[0] + timedelta(days=n) for n in range(runs)]
    return heatmap.draw(name, "says", HeatMap("H", nodes, times, cells, KINDS, **keys))


def course(values=None, name="t", **keys):
    values = list(range(100, 130)) if values is None else values
    median = Course("median", DAYS, values)
    return time_plot.draw(name, "says", Trend("T", "MB/s", [median], **keys))


def table_of_pairs(name="m", kinds=None, **keys):
    kinds = kinds or {(a, b): TYPICAL for a in NODES for b in NODES if a != b}
    return grid.draw(name, "says", Matrix("M", NODES, NODES, kinds, {}, **keys))


def way(name="r", shares=(0.9, 1.0, 1.1)):
    rows = [Row("bare", list(shares), "9.6 GB/s"), Row("sriov", [0.68], "6.5 GB/s")]
    return ranges.draw(name, "says", Ranges("R", [("rate", rows)]))


def steps(name="s"):
    days = {"order": (date(2015, 7, 29),) * 2, "boot": (date(2015, 11, 3), date(2015, 11, 9))}
    return dates.draw(
        name, "says", Timeline("S", ["order", "boot", "pass"], days, frozenset({"boot"}))
    )


def curve(name="c", **keys):
    return line_plot.draw(
        name,
        "says",
        LinePlot(
            "C", "tasks", "Ior.write, MiB/s", [Line("one", [1, 2, 4], [1.0, 2.0, 2.1])], **keys
        ),
    )


ALL = (histogram, chart, course, table_of_pairs, way, steps, curve)


def texts(svg):
    root = ElementTree.fromstring(svg)
    return [e.text for e in root.iter("{http://www.w3.org/2000/svg}text")]


def pixels(svg):
    """The PNGs in a figure, each as an array of grey."""
    return [
        np.asarray(Image.open(io.BytesIO(base64.b64decode(text))).convert("L"))
        for text in re.findall(r"base64,([^\"]+)", svg)
    ]


@cache
def once(draw):
    return draw()


@pytest.mark.deep
@rows("draw", ALL)
def test_the_same_data_give_the_same_bytes(draw):
    assert draw() == once(draw)


@rows("draw", ALL)
def test_a_figure_is_one_element_that_takes_the_width_it_gets(draw):
    svg = once(draw)
    root = ElementTree.fromstring(svg)
    assert svg.startswith("<svg ") and svg.rstrip().endswith("</svg>")
    assert root.get("width") == "100%" and root.get("height") is None
    assert root.get("viewBox").startswith("0 0 400 ")
    assert "<style" not in svg and "<metadata" not in svg and "matplotlib" not in svg
    assert root.find("{http://www.w3.org/2000/svg}desc").text == "says"
    assert len(svg) < 30_000


def test_texts_have_the_font_of_the_page_and_their_sizes():
    svg = curve()
    assert "font-family: " not in svg and svg.count("font-family=") == 1
    assert svg.count("<text") == svg.count('<text style="font-size: ')


def test_ids_on_a_page_are_unique_and_each_is_found():
    page = "".join(
        draw(name=f"{draw.__name__}-{n}")
        for draw in ALL
        for n in (1, 2)
        if n == 1 or draw in (histogram, chart, table_of_pairs, course)
    )
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids)) > 10
    asked = set(re.findall(r'(?:href="#|url\(#)([^")]+)', page))
    assert asked <= set(ids)


@rows(
    "svg",
    [
        lambda: histogram(said=EVIL, values={EVIL: 1.0, "n": 2.0}, named={EVIL: EVIL}),
        lambda: chart(nodes=[EVIL, "n"], order=EVIL),
        lambda: time_plot.draw(
            "t", EVIL, Trend(EVIL, EVIL, [Course(EVIL, DAYS, range(30))], [(DAYS[3], EVIL)])
        ),
        lambda: grid.draw(
            "m", EVIL, Matrix(EVIL, [EVIL], ["n"], {(EVIL, "n"): 0}, {(EVIL, "n"): EVIL})
        ),
        lambda: ranges.draw("r", EVIL, Ranges(EVIL, [(EVIL, [Row(EVIL, [1.0], EVIL)])])),
        lambda: line_plot.draw("c", EVIL, LinePlot(EVIL, EVIL, EVIL, [Line(EVIL, [1, 2], [1, 2])])),
    ],
)
def test_a_hostile_name_stays_a_text(svg):
    made = svg()
    root = ElementTree.fromstring(made)
    assert {e.tag.rpartition("}")[2] for e in root.iter()} <= {
        "svg",
        "title",
        "desc",
        "rect",
        "g",
        "path",
        "use",
        "text",
        "defs",
        "clipPath",
        "image",
        "pattern",
    }
    assert "<script" not in made and "-->" not in made


@rows(
    "values",
    [
        {},
        {"n": 1.0},
        {"n": nan},
        {"n": 0.0, "m": 0.0},
        {"n": 5.0, "m": 5.0},
        {"n": -1.0, "m": 1e12},
        {"n": 1e-9, "m": 2e-9},
        {"n": 1.0, "m": nan},
    ],
)
def test_a_distribution_of_little_is_drawn(values):
    told = texts(histogram(values=values, marks=[Mark("bound", 1e6, "C ≥ 1000000")]))
    assert "nodes" in told
    assert "no value" in told or any(v == v for v in values.values())


def test_a_bound_far_off_is_told_and_does_not_press_the_nodes_together():
    values = {node: 100 + n / 10 for n, node in enumerate(NODES)}
    told = texts(histogram(values=values, marks=[Mark("bound", 1.0, "C ≥ 1 MB/s")]))
    assert "◂ C ≥ 1 MB/s" in told
    assert "100.2" in told


def test_few_nodes_are_dots_and_many_are_bars():
    few, many = ({f"n{n}": 100 + n % 5 for n in range(count)} for count in (8, 800))
    assert histogram(values=few, marks=[]).count("<use ") > 8
    svg = histogram(values=many, marks=[])
    assert len(svg) < 12_000


def test_a_label_without_room_is_broken_where_it_may_be_and_not_cut():
    long = "-5.0 % on 2026-07-29\nsoftware_lock: aaaa1111 -> bbbb2222"
    found = in_lanes([Label(0.5, long)], (0.0, 1.0), (52.0, 380.0), 5)
    assert [label.text for label in found] == long.splitlines()
    assert [(label.lane, bool(label.width)) for label in found] == [(0, True), (1, False)]
    (one,) = in_lanes([Label(0.5, "-5 %\nkernel")], (0.0, 1.0), (52.0, 380.0), 5)
    assert one.text == "-5 %, kernel"


def test_labels_of_one_place_stand_in_lanes_of_their_own():
    values = dict.fromkeys(NODES, 100.0) | {"n009": 200.0}
    svg = histogram(named={node: f"{node} -1.0 %" for node in NODES[:5]}, values=values, marks=[])
    ys = re.findall(r"translate\([\d.]+ ([\d.]+)\)[^>]*>n00\d -1", svg) or re.findall(
        r'y="([\d.]+)"[^>]*>n00\d -1', svg
    )
    assert len(ys) == len(set(ys)) == 5


def test_a_year_of_a_large_fleet_is_small():
    rng = np.random.default_rng(1)
    cells = np.zeros((320, 365), dtype=np.uint8)
    cells[rng.random(cells.shape) < 0.02] = 1
    cells[rng.random(cells.shape) < 0.01] = MISSING
    cells[7, 100:], cells[9, 200:], cells[100:140, 50:60] = BROKEN, FAILED, SHORT
    names = [f"n{n:03}" for n in range(320)]
    svg = chart(nodes=names, runs=365, cells=cells, worst=[7, 9], groups=[(0, "r1"), (160, "r2")])
    assert len(svg) < 60_000
    told = texts(svg)
    assert {"n007", "n009", "r1", "r2", "the worst 2"} <= set(told)
    assert "n008" not in told


def test_kinds_of_cells_are_told_by_grey_alone_and_what_is_no_figure_by_a_pattern():
    cells = np.arange(8, dtype=np.uint8).reshape(8, 1).repeat(4, axis=1)
    rows = pixels(chart(runs=4, cells=cells))[0]
    high = rows.shape[0] // 8
    blocks = [rows[n * high : (n + 1) * high] for n in range(8)]
    figures = [int(block.mean()) for block in blocks[: BROKEN + 1]]
    assert all(a - b >= 24 for a, b in zip(figures, figures[1:], strict=False))
    assert all(block.min() == block.max() for block in blocks[: BROKEN + 1])
    assert all(block.min() < block.max() for block in blocks[MISSING:])
    assert not np.array_equal(blocks[FAILED], blocks[SHORT])


def test_one_of_hundreds_of_nodes_is_a_row_of_pixels_of_its_own():
    cells = np.zeros((320, 365), dtype=np.uint8)
    cells[200, 180] = BROKEN
    names = [f"n{n}" for n in range(320)]
    whole = pixels(chart(nodes=names, runs=365, cells=cells, worst=[200]))[1]
    assert 1 <= (whole < 50).sum() <= 20


def test_cells_must_be_of_the_nodes_and_runs():
    for cells in (np.zeros((8, 5), dtype=np.uint8), np.zeros((0, 0), dtype=np.uint8)):
        with pytest.raises(ValueError, match="cells"):
            chart(cells=cells)


def test_shares_become_kinds_by_what_a_repair_is_worth():
    told = kinds_of(np.array([1.2, 1.0, 0.981, 0.97, 0.94, 0.5, nan]))
    assert told.tolist() == [TYPICAL, TYPICAL, TYPICAL, 1, 2, 3, MISSING]


@rows("values", [[nan] * 30, [0.0] * 30, [5.0] * 29 + [nan], [1e-12] * 30, [-3.0] + [1e15] * 29])
def test_a_trend_of_anything_is_drawn(values):
    told = texts(course(values, marks=[BOUND], region=Region(DAYS[3], DAYS[20], 1, 2)))
    assert "median" in told


def test_a_trend_of_one_run_has_ticks_that_differ():
    svg = time_plot.draw("t", "s", Trend("T", "us", [Course("n", DAYS[:1], [1.2])]))
    ticks = [t for t in texts(svg) if re.fullmatch(r"[\d.]+", t)]
    assert len(ticks) == len(set(ticks)) >= 2


def test_a_trend_without_a_run_is_refused():
    with pytest.raises(ValueError, match="run"):
        time_plot.draw("t", "s", Trend("T", "us", []))


def test_a_pause_breaks_the_line_and_is_told():
    held = DAYS[:10] + [at + timedelta(days=60) for at in DAYS[10:]]
    data = Trend("T", "us", [Course("n", held, range(30), range(30), range(30))])
    svg = time_plot.draw("t", "s", data)
    assert "no run: 61 d" in texts(svg)
    assert any(d.count("M") > 1 for d in re.findall(r'd="([^"]+)"', svg))


def test_steps_and_bounds_are_told_by_line_and_word():
    svg = course(
        steps=[(DAYS[10], "-8.0 % on 2026-01-11"), (DAYS[11], "kernel")],
        marks=[Mark("bound", 95, "C ≥ 95"), Mark("baseline", 1e6, "usual 1000000")],
    )
    told = texts(svg)
    assert {"-8.0 % on 2026-01-11", "kernel", "C ≥ 95", "usual 1000000, above the figure"} <= set(
        told
    )
    assert "stroke-dasharray" in svg


@rows("day", [0, 12, 19, 29])
def test_a_long_word_at_a_step_ends_within_the_picture(day):
    word = "-6.0 % on 2026-07-29, software_lock: aaaa1111bbbb2222 -> cccc3333dddd4444"
    x = time_plot.LEFT + day / 29 * (time_plot.RIGHT - time_plot.LEFT)
    told = next(t for t in texts(course(steps=[(DAYS[day], word)])) if t.startswith("-6.0 %"))
    room = max(time_plot.WIDTH - x, x - time_plot.LEFT + 40)
    assert labels.wide(told) <= room + 8
    assert told == word or told.endswith("\N{HORIZONTAL ELLIPSIS}")


def test_an_axis_that_does_not_begin_at_zero_says_so():
    assert "MB/s (not from 0)" in texts(course())
    assert "MB/s" in texts(course([0.0, *range(1, 30)]))


def test_both_directions_of_two_ends_share_a_cell():
    kinds = {("a", "b"): TYPICAL, ("b", "a"): BROKEN}
    data = Matrix("M", ["a"], ["b"], kinds, {("a", "b"): "9.9", ("b", "a"): "0.1"}, split=True)
    svg = grid.draw("m", "s", data)
    (begin,) = re.findall(r'x="([0-9.]+)"[^>]*>upper left', svg)
    assert 0 <= float(begin) < grid.WIDTH / 2
    cell = pixels(svg)[0]
    assert cell[2, 2] > 200 and cell[-3, -3] < 50
    assert {"9.9", "0.1", "upper left: from the row to the column; lower right: back"} <= set(
        texts(svg)
    )


def test_a_pair_that_nobody_asked_for_is_white_and_one_that_is_missing_is_hatched():
    kinds = {(a, b): TYPICAL for a in NODES for b in NODES if a != b}
    del kinds["n001", "n002"]
    kinds["n001", "n003"] = MISSING
    svg = table_of_pairs(kinds=kinds)
    cells = pixels(svg)[0]
    size = cells.shape[1] // 8
    white, hatched = cells[: size // 2, size : 2 * size], cells[: size // 2, 2 * size : 3 * size]
    assert white.min() == 255 and hatched.min() < 255
    assert "not measured" in texts(svg)


def test_a_matrix_of_many_nodes_is_small_and_names_some():
    names = [f"node{n:03}" for n in range(320)]
    kinds = {(a, b): TYPICAL for a in names for b in names if a != b}
    svg = grid.draw("m", "s", Matrix("M", names, names, kinds, {}))
    assert len(svg) < 30_000
    assert "node050" in texts(svg) and "node051" not in texts(svg)


def test_links_of_a_quantity_stand_below_its_name_with_their_medians():
    told = texts(way())
    assert {"rate", "bare", "sriov", "9.6 GB/s", "6.5 GB/s", "100%"} <= set(told)
    assert texts(ranges.draw("r", "s", Ranges("R", [])))


def test_a_step_out_of_order_says_so():
    assert "out of order" in texts(steps())
    with pytest.raises(ValueError, match="date"):
        dates.draw("s", "s", Timeline("S", ["a"], {}))


def test_a_single_point_is_a_line_of_its_own():
    point = Line("published landmark: tacc", [166], [2.5])
    plot = LinePlot("C", "tasks", "Ior.write", [Line("one", [1, 2, 4], [1.0, 2.0, 2.1]), point])
    assert {"one", "published landmark: tacc", "166"} <= set(texts(line_plot.draw("c", "s", plot)))


def test_lanes_keep_labels_apart():
    assert lanes([(0, 10), (5, 15), (11, 20), (5, 6)], 2) == [0, 1, 0, None]


@rows("low, high", [(0, 1), (-5, 5), (99.9, 100.1), (0, 3e9), (1e-9, 2e-9)])
def test_ticks_are_round_few_and_different(low, high):
    ticks = nice_ticks(low, high)
    assert 2 <= len(ticks) <= 8
    assert all(low - 1e-12 <= t <= high * (1 + 1e-9) for t in ticks)
    assert len(set(numbers(ticks))) == len(ticks)


@rows("days", [0, 1, 9, 59, 61, 364, 900, 4000])
def test_dates_are_few_and_within(days):
    last = DAYS[0] + timedelta(days=days)
    ticks = date_ticks(DAYS[0], last)
    assert 1 <= len(ticks) <= 14
    assert all(DAYS[0] <= at <= last for at, _ in ticks)


def test_dark_cells_have_white_texts():
    assert shares.is_dark(BROKEN) and not shares.is_dark(TYPICAL)
