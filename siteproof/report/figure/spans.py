"""Rows of time: when each subject was up or down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from siteproof.report.figure import style
from siteproof.report.figure.style import COLOURS, DAY, HATCHED, PALE, short

FOOT, ROW = 30.0, 16.0  # units
BAR = 0.7  # of a row's height
UP, DOWN, PLANNED, UNKNOWN = "up", "down", "down, planned", "not measured"
# Each state by its colour and its hatch, so that print without colours shows it, too. The line
# around what must be seen is wider than a short time.
_STYLES: dict[str, dict[str, Any]] = {
    UP: {"facecolor": PALE},
    UNKNOWN: HATCHED | {"hatch": "\\\\\\"},
    PLANNED: {"facecolor": COLOURS[4], "hatch": "////", "edgecolor": "white", "linewidth": 0},
    DOWN: {"facecolor": COLOURS[1], "edgecolor": COLOURS[1], "linewidth": 0.7},
}

Times = Sequence[tuple[float, float]]


def draw(
    title: str, rows: Mapping[str, Mapping[str, Times]], period: tuple[datetime, datetime]
) -> str:
    """The figure for a page. Raises ValueError without a time in any row.

    rows: by the name of a row, the times in each state, in seconds since 1970.
    """
    if not any(times for states in rows.values() for times in states.values()):
        raise ValueError("no row, or no time")

    def fill(made: style.Figure) -> None:
        place = made.add_subplot(ylim=(len(rows) - 0.5, -0.5))
        for y, states in enumerate(rows.values()):
            _row(place, y, states)
        place.xaxis_date()
        place.set_xlim(*style.days(period))
        place.set_yticks(range(len(rows)), [short(name) for name in rows])
        place.tick_params(axis="y", length=0)
        place.grid(visible=True, axis="x")

    return style.svg(title, FOOT + ROW * len(rows), fill)


def _row(place: style.Axes, y: int, states: Mapping[str, Times]) -> None:
    for state, look in _STYLES.items():  # an outage last, so that nothing hides it
        if times := states.get(state):
            bars = [(begin / DAY, (end - begin) / DAY) for begin, end in times]
            place.broken_barh(bars, (y - BAR / 2, BAR), label=state, **look)
