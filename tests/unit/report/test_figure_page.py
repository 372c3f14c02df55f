"""Figures for a page: texts, ids, sizes, edges; what they show without colour."""

import base64
import io
import re
import xml.etree.ElementTree as ElementTree
from datetime import UTC, datetime, timedelta
from functools import cache
from math import nan

import numpy as np
import pytest
from PIL import Image
from rows import rows

from siteproof.report.figure import cells, line_plot, style
from siteproof.report.figure import rows as rowed
from siteproof.report.figure.cells import (
    BROKEN,
    FAILED,
    MISSING,
    NO_ANSWER,
    TYPICAL,
    Panel,
    kinds_of,
)
from siteproof.report.figure.line_plot import Line, LinePlot
from siteproof.report.figure.marked import Mark, of_fleet, over_time
from siteproof.report.figure.rows import DOWN, UP, Row

EVIL = '<script>alert("1")</script> & id="x" $\\frac$ -->'
NODES = [f"n{n:03}" for n in range(1, 9)]
DAYS = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=n) for n in range(30)]
BOUND = Mark("bound", 90.0, "C-1 ≥ 90 MB/s", "at_least")


def histogram(**keys):
    values = {node: 100.0 + n for n, node in enumerate(NODES)}
    given = {"better": "higher", "marks": [BOUND], "named": {}, **keys}
    return of_fleet("D", "MB/s", given.pop("values", values), **given)


def chart(nodes=NODES, runs=6, kinds=None, more=(), **keys):
    kinds = np.zeros((len(nodes), runs), dtype=np.uint8) if kinds is None else kinds
    times = [f"{DAYS[0] + timedelta(days=n):%Y-%m-%d}" for n in range(runs)]
    return cells.draw("H", times, [*more, Panel("all", nodes, kinds, **keys)])


def course(values=None, **keys):
    values = list(range(100, 130)) if values is None else values
    return over_time("T", "MB/s", [Line("median", style.days(DAYS), values)], **keys)


def table_of_pairs(kinds=None, **keys):
    kinds = np.full((8, 8), TYPICAL, np.uint8) if kinds is None else kinds
    return cells.draw("M", NODES, [Panel("", NODES, kinds, **keys)])


def way(shares=(0.9, 1.0, 1.1)):
    rows = [Row("bare", list(shares), "9.6 GB/s"), Row("sriov", [0.68], "6.5 GB/s")]
    return rowed.ranges("R", [("rate", rows)])


def steps():
    at = DAYS[0].timestamp()
    rows = {"system": {UP: [(at, at + 9e5)], DOWN: [(at + 9e5, at + 9.1e5)]}, "node": {}}
    return rowed.spans("S", rows, (DAYS[0], DAYS[14]))


def curve(**keys):
    line = Line("one", [1, 2, 4], [1.0, 2.0, 2.1])
    return line_plot.draw(LinePlot("C", "tasks", "Ior.write, MiB/s", [line], **keys))


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
def test_a_figure_has_a_title_and_no_date_or_program(draw):
    svg = once(draw)
    root = ElementTree.fromstring(svg)
    assert root.get("viewBox").startswith("0 0 400 ")
    assert "dc:date" not in svg and "Matplotlib v" not in svg and "dc:creator" not in svg
    assert len(root.find("{http://www.w3.org/2000/svg}title").text) == 1
    assert len(svg) < 30_000


@rows("draw", ALL)
def test_all_that_is_said_is_text_within_the_picture(draw):
    root = ElementTree.fromstring(once(draw))
    found = list(root.iter("{http://www.w3.org/2000/svg}text"))
    assert len(found) > 5
    width, height = map(float, root.get("viewBox").split()[2:])
    for text in found:
        x, y = float(text.get("x")), float(text.get("y"))
        assert -1 <= x <= width and 0 <= y <= height + 1


@rows(
    "svg",
    [
        lambda: histogram(values={EVIL: 1.0, "n": 2.0}, named={EVIL: EVIL}),
        lambda: chart(nodes=[EVIL, "n"], texts={(0, 0): EVIL}),
        lambda: over_time(EVIL, EVIL, [Line(EVIL, style.days(DAYS), range(30))], [(DAYS[3], EVIL)]),
        lambda: rowed.ranges(EVIL, [(EVIL, [Row(EVIL, [1.0], EVIL)])]),
        lambda: line_plot.draw(LinePlot(EVIL, EVIL, EVIL, [Line(EVIL, [1, 2], [1, 2])])),
    ],
)
def test_a_hostile_name_stays_a_text(svg):
    made = svg()
    root = ElementTree.fromstring(made)
    assert {e.tag.rpartition("}")[2] for e in root.iter()} <= {
        "svg",
        "title",
        "metadata",
        "RDF",
        "Work",
        "style",
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
    assert "<script" not in made and "-->" not in made.replace(" -->\n", "")


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
@pytest.mark.deep
def test_a_distribution_of_little_is_drawn(values):
    told = texts(histogram(values=values, marks=[Mark("bound", 1e6, "C ≥ 1000000")]))
    assert "nodes" in told
    assert "no value" in told or any(v == v for v in values.values())


def test_a_bound_far_off_is_told_and_does_not_press_the_nodes_together():
    values = {node: 100 + n / 10 for n, node in enumerate(NODES)}
    told = texts(histogram(values=values, marks=[Mark("bound", 1.0, "C ≥ 1 MB/s")]))
    assert "C ≥ 1 MB/s, outside the figure" in told
    assert "100.2" in told


def test_many_nodes_are_a_small_figure():
    svg = histogram(values={f"n{n}": 100 + n % 5 for n in range(800)}, marks=[])
    assert len(svg) < 12_000


def test_nodes_that_are_named_differ_by_their_marks():
    svg = histogram(named={node: f"{node} -1.0 %" for node in NODES[:5]}, marks=[])
    assert {f"{node} -1.0 %" for node in NODES[:5]} <= set(texts(svg))
    shapes = re.findall(r'<path id="(m[0-9a-f]+)"', svg)
    assert len(set(shapes)) >= 5


@pytest.mark.deep
def test_a_year_of_a_large_fleet_is_small():
    rng = np.random.default_rng(1)
    kinds = np.zeros((320, 365), dtype=np.uint8)
    kinds[rng.random(kinds.shape) < 0.02] = 1
    kinds[rng.random(kinds.shape) < 0.01] = MISSING
    kinds[7, 100:], kinds[9, 200:], kinds[100:140, 50:60] = BROKEN, FAILED, NO_ANSWER
    names = [f"n{n:03}" for n in range(320)]
    worst = Panel("the worst 2", ["n007", "n009"], kinds[[7, 9]])
    svg = chart(names, 365, kinds, [worst], starts={0: "r1", 3: "r2", 160: "r3"})
    assert len(svg) < 80_000
    told = texts(svg)
    assert {"n007", "n009", "r1", "r3", "the worst 2"} <= set(told)
    assert "n008" not in told and "r2" not in told


def test_kinds_of_cells_are_told_by_grey_alone_and_what_is_no_figure_by_a_pattern():
    kinds = np.arange(8, dtype=np.uint8).reshape(8, 1).repeat(4, axis=1)
    rows = pixels(chart(runs=4, kinds=kinds))[0]
    high, wide = rows.shape[0] // 8, rows.shape[1] // 4
    blocks = [rows[n * high + 1 : (n + 1) * high, 1:wide] for n in range(8)]
    figures = [int(block.mean()) for block in blocks[: BROKEN + 1]]
    assert all(a - b >= 24 for a, b in zip(figures, figures[1:], strict=False))
    assert all(block.min() == block.max() for block in blocks[: BROKEN + 1])
    assert all(block.min() < block.max() for block in blocks[MISSING:])
    assert not np.array_equal(blocks[FAILED], blocks[NO_ANSWER])


def test_one_of_hundreds_of_nodes_is_a_row_of_pixels_of_its_own():
    kinds = np.zeros((320, 365), dtype=np.uint8)
    kinds[200, 180] = BROKEN
    whole = pixels(chart(nodes=[f"n{n}" for n in range(320)], runs=365, kinds=kinds))[0]
    assert 1 <= (whole < 50).sum() <= 20


def test_shares_become_kinds_by_what_a_repair_is_worth():
    told = kinds_of(np.array([1.2, 1.0, 0.981, 0.97, 0.94, 0.5, nan]))
    assert told.tolist() == [TYPICAL, TYPICAL, TYPICAL, 1, 2, 3, MISSING]


@rows("values", [[nan] * 30, [0.0] * 30, [5.0] * 29 + [nan], [1e-12] * 30, [-3.0] + [1e15] * 29])
@pytest.mark.deep
def test_a_trend_of_anything_is_drawn(values):
    told = texts(course(values, marks=[BOUND]))
    assert "median" in told


def test_a_trend_of_one_run_has_ticks_that_differ():
    svg = over_time("T", "us", [Line("n", style.days(DAYS[:1]), [1.2])])
    ticks = [t for t in texts(svg) if re.fullmatch(r"[\d.]+", t)]
    assert len(ticks) == len(set(ticks)) >= 2


def test_a_pause_breaks_the_line_and_is_told():
    held = DAYS[:10] + [at + timedelta(days=60) for at in DAYS[10:]]
    svg = over_time("T", "us", [Line("n", style.days(held), range(30), range(30), range(30))])
    assert "no run" in texts(svg)
    assert any(d.count("M") > 1 for d in re.findall(r'd="([^"]+)"', svg))


def test_steps_and_bounds_are_told_by_line_and_word():
    svg = course(
        steps=[(DAYS[10], "-8.0 % on 2026-01-11"), (DAYS[11], "kernel")],
        marks=[Mark("bound", 95, "C ≥ 95"), Mark("baseline", 1e6, "usual 1000000")],
    )
    told = texts(svg)
    assert {"1: -8.0 % on 2026-01-11", "2: kernel", "1", "2"} <= set(told)
    assert {"C ≥ 95", "usual 1000000, outside the figure"} <= set(told)
    assert "stroke-dasharray" in svg


def test_a_long_word_at_a_step_is_broken_into_lines_and_not_cut():
    word = f"-6.0 % on 2026-07-29, software_lock: {'a' * 50} -> {'c' * 90}"
    told = texts(course(steps=[(DAYS[3], word)]))
    begin = next(n for n, text in enumerate(told) if text.startswith("1: -6.0 %"))
    lines = told[begin : begin + 4]
    assert "".join(lines).replace(" ", "").startswith(f"1:{word}".replace(" ", ""))
    assert max(map(len, lines)) <= style.LETTERS


def test_an_axis_that_does_not_begin_at_zero_says_so():
    assert "MB/s (not from 0)" in texts(course())
    assert "MB/s" in texts(course([0.0, *range(1, 30)]))


def test_a_pair_that_nobody_asked_for_is_white_and_one_that_is_missing_is_hatched():
    kinds = np.full((8, 8), TYPICAL, np.uint8)
    kinds[0, 1], kinds[0, 2] = cells.NOT_EXPECTED, MISSING
    svg = table_of_pairs(kinds)
    image = pixels(svg)[0]
    size = image.shape[1] // 8
    white, hatched = image[: size // 4, size : 2 * size], image[: size // 4, 2 * size : 3 * size]
    assert white.min() == 255 and hatched.min() < 255
    assert "not measured" in texts(svg)


def test_a_matrix_of_many_nodes_is_small_and_names_some():
    names = [f"node{n:03}" for n in range(320)]
    data = Panel("", names, np.full((320, 320), TYPICAL, np.uint8))
    svg = cells.draw("M", names, [data])
    assert len(svg) < 30_000
    assert "node050" in texts(svg) and "node051" not in texts(svg)


def test_a_cell_has_its_value_where_there_is_room():
    assert "9.4" in texts(table_of_pairs(texts={(0, 1): "9.4"}))
    kinds = np.zeros((8, 20), np.uint8)
    assert "9.4" not in texts(chart(runs=20, kinds=kinds, texts={(0, 1): "9.4"}))


def test_links_of_a_quantity_stand_below_its_name_with_their_medians():
    told = texts(way())
    assert {"rate", "bare", "sriov", "9.6 GB/s", "6.5 GB/s", "100 %"} <= set(told)
    assert texts(rowed.ranges("R", []))


def test_a_single_point_is_a_line_of_its_own():
    point = Line("a setting of its own", [166], [2.5])
    plot = LinePlot("C", "tasks", "Ior.write", [Line("one", [1, 2, 4], [1.0, 2.0, 2.1]), point])
    assert {"one", "a setting of its own"} <= set(texts(line_plot.draw(plot)))
