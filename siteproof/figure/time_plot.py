"""Values over time with steps, typical range, bounds, baselines, and pauses without a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import isfinite
from statistics import median
from typing import TYPE_CHECKING, Any

from siteproof.figure import canvas, labels, marks
from siteproof.figure.canvas import COLOURS, DASHES, GRID, MARKERS, PALE, SMALL, SOFT, WIDTH
from siteproof.figure.labels import date_ticks, legend_columns, nice_ticks, number, numbers, short
from siteproof.figure.marks import STYLES, Label, Mark

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

LEFT, RIGHT, FOOT, HIGH = 52.0, WIDTH - 20, 24.0, 130.0
MAX_LANES = 7
MAX_LETTERS = 64  # of a label
POINTS = 80  # of which each is seen as one
STRIPS = 60  # of the time: each shows its values on hover
PAUSE = 4  # times the median time between two runs: a gap
MIN_PAUSE = 0.03  # of the axis


@dataclass(frozen=True)
class Course:
    """A series, its times rising. lows, highs: a band around it, such as most of a fleet.

    quiet: drawn in grey, only to compare with.
    """

    name: str
    times: Sequence[datetime]
    values: Sequence[float] | NDArray[np.float64]
    lows: Sequence[float] | NDArray[np.float64] = ()
    highs: Sequence[float] | NDArray[np.float64] = ()
    quiet: bool = False


@dataclass(frozen=True)
class Region:
    """The typical range in a period: runs between low and high are in control."""

    first: datetime
    last: datetime
    low: float
    high: float


@dataclass(frozen=True)
class Trend:
    """steps: the time of each, and what to call it. marks: bounds and baselines.

    outside: points that deserve a ring, each (time, value).
    """

    title: str
    unit: str
    courses: Sequence[Course]
    steps: Sequence[tuple[datetime, str]] = ()
    marks: Sequence[Mark] = ()
    region: Region | None = None
    outside: Sequence[tuple[datetime, float]] = ()


def draw(name: str, caption: str, data: Trend) -> str:
    """The figure for a page, as siteproof.figure.canvas.svg. Raises ValueError without any run."""
    times = sorted(t for course in data.courses for t in course.times)
    if not times:
        raise ValueError("a trend without a run")
    ends = _ends(times)
    low, high, near = marks.axis_of(_values(data), data.marks)
    steps = [
        Label(at.timestamp(), short(text, MAX_LETTERS), COLOURS[1], (0, (5, 2)), 1.2)
        for at, text in data.steps
    ]
    span = (ends[0].timestamp(), ends[1].timestamp())
    shown = marks.in_lanes(steps, span, (LEFT, RIGHT), MAX_LANES)
    legend = _legend(data)
    columns = legend_columns(legend)
    foot = FOOT + 14 * -(-len(legend) // columns)
    height = foot + HIGH + marks.height_of(shown)

    def fill(made: Figure) -> Sequence[canvas.Hover]:
        box = (LEFT / WIDTH, foot / height, (RIGHT - LEFT) / WIDTH, HIGH / height)
        place = made.add_axes(box)
        place.set_xlim(*span)
        place.set_ylim(low, high)
        for index, course in enumerate(data.courses):
            _course(place, course, index)
        _pauses(place, times, ends)
        _region(place, data.region)
        _marks(place, data, near)
        for label in shown:
            marks.draw_label(place, label, HIGH)
        for at, value in data.outside:
            place.plot(
                [at.timestamp()],
                [value],
                marker="o",
                markersize=9,
                color=COLOURS[1],
                markerfacecolor="none",
                linestyle="none",
            )
        _axes(place, data, ends)
        place.legend(
            loc="upper left",
            bbox_to_anchor=(-0.02, -0.11),
            frameon=False,
            fontsize=SMALL,
            ncols=columns,
        )
        return _hovers(data, span, box)

    return canvas.svg(name, data.title, caption, height, fill)


def _hovers(data: Trend, span: tuple[float, float], box: Sequence[float]) -> list[canvas.Hover]:
    """The values of each series in each strip of the time."""
    left, bottom, wide, tall = box
    found: dict[int, dict[str, list[tuple[datetime, float]]]] = {}
    for course in data.courses:
        for at, value in zip(course.times, course.values, strict=True):
            strip = int((at.timestamp() - span[0]) / (span[1] - span[0]) * STRIPS)
            if isfinite(value):
                found.setdefault(strip, {}).setdefault(course.name, []).append((at, float(value)))
    return [
        canvas.Hover(
            (left + wide * strip / STRIPS, bottom, wide / STRIPS, tall),
            _in_words(series, data.unit),
        )
        for strip, series in sorted(found.items())
    ]


def _in_words(series: Mapping[str, Sequence[tuple[datetime, float]]], unit: str) -> str:
    """`2026-05-01 to 2026-05-07: n002: 181 to 183 MB/s`."""
    times = [at for points in series.values() for at, _ in points]
    days = dict.fromkeys(f"{at:%Y-%m-%d}" for at in (min(times), max(times)))
    texts = []
    for name, points in series.items():
        own = [value for _, value in points]
        ends = dict.fromkeys(number(value) for value in (min(own), max(own)))
        texts.append(f"{name}: {' to '.join(ends)} {unit}")
    return f"{' to '.join(days)}: {'; '.join(texts)}"


def _legend(data: Trend) -> list[str]:
    """The longest texts that the legend may have."""
    texts = [course.name for course in data.courses]
    texts += [f"{mark.text}, below the figure" for mark in data.marks]
    return [*texts, _typical(data.region)] if data.region else texts


def _typical(region: Region) -> str:
    return f"typical: {number(region.low)} to {number(region.high)}"


def _ends(times: Sequence[datetime]) -> tuple[datetime, datetime]:
    room = (times[-1] - times[0]) * 0.02 or timedelta(days=1)
    return times[0] - room, times[-1] + room


def _values(data: Trend) -> list[float]:
    """Every value that is drawn."""
    every: list[float] = []
    for course in data.courses:
        every += [*course.values, *course.lows, *course.highs]
    return [value for value in every if isfinite(value)]


def _course(place: Axes, course: Course, index: int) -> None:
    """One line, broken where nothing was measured for long."""
    xs, ys = [t.timestamp() for t in course.times], list(course.values)
    pause = _pause(course.times)
    colour, shown = COLOURS[index % len(COLOURS)], len(xs) <= POINTS
    lows, highs = list(course.lows), list(course.highs)
    banded = bool(lows and highs)
    for n in reversed(range(1, len(xs))):
        if xs[n] - xs[n - 1] > pause:
            xs.insert(n, (xs[n] + xs[n - 1]) / 2)
            for row in (ys, lows, highs) if banded else (ys,):
                row.insert(n, float("nan"))
    if banded:
        place.fill_between(xs, lows, highs, color=PALE, linewidth=0, zorder=0.5)
    if course.quiet:
        place.plot(xs, ys, label=course.name, color=SOFT, linewidth=2.2, alpha=0.6)
        return
    place.plot(
        xs,
        ys,
        label=course.name,
        color=colour,
        linewidth=1.1,
        linestyle=DASHES[index % len(DASHES)],
        markersize=3.5,
        marker=MARKERS[index % len(MARKERS)] if shown else None,
    )


def _pause(times: Sequence[datetime]) -> float:
    """Seconds from which on a time without runs is a gap."""
    steps = [(b - a).total_seconds() for a, b in zip(times, times[1:], strict=False) if b > a]
    return PAUSE * median(steps) if steps else 0.0


def _pauses(place: Axes, times: Sequence[datetime], ends: tuple[datetime, datetime]) -> None:
    """Hatch the times in which no series has a run, with their length."""
    limit, whole = _pause(sorted(set(times))), (ends[1] - ends[0]).total_seconds()
    for a, b in zip(times, times[1:], strict=False):
        long = (b - a).total_seconds()
        if long <= limit or long < MIN_PAUSE * whole:
            continue
        span = (a.timestamp() + 0.1 * long, b.timestamp() - 0.1 * long)
        place.axvspan(
            *span, facecolor="none", edgecolor="#bbbbbb", hatch="\\\\\\", linewidth=0, zorder=0.2
        )
        text = f"no run: {long / 86400:.0f} d"
        if labels.wide(text) < 0.8 * long / whole * (RIGHT - LEFT):
            place.text(
                sum(span) / 2,
                0.03,
                text,
                ha="center",
                fontsize=SMALL,
                color="#333333",
                transform=place.get_xaxis_transform(),
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
            )


def _region(place: Axes, region: Region | None) -> None:
    if region:
        xs = [region.first.timestamp(), region.last.timestamp()]
        place.fill_between(
            xs,
            region.low,
            region.high,
            facecolor="none",
            edgecolor="#009E73",
            linewidth=0.9,
            linestyle=":",
            zorder=0.4,
            label=_typical(region),
        )


def _marks(place: Axes, data: Trend, near: Sequence[Mark]) -> None:
    """Lines across, with their texts in the legend, where they hide no value."""
    low, high = place.get_ylim()
    for mark in data.marks:
        line, width = STYLES[mark.kind]
        style: dict[str, Any] = {"color": "#000000", "linewidth": 0.8 * width, "linestyle": line}
        if mark in near:
            place.axhline(mark.value, label=mark.text, **style)
        else:
            side = "above" if mark.value > (low + high) / 2 else "below"
            place.plot([], [], label=f"{mark.text}, {side} the figure", **style)


def _axes(place: Axes, data: Trend, ends: tuple[datetime, datetime]) -> None:
    ticks = date_ticks(*ends)
    place.set_xticks([at.timestamp() for at, _ in ticks], [text for _, text in ticks])
    heights = nice_ticks(*place.get_ylim(), 5)
    place.set_yticks(heights, numbers(heights))
    cut = place.get_ylim()[0] > 0
    place.set_ylabel(data.unit + (" (not from 0)" if cut else ""), color="#000000")
    place.grid(visible=True, color=GRID, linewidth=0.5)
    place.tick_params(labelsize=SMALL, color=SOFT)
