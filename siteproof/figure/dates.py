"""Dated steps of an acceptance, in the order in which they belong.

A line that turns back is out of order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from siteproof.figure import canvas
from siteproof.figure.canvas import COLOURS, GRID, SMALL, WIDTH
from siteproof.figure.labels import date_ticks, short, wide

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RIGHT, FOOT, TOP, ROW = WIDTH - 14, 22.0, 6.0, 20.0
LONGEST = 34
COLOUR = COLOURS[0]


@dataclass(frozen=True)
class Timeline:
    """steps: in the order in which they belong. days: the first and the last day of each.

    early: steps that came before one that they need.
    """

    title: str
    steps: Sequence[str]
    days: Mapping[str, tuple[date, date]]
    early: frozenset[str] = frozenset()


def draw(name: str, caption: str, data: Timeline) -> str:
    """The figure for a page, as siteproof.figure.canvas.svg. Raises ValueError without a date."""
    days = [day for ends in data.days.values() for day in ends]
    if not days:
        raise ValueError("a timeline without a date")
    left = 10 + max(wide(short(step, LONGEST)) for step in data.steps)
    high = ROW * len(data.steps)
    height = FOOT + high + TOP

    def fill(made: Figure) -> Sequence[canvas.Placed]:
        place = made.add_axes((left / WIDTH, FOOT / height, (RIGHT - left) / WIDTH, high / height))
        _steps(place, data)
        place.set_ylim(len(data.steps) - 0.5, -0.5)
        place.set_yticks(range(len(data.steps)), [short(step, LONGEST) for step in data.steps])
        ticks = date_ticks(_moment(min(days)), _moment(max(days)))
        place.set_xticks([at.timestamp() for at, _ in ticks], [text for _, text in ticks])
        place.tick_params(labelsize=SMALL)
        place.tick_params(axis="y", length=0)
        place.grid(visible=True, color=GRID, linewidth=0.5)
        return ()

    return canvas.svg(name, data.title, caption, height, fill)


def _moment(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def _steps(place: Axes, data: Timeline) -> None:
    """A line through the first days, a bar over the days of each step, and the early ones."""
    rows = [y for y, step in enumerate(data.steps) if step in data.days]
    spans = [[_moment(day).timestamp() for day in data.days[data.steps[y]]] for y in rows]
    firsts = [first for first, _ in spans]
    place.plot(firsts, rows, color=COLOUR, linewidth=1, marker="o", markersize=6)
    for y, span in zip(rows, spans, strict=True):
        place.plot(span, [y, y], color=COLOUR, linewidth=4, solid_capstyle="butt")
        if data.steps[y] in data.early:
            _early(place, span[0], y)


def _early(place: Axes, x: float, y: int) -> None:
    """A hollow mark, with a word."""
    place.plot(
        [x],
        [y],
        marker="o",
        markersize=7,
        color=COLOUR,
        markerfacecolor="white",
        markeredgewidth=1.5,
        linestyle="none",
    )
    place.annotate(
        "out of order",
        (x, y),
        (-7, 0),
        va="center",
        ha="right",
        textcoords="offset points",
        fontsize=SMALL,
        color=COLOUR,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.3},
    )
