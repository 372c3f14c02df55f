"""Rows of time: when each subject was up, down, down as planned, or not measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from siteproof.figure import canvas
from siteproof.figure.canvas import COLOURS, GRID, PALE, SMALL, SOFT, WIDTH
from siteproof.figure.labels import date_ticks, short, wide

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RIGHT, FOOT, TOP, ROW = WIDTH - 14, 46.0, 6.0, 16.0
LONGEST = 24  # letters of a row's name
BAR = 0.7  # of a row's height
MIN_WIDTH = 0.7  # units: a short outage is a line that can be seen
UP, DOWN, PLANNED, UNKNOWN = "up", "down", "down, planned", "not measured"
# Each state by its colour and its hatch, so that print without colours shows it, too.
_STYLES: dict[str, dict[str, Any]] = {
    UP: {"facecolor": PALE},
    UNKNOWN: {"facecolor": "white", "edgecolor": "#bbbbbb", "hatch": "....", "linewidth": 0},
    PLANNED: {"facecolor": COLOURS[4], "hatch": "////", "edgecolor": "white", "linewidth": 0},
    DOWN: {"facecolor": COLOURS[1], "edgecolor": COLOURS[1], "linewidth": MIN_WIDTH},
}

Times = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Strips:
    """rows: by the name of a row, the times in each state, in seconds since 1970.

    first, last: the period, with their time zone.
    """

    title: str
    rows: Mapping[str, Mapping[str, Times]]
    first: datetime
    last: datetime


def draw(name: str, caption: str, data: Strips) -> str:
    """The figure for a page, as siteproof.figure.canvas.svg. Raises ValueError without a row."""
    if not data.rows or data.first >= data.last:
        raise ValueError("no row, or no time")
    left = 10 + max(wide(short(row, LONGEST)) for row in data.rows)
    high = ROW * len(data.rows)
    height = FOOT + high + TOP

    def fill(made: Figure) -> Sequence[canvas.Placed]:
        place = made.add_axes((left / WIDTH, FOOT / height, (RIGHT - left) / WIDTH, high / height))
        for y, states in enumerate(data.rows.values()):
            _row(place, y, states)
        place.set_xlim(data.first.timestamp(), data.last.timestamp())
        place.set_ylim(len(data.rows) - 0.5, -0.5)
        place.set_yticks(range(len(data.rows)), [short(row, LONGEST) for row in data.rows])
        ticks = date_ticks(data.first, data.last)
        place.set_xticks([at.timestamp() for at, _ in ticks], [text for _, text in ticks])
        place.tick_params(labelsize=SMALL, color=SOFT)
        place.tick_params(axis="y", length=0)
        place.grid(visible=True, axis="x", color=GRID, linewidth=0.5)
        _legend(place, high)
        return ()

    return canvas.svg(name, data.title, caption, height, fill)


def _row(place: Axes, y: int, states: Mapping[str, Times]) -> None:
    for state, style in _STYLES.items():  # an outage last, so that nothing hides it
        if spans := states.get(state):
            bars = [(begin, end - begin) for begin, end in spans]
            place.broken_barh(bars, (y - BAR / 2, BAR), **style)


def _legend(place: Axes, high: float) -> None:
    for state, style in _STYLES.items():
        place.bar(0, 0, label=state, **style)
    place.legend(
        loc="upper left",
        bbox_to_anchor=(-0.02, -20 / high),
        frameon=False,
        fontsize=SMALL,
        ncols=len(_STYLES),
        columnspacing=1.2,
        handlelength=1.4,
    )
