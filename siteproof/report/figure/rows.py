"""Bars of trials, ranges of values over several links, and spans of time, a row a subject.

Strips of time, a row a node: under load, down, and what failed; the speed of all below.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import mean, median
from typing import Any

from siteproof.report.figure import style
from siteproof.report.figure.style import COLOURS, DAY, HATCHED, PALE, SOFT, short

BARS = 200.0
GAP = 1.0  # bars between two groups
RANGES = 50.0, 15.0  # units: below the rows, and of a row
ROOM = 1.5  # times the largest share: to the right of it is room for a text
SPANS = 30.0, 16.0
BAR = 0.7  # of a row's height
UP, LOAD, UNKNOWN = "up", "under load", "not measured"
PLANNED, DOWN = "down, planned", "down"
# Each state by its colour and its hatch, so that print without colours shows it, too. The line
# around what must be seen is wider than a short time.
_STYLES: dict[str, dict[str, Any]] = {
    UP: {"facecolor": PALE},
    LOAD: {"facecolor": PALE},
    UNKNOWN: HATCHED | {"hatch": "\\\\\\"},
    PLANNED: {"facecolor": COLOURS[4], "hatch": "////", "edgecolor": "white", "linewidth": 0},
    DOWN: {"facecolor": COLOURS[1], "edgecolor": COLOURS[1], "linewidth": 0.7},
}

Times = Sequence[tuple[float, float]]
Period = tuple[datetime, datetime]


def bars(title: str, label: str, groups: Sequence[tuple[str, Sequence[float]]]) -> str:
    """The figure for a page: a group a scenario, a bar a trial.

    groups: name and values of each; their median is a line.
    """

    def fill(made: style.Figure) -> None:
        place = made.add_subplot(ylabel=label)
        at, middles = 0.0, []
        for number, (_, values) in enumerate(groups):
            places = [at + n for n in range(len(values))]
            place.bar(places, values, color=COLOURS[number % len(COLOURS)], width=0.9)
            ends = at - 0.5, places[-1] + 0.5
            place.hlines(median(values), *ends, color="#000000", linewidth=1.2, label="median")
            middles.append(mean(ends))
            at += len(values) + GAP
        place.set_xticks(middles, [short(name) for name, _ in groups])
        place.tick_params(axis="x", length=0)
        place.grid(visible=True, axis="y")

    return style.svg(title, BARS, fill)


@dataclass(frozen=True)
class Row:
    """One link. shares: every value as a share of the first link's median. text: its median."""

    name: str
    shares: Sequence[float]
    text: str


def ranges(title: str, groups: Sequence[tuple[str, Sequence[Row]]]) -> str:
    """The figure for a page: each quantity with its links, the first with a median share of 1."""
    lines: list[tuple[str, Row | None]] = []  # a line of its own for each title
    for quantity, rows in groups:
        lines += [(quantity, None), *((row.name, row) for row in rows)]
    end = ROOM * max((share for _, row in lines if row for share in row.shares), default=1.0)

    def fill(made: style.Figure) -> None:
        place = made.add_subplot(xlim=(0, end), ylim=(max(1, len(lines)) - 0.5, -0.5))
        place.set_xlabel("share of the first link's median")
        for y, (name, row) in enumerate(lines):
            _range(place, y, row) if row else _text(place, 0, y, name)
        named = {y: short(name) for y, (name, row) in enumerate(lines) if row}
        place.set_yticks(list(named), list(named.values()))
        place.tick_params(axis="y", length=0)
        place.axvline(1.0, color="#000000", linewidth=0.8, linestyle=":", zorder=0)
        place.xaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
        place.grid(visible=True, axis="x")

    foot, high = RANGES
    return style.svg(title, foot + high * max(1, len(lines)), fill)


def _range(place: style.Axes, y: int, row: Row) -> None:
    low, high = min(row.shares), max(row.shares)
    place.hlines(y, low, high, color=SOFT, linewidth=1.2, label="range")
    for text, values, marker, colour in (
        ("value", row.shares, "o", COLOURS[0]),
        ("median", [median(row.shares)], "|", "#000000"),
        ("mean", [mean(row.shares)], "x", COLOURS[1]),
    ):
        place.plot(values, [y] * len(values), marker, color=colour, mfc="none", ms=6, label=text)
    _text(place, high, y, row.text)


def _text(place: style.Axes, x: float, y: float, text: str) -> None:
    place.annotate(text, (x, y), (5, 0), textcoords="offset points", va="center", fontsize=8.4)


def spans(title: str, rows: Mapping[str, Mapping[str, Times]], period: Period) -> str:
    """The figure for a page: rows of time, when each subject was up or down.

    rows: by the name of a row, the times in each state, in seconds since 1970.
    """
    foot, high = SPANS
    height = foot + high * len(rows)
    return style.svg(title, height, lambda made: spans_in(made.add_subplot(), rows, period))


def spans_in(place: style.Axes, rows: Mapping[str, Mapping[str, Times]], period: Period) -> None:
    """The same rows in a plot."""
    for y, states in enumerate(rows.values()):
        for state, look in _STYLES.items():  # an outage last, so that nothing hides it
            if times := states.get(state):
                bars = [(begin / DAY, (end - begin) / DAY) for begin, end in times]
                place.broken_barh(bars, (y - BAR / 2, BAR), label=state, **look)
    place.set_ylim(len(rows) - 0.5, -0.5)
    place.xaxis_date()
    place.set_xlim(*style.days(period))
    place.set_yticks(range(len(rows)), [short(name) for name in rows])
    place.tick_params(axis="y", length=0)
    place.grid(visible=True, axis="x")


HEIGHT, STRIP, CURVES = 34.0, 13.0, 110.0  # units: of both axes, of a strip, of the curves
STEPS = 100  # marks of a row
SIDE = 0.02  # of the speed that is drawn at least: less is worth no alert
POINTS = 150  # of a curve; of more, medians of neighbours
_MARKS = ("X", "s", "v", "o", "D", "P", "^")  # a shape and a colour for each class


@dataclass(frozen=True)
class Strip:
    """Times in seconds since 1970. states: as in rows.spans. marks: by class, when it began."""

    states: Mapping[str, Times]
    marks: Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Course:
    """The speed of all over time, as a share of its median. times: in seconds since 1970."""

    name: str
    times: Sequence[float]
    shares: Sequence[float]


def draw(
    title: str,
    strips: Mapping[str, Strip],
    courses: Sequence[Course],
    classes: Sequence[str],
    period: Period,
) -> str:
    """The figure for a page. classes: all that a mark may be of, always in the same order."""
    looks = {name: (_MARKS[n], COLOURS[n % len(COLOURS)]) for n, name in enumerate(classes)}
    heights = [STRIP * len(strips)] + [CURVES] * bool(courses)
    step = (period[1] - period[0]).total_seconds() / STEPS

    def fill(made: style.Figure) -> None:
        places = made.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)
        spans_in(places[0, 0], {name: one.states for name, one in strips.items()}, period)
        for y, strip in enumerate(strips.values()):
            _marks(places[0, 0], y, strip.marks, looks, step)
        if courses:
            _courses(places[1, 0], courses)

    return style.svg(title, HEIGHT + sum(heights), fill)


def _marks(
    place: style.Axes,
    y: int,
    marks: Mapping[str, Sequence[float]],
    looks: Mapping[str, tuple[str, str]],
    step: float,
) -> None:
    """The marks of a row, of each class one in a step."""
    for name, (marker, colour) in looks.items():
        if at := sorted({int(one / step): one for one in marks.get(name, ())}.values()):
            xs = [one / DAY for one in at]
            place.plot(xs, [y] * len(xs), marker, label=name, ls="", c=colour, mec="white", ms=6.5)


def _courses(place: style.Axes, courses: Sequence[Course]) -> None:
    for one in courses:
        size = -(-len(one.times) // POINTS)
        parts = [slice(at, at + size) for at in range(0, len(one.times), size)]
        xs = [median(one.times[part]) / DAY for part in parts]
        place.plot(xs, [median(one.shares[part]) for part in parts], label=one.name, markersize=3)
    shares = [share for one in courses for share in one.shares]
    place.set_ylim(min(1 - SIDE, *shares), max(1 + SIDE, *shares))
    place.set_ylabel("share of median")
    place.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.1f} %")
    place.grid(visible=True)
