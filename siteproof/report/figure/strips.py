"""Strips of time, a row a node: under load, down, and what failed; the speed of all below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from statistics import median
from typing import Any

from siteproof.report.figure import style
from siteproof.report.figure.rows import Times
from siteproof.report.figure.style import COLOURS, DAY, PALE, short

HEIGHT, STRIP, CURVES = 34.0, 13.0, 110.0  # units: of both axes, of a strip, of the curves
BAR = 0.7  # of a strip's height
STEPS = 100  # of the period: a shorter pause is not drawn, and marks are as far apart
LEAST = 0.004  # of the period: a shorter outage is drawn as long
SIDE = 0.02  # of the speed that is drawn at least: less is worth no alert
POINTS = 150  # of a curve; of more, medians of neighbours
# The line around a bar is the colour of its hatch.
_BARS: dict[str, dict[str, Any]] = {
    "load": {"label": "under load", "facecolor": PALE},
    "planned": {
        "label": "down, planned",
        "facecolor": COLOURS[4],
        "hatch": "\\\\\\\\",
        "edgecolor": "white",
        "linewidth": 0,
    },
    "down": {
        "label": "down",
        "facecolor": COLOURS[1],
        "hatch": "////",
        "edgecolor": "white",
        "linewidth": 0,
    },
}
_MARKS = ("X", "s", "v", "o", "D", "P", "^")  # a shape and a colour for each class


@dataclass(frozen=True)
class Strip:
    """Times in seconds since 1970. marks: by the class of a failure, when it began."""

    load: Times = ()
    down: Times = ()
    planned: Times = ()
    marks: Mapping[str, Sequence[float]] = field(default_factory=dict)


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
    period: tuple[datetime, datetime],
) -> str:
    """The figure for a page. classes: all that a mark may be of, always in the same order."""
    looks = {name: (_MARKS[n], COLOURS[n % len(COLOURS)]) for n, name in enumerate(classes)}
    heights = [STRIP * len(strips)] + [CURVES] * bool(courses)
    ends = [at.timestamp() for at in period]

    def fill(made: style.Figure) -> None:
        places = made.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[
            :, 0
        ]
        place = places[0]
        for y, strip in enumerate(strips.values()):
            _strip(place, y, strip, looks, ends[1] - ends[0])
        place.set_ylim(len(strips) - 0.5, -0.5)
        place.set_yticks(range(len(strips)), [short(name) for name in strips])
        place.tick_params(axis="y", length=0)
        place.grid(visible=True, axis="x")
        if courses:
            _courses(places[1], courses)
        places[-1].xaxis_date()
        places[-1].set_xlim(*style.days(period))

    return style.svg(title, HEIGHT + sum(heights), fill)


def _strip(
    place: style.Axes, y: int, strip: Strip, looks: Mapping[str, tuple[str, str]], length: float
) -> None:
    for name, look in _BARS.items():
        if bars := _drawn(getattr(strip, name), length, LEAST * (name != "load")):
            place.broken_barh(bars, (y - BAR / 2, BAR), **look)
    step = length / STEPS
    for name, (marker, colour) in looks.items():
        if at := sorted({int(one / step): one for one in strip.marks.get(name, ())}.values()):
            look = {"color": colour, "mec": "white", "mew": 0.6, "ms": 6.5}
            xs = [one / DAY for one in at]
            place.plot(xs, [y] * len(xs), marker, label=name, linestyle="", **look)


def _drawn(times: Times, length: float, least: float) -> list[tuple[float, float]]:
    """Bars: their begin and width in days, without pauses that are too short to be seen."""
    found: list[tuple[float, float]] = []
    for begin, end in times:
        end = max(end, begin + least * length)
        if found and begin - found[-1][1] < length / STEPS:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((begin, end))
    return [(begin / DAY, (end - begin) / DAY) for begin, end in found]


def _courses(place: style.Axes, courses: Sequence[Course]) -> None:
    for one in courses:
        size = -(-len(one.times) // POINTS)
        parts = [slice(at, at + size) for at in range(0, len(one.times), size)]
        xs = [median(one.times[part]) / DAY for part in parts]
        place.plot(xs, [median(one.shares[part]) for part in parts], label=one.name, markersize=3)
    shares = [share for one in courses for share in one.shares]
    place.set_ylim(min(1 - SIDE, *shares), max(1 + SIDE, *shares))
    place.set_ylabel("share of median")
    place.yaxis.set_major_formatter(lambda share, _: f"{share:.1%}")
    place.grid(visible=True)
