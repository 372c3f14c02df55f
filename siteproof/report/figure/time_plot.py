"""Values over time with steps, typical range, bounds, baselines, and pauses without a run."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy as np

from siteproof.report.figure import style
from siteproof.report.figure.line_plot import Line
from siteproof.report.figure.marks import Mark, axis_of, draw_marks
from siteproof.report.figure.style import COLOURS, HATCHED, PALE, SOFT

HEIGHT = 170.0
POINTS = 80  # of which each is seen as one
PAUSE = 4  # times the median time between two runs: a gap
MIN_PAUSE = 0.03  # of the axis


def draw(
    title: str,
    unit: str,
    lines: Sequence[Line],
    steps: Sequence[tuple[datetime, str]] = (),
    marks: Sequence[Mark] = (),
) -> str:
    """The figure for a page, of one run or more.

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
        draw_marks(place.axhline, marks, near)
        _steps(place, steps)
        place.set_ylabel(unit + (" (not from 0)" if low > 0 else ""))
        place.grid(visible=True)

    return style.svg(title, HEIGHT, fill)


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
