"""Values with bounds, baselines and medians: of a fleet at once, and over time.

Small drawings in tables: how a criterion's values are spread over the nodes, and a year of days.

Each is an SVG element without a colour: the page's style gives it one in either theme. A drawing
of the plotting library is twenty times as large. All texts are escaped here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from html import escape
from itertools import groupby
from math import isfinite
from statistics import median
from typing import Any

import numpy as np

from siteproof.report.figure import style
from siteproof.report.figure.line_plot import Line
from siteproof.report.figure.style import COLOURS, HATCHED, MARKERS, PALE, SOFT

EXACT = 1e-12  # a value that was converted to another unit is the same value
DATA_SHARE = 0.12  # of the axis that the values must keep: a mark farther off is not drawn
MARGIN = 0.05  # of the axis, at both ends
STYLES = {"bound": ("-", 1.8), "baseline": ("--", 1.4), "median": (":", 1.6)}
BINS = 46
FLEET = 160.0  # units
DIRECTION = {"higher": ", higher is better →", "lower": ", ← lower is better"}
COURSE = 170.0
POINTS = 80  # of which each is seen as one
PAUSE = 4  # times the median time between two runs: a gap
MIN_PAUSE = 0.03  # of the axis


@dataclass(frozen=True)
class Mark:
    """A value that all are compared with. kind: bound, baseline or median; text: with its value.

    side: whether each value must be `at_least` or `at_most` that; empty: it judges none by itself,
    as the bound of a median does. inclusive: whether the value itself is good.
    """

    kind: str
    value: float
    text: str
    side: str = ""
    inclusive: bool = True

    def beyond(self, values: np.ndarray) -> np.ndarray:
        """Which values are on its bad side; in its own unit."""
        sign = {"at_least": 1.0, "at_most": -1.0, "": np.nan}[self.side]
        slack = EXACT * abs(self.value) * (-1.0 if self.inclusive else 1.0)
        found: np.ndarray = sign * np.asarray(values) < sign * self.value + slack
        return found

    def times(self, size: float) -> Mark:
        """The same in a unit that is so many times smaller."""
        return replace(self, value=self.value * size)


def axis_of(values: Sequence[float], marks: Sequence[Mark]) -> tuple[float, float, Sequence[Mark]]:
    """The ends of an axis, and the marks that are on it: those that leave the values room."""
    points = list(values) or [mark.value for mark in marks] or [0.0]
    low, high = min(points), max(points)
    least = max(high - low, 0.01 * abs(high)) or 1.0
    centre = median(points)
    near = []
    for mark in sorted(marks, key=lambda mark: abs(mark.value - centre)):
        ends = min(low, mark.value), max(high, mark.value)
        if least >= DATA_SHARE * (ends[1] - ends[0]):
            low, high = ends
            near.append(mark)
    room = MARGIN * max(high - low, least)
    return low - room, high + room, near


def _draw_marks(line: Callable[..., object], marks: Sequence[Mark], near: Sequence[Mark]) -> None:
    """Lines across a plot, each with its text in the legend. line: axhline or axvline."""
    for mark in marks:
        dashes, width = STYLES[mark.kind]
        place, text = mark.value, mark.text
        if mark not in near:
            place, text = float("nan"), f"{text}, outside the figure"
        line(place, label=text, color="#000000", linestyle=dashes, linewidth=width)


def of_fleet(
    title: str,
    unit: str,
    values: Mapping[str, float],
    better: str,
    marks: Sequence[Mark],
    named: Mapping[str, str],
) -> str:
    """The figure for a page: how many nodes are where.

    values: of each node. better: higher, lower or neither. named: some
    nodes and what to say of them, the worst first.
    """
    known = [value for value in values.values() if isfinite(value)]
    low, high, near = axis_of(known, marks)

    def fill(made: style.Figure) -> None:
        place = made.add_subplot(xlim=(low, high), ylabel="nodes")
        place.set_xlabel(unit + DIRECTION.get(better, ""))
        counts, edges = np.histogram(known, BINS, (low, high))
        most, some = max(5.0, 1.05 * counts.max()), counts > 0
        bars = np.maximum(counts[some], most / FLEET)  # one of hundreds shows
        place.vlines((edges[:-1] + edges[1:])[some] / 2, 0, bars, COLOURS[0], linewidth=5.5)
        place.set_ylim(0, most)
        place.locator_params(axis="y", integer=True)
        _draw_marks(place.axvline, marks, near)
        for mark in (mark for mark in near if mark.kind == "bound" and mark.side):
            outer = low if mark.side == "at_least" else high  # what the bound does not allow
            place.axvspan(outer, mark.value, hatch="///", zorder=0, **HATCHED)
        for (node, text), marker in zip(named.items(), MARKERS, strict=False):
            at = values[node]
            place.plot(at, 0, marker, color=COLOURS[1], ms=6, clip_on=False, label=text)
        if not known:
            place.text(0.5, 0.5, "no value", transform=place.transAxes, ha="center", color=SOFT)

    return style.svg(title, FLEET, fill)


def over_time(
    title: str,
    unit: str,
    lines: Sequence[Line],
    steps: Sequence[tuple[datetime, str]] = (),
    marks: Sequence[Mark] = (),
) -> str:
    """The figure for a page: one run or more, with steps, and pauses without a run.

    lines: their places are days since 1970, rising; between lows and highs is a band, such as most
    of a fleet. steps: the time of each, and what to call it. marks: bounds and baselines.
    """
    times = np.unique([day for line in lines for day in line.xs])
    every = np.concatenate([[*one.values, *one.lows, *one.highs] for one in lines])
    low, high, near = axis_of(every[np.isfinite(every)].tolist(), marks)
    room = 0.02 * (times[-1] - times[0]) or 1.0

    def fill(made: style.Figure) -> None:
        place = made.add_subplot(xlim=(times[0] - room, times[-1] + room), ylim=(low, high))
        place.xaxis_date()
        for line in lines:
            _line(place, line)
        for n in _pauses(times):
            if times[n] - times[n - 1] > MIN_PAUSE * (times[-1] - times[0]):
                place.axvspan(*times[n - 1 : n + 1], hatch="\\\\\\", label="no run", **HATCHED)
        _draw_marks(place.axhline, marks, near)
        _steps(place, steps)
        place.set_ylabel(unit + (" (not from 0)" if low > 0 else ""))
        place.grid(visible=True)

    return style.svg(title, COURSE, fill)


def _pauses(times: np.ndarray) -> np.ndarray:
    """The first runs after a time that is long compared with the typical one between two runs."""
    steps = np.diff(times)
    typical = np.median(steps[steps > 0]) if steps.any() else np.inf
    return np.flatnonzero(steps > PAUSE * typical) + 1


def _line(place: style.Axes, line: Line) -> None:
    """It is broken where nothing was measured for long."""
    rows = np.array(list(filter(len, (line.xs, line.values, line.lows, line.highs))))
    xs, values, *band = np.insert(rows, _pauses(rows[0]), np.nan, axis=1)
    if band:
        place.fill_between(xs, *band, color=PALE, linewidth=0, zorder=0.5)
    look: dict[str, Any] = {} if len(xs) <= POINTS else {"marker": ""}
    if line.quiet:
        look = {"marker": "", "linestyle": "-", "color": SOFT, "linewidth": 2.2, "alpha": 0.6}
    place.plot(xs, values, label=line.name, **look)


def _steps(place: style.Axes, steps: Sequence[tuple[datetime, str]]) -> None:
    """A line at each step, with a number that the legend explains."""
    for number, (at, text) in enumerate(steps, 1):
        day, label = at.timestamp() / style.DAY, f"{number}: {', '.join(text.splitlines())}"
        place.axvline(day, color=COLOURS[1], linestyle=(0, (5, 2)), label=label)
        across = place.get_xaxis_transform()
        place.text(day, 1.0, f"{number}", transform=across, ha="center", va="bottom", fontsize=8.4)


SMALL_BINS, STEP = 44, 5  # bars of a spread, and units from one to the next
WIDTH, FLOOR, HEIGHT = SMALL_BINS * STEP, 30.0, 34  # of a spread
TALLEST, LEAST = 24.0, 2.5  # bars: of the most nodes, and of a single one
HEIGHTS = {"ok": 8.0, "slow": 16.0, "bad": 24.0, "failed": 30.0}  # of a day


def spread(
    title: str, unit: str, values: Mapping[str, Sequence[float]], marks: Sequence[Mark]
) -> str:
    """How many units lie where, of one or more, with limit and baseline.

    values: of the units with a look, such as `bad`; those of the first look stand lowest. marks:
    limits (kind `bound`) and baselines; one that is too far away is not drawn.
    """
    every = [value for found in values.values() for value in found]
    low, high, near = axis_of(every, marks)
    edges = np.linspace(low, high, SMALL_BINS + 1)
    counts = {look: np.histogram(v, edges)[0] for look, v in values.items()}
    most = int(np.sum(list(counts.values()), axis=0).max())
    parts = [_bar(unit, counts, place, edges, most) for place in range(SMALL_BINS)]
    parts += [_small_line(mark, (mark.value - low) / (high - low)) for mark in near]
    return _strip(title, WIDTH, "strip", parts)


def _strip(title: str, width: int, looks: str, parts: Sequence[str]) -> str:
    axis = f'<path class="axis" d="M0 {FLOOR:g}.5H{width}"/>'
    box = f'viewBox="0 0 {width} {HEIGHT}" role="img" aria-label="{escape(title)}"'
    return f'<svg class="{looks}" preserveAspectRatio="none" {box}>{"".join([*parts, axis])}</svg>'


def _bar(
    unit: str, counts: Mapping[str, np.ndarray], place: int, edges: np.ndarray, most: int
) -> str:
    """The bars at one place, one upon the other, and what they count."""
    here = [(look, int(found[place])) for look, found in counts.items() if found[place]]
    if not here:
        return ""
    top, bars = FLOOR, ""
    for look, some in here:
        high = max(LEAST, TALLEST * some / most)
        top -= high
        box = f'x="{place * STEP}" y="{top:.1f}" width="4.8" height="{high:.1f}"'
        bars += f'<rect class="{look}" {box}/>'
    total = sum(some for _, some in here)
    ends = " to ".join(dict.fromkeys(f"{edges[place + n]:.6g}" for n in (0, 1)))
    return f"<g><title>{total} at {ends} {escape(unit)}</title>{bars}</g>"


def _small_line(mark: Mark, share: float) -> str:
    x = share * WIDTH
    return f'<path class="{mark.kind}" d="M{x:.1f} 0V32"><title>{escape(mark.text)}</title></path>'


def year(title: str, looks: Sequence[str]) -> str:
    """A bar a day, higher the worse it was; days of one look after another are one bar.

    looks: of each day one of HEIGHTS, or empty for a day without an attempt.
    """
    parts, place = [], 0
    for look, days in groupby(looks):
        width = len(list(days))
        if look:
            high = HEIGHTS[look]
            box = f'x="{place}" y="{FLOOR - high:g}" width="{width}" height="{high:g}"'
            parts.append(f'<rect class="{look}" {box}/>')
        place += width
    return _strip(title, len(looks), "strip year", parts)
