"""Figures of curves: texts, marks, no memory, and edges."""

import xml.etree.ElementTree as ElementTree

import pytest
from rows import rows

from siteproof.report.figure import line_plot
from siteproof.report.figure.line_plot import Line, LinePlot

ONE = Line("one a node", [1, 2, 4], [10.0, 20.0, 21.0], [9, 19, 20], [11, 21, 22], (2, "plateau 2"))


def plot(*lines, **keys):
    return LinePlot("A title", "tasks", "Ior.write, MiB/s", lines or (ONE,), **keys)


def svg(plots):
    return line_plot.file(plots, "svg").decode()


def texts(svg):
    root = ElementTree.fromstring(svg)
    return [e.text for e in root.iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.deep
def test_all_that_is_said_is_text_and_no_path():
    told = texts(svg([plot(Line("two", [1, 2], [1, 2]), ONE)]))
    for text in ("A title", "tasks", "Ior.write, MiB/s", "one a node; ring: plateau 2", "two", "4"):
        assert text in told


def test_two_plots_stand_below_each_other():
    told = texts(svg([plot(), plot()]))
    assert told.count("A title") == 2


def test_the_same_data_give_the_same_bytes_whatever_was_set_before():
    import matplotlib as mpl

    first = svg([plot()])
    mpl.rcParams["font.size"] = 30
    assert svg([plot()]) == first
    assert mpl.rcParams["font.size"] == 30
    mpl.rcdefaults()


def test_no_date_and_no_address_of_this_machine_is_in_it():
    made = svg([plot()])
    assert "<dc:date>" not in made and "matplotlib.org" not in made
    assert "/root" not in made and "/home" not in made


def test_a_text_cannot_break_the_svg():
    assert "<a & b>" in texts(svg([plot(Line("<a & b>", [1, 2], [1, 2]), ONE)]))
    assert "$x_2$ 5 %" in texts(svg([plot(Line("$x_2$ 5 %", [1, 2], [1, 2]), ONE)]))


@rows(
    "line",
    [
        Line("a point", [4], [7.0]),
        Line("zeros", [1, 2], [0.0, 0.0]),
        Line("from zero", [0, 1, 2], [1.0, 2.0, 3.0]),
        Line("wide", [1, 2**40], [1e-9, 1e15]),
    ],
)
@pytest.mark.deep
def test_edges_are_drawn(line):
    assert line.name in texts(svg([plot(line)]))
    assert line_plot.file([plot(line)], "png").startswith(b"\x89PNG")


def test_words_on_the_axis():
    told = texts(svg([plot(Line("knob", [0, 1], [1, 2]), labels=["own", "64"])]))
    assert {"own", "64"} <= set(told)


def test_a_bound_is_drawn_or_told_where_it_is_too_high():
    near = Line("bound: 30 MiB/s", [1, 4], [30, 30])
    high = Line("bound: 900 MiB/s", [1, 4], [900, 900])
    assert "bound: 30 MiB/s" in texts(svg([plot(bound=near)]))
    told = texts(svg([plot(bound=high)]))
    assert "bound: 900 MiB/s (above the figure)" in told


def test_ticks_are_few_and_powers_of_two():
    xs = [1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 166, 192, 256, 332, 414, 498]
    told = texts(svg([plot(Line("many", xs, xs))]))
    ticks = [int(t) for t in told[: told.index("tasks")] if t.isdigit()]
    assert ticks == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]


def test_near_places_have_ticks_of_their_own():
    told = texts(svg([plot(Line("near", [5, 6, 7], [1, 2, 3]))]))
    assert len({"5", "5.5", "6", "6.5", "7"} & set(told)) >= 3


def test_ticks_are_plain_numbers_and_sizes():
    line = Line("one", [4096, 2**20], [100, 100_000])
    told = texts(svg([plot(line, log_y=True, sizes=True)]))
    assert {"4Ki", "1Mi", "100", "1000", "100000"} <= set(told)
    assert not any("$" in text for text in told)
