"""Strips of time, a row a node: under load, down, and what failed; the speed of all below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from siteproof.report.figure import rows, style
from siteproof.report.figure.rows import Period, Times
from siteproof.report.figure.style import COLOURS, DAY

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
        rows.spans_in(places[0, 0], {name: one.states for name, one in strips.items()}, period)
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
