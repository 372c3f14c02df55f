"""One quantity over several links: all values, median and mean, as shares of the first link."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, median
from typing import TYPE_CHECKING, Any

from siteproof.figure import canvas
from siteproof.figure.canvas import COLOURS, GRID, SMALL, SOFT, WIDTH
from siteproof.figure.labels import nice_ticks, short, wide

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RIGHT, FOOT, TOP, ROW = WIDTH - 20, 34.0, 24.0, 15.0
LONGEST = 30
ROOM = 1.5  # times the largest share: to the right of it is room for a text
KEY = "○ value · | median · × mean · — range"


@dataclass(frozen=True)
class Row:
    """One link. shares: every value as a share of the first link's median. text: its median."""

    name: str
    shares: Sequence[float]
    text: str


@dataclass(frozen=True)
class Ranges:
    """groups: each quantity with its links, the first of them with a median share of 1."""

    title: str
    groups: Sequence[tuple[str, Sequence[Row]]]


def draw(name: str, caption: str, data: Ranges) -> str:
    """The figure for a page, as siteproof.figure.canvas.svg."""
    rows = [row for _, links in data.groups for row in links]
    left = 10 + max((wide(short(row.name, LONGEST)) for row in rows), default=40.0)
    high = ROW * (len(rows) + max(1, len(data.groups)))  # a line of its own for each title
    height = FOOT + high + TOP
    end = ROOM * max((share for row in rows for share in row.shares), default=1.0)

    def fill(made: Figure) -> Sequence[canvas.Placed]:
        place = made.add_axes((left / WIDTH, FOOT / height, (RIGHT - left) / WIDTH, high / height))
        _groups(place, data.groups)
        place.set_xlim(0, end)
        place.set_ylim(high / ROW - 0.5, -0.5)
        place.axvline(1.0, color="#000000", linewidth=0.8, linestyle=":", zorder=0)
        ticks = [tick for tick in nice_ticks(0, end, 6) if tick <= end]
        place.set_xticks(ticks, [f"{tick:.0%}" for tick in ticks])
        place.set_xlabel("share of the first link's median")
        place.tick_params(labelsize=SMALL)
        place.tick_params(axis="y", length=0)
        place.grid(visible=True, axis="x", color=GRID, linewidth=0.5)
        made.text(left / WIDTH, 1 - 12 / height, KEY, fontsize=SMALL)
        return ()

    return canvas.svg(name, data.title, caption, height, fill)


def _groups(place: Axes, groups: Sequence[tuple[str, Sequence[Row]]]) -> None:
    """A title, then a line for each link; the names of the links stand at the axis."""
    names: dict[int, str] = {}
    y = 0
    for title, rows in groups:
        _text(place, 0, y, title)
        for row in rows:
            y += 1
            names[y] = short(row.name, LONGEST)
            _row(place, y, row)
        y += 1
    place.set_yticks(list(names), list(names.values()))


def _row(place: Axes, y: int, row: Row) -> None:
    values = row.shares
    place.plot([min(values), max(values)], [y, y], color=SOFT, linewidth=1.2)
    ring = {"markerfacecolor": "none", "markeredgecolor": COLOURS[0], "markersize": 5}
    _mark(place, values, y, marker="o", **ring)
    if len(values) > 1:
        _mark(place, [mean(values)], y, marker="x", markersize=6, color=COLOURS[1])
    _mark(place, [median(values)], y, marker="|", markersize=12, color="#000000")
    _text(place, max(values), y, row.text)


def _mark(place: Axes, values: Sequence[float], y: int, **style: Any) -> None:
    place.plot(values, [y] * len(values), linestyle="none", markeredgewidth=1.5, **style)


def _text(place: Axes, x: float, y: float, text: str) -> None:
    place.annotate(text, (x, y), (5, 0), textcoords="offset points", va="center", fontsize=SMALL)
