"""Rows of time: when each subject was up, down, down as planned, or not measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
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
HOVERED = 3.0  # units: the least width of what explains an outage
MAX_OUTAGES = 60  # of a row that a browser explains, the longest
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
    ticks = date_ticks(data.first, data.last)
    left = max(left, 2 + wide(ticks[0][1]) / 2)  # the first day stands below the left end
    high = ROW * len(data.rows)
    height = FOOT + high + TOP

    box = (left / WIDTH, FOOT / height, (RIGHT - left) / WIDTH, high / height)

    def fill(made: Figure) -> Sequence[canvas.Hover]:
        place = made.add_axes(box)
        for y, states in enumerate(data.rows.values()):
            _row(place, y, states)
        place.set_xlim(data.first.timestamp(), data.last.timestamp())
        place.set_ylim(len(data.rows) - 0.5, -0.5)
        place.set_yticks(range(len(data.rows)), [short(row, LONGEST) for row in data.rows])
        place.set_xticks([at.timestamp() for at, _ in ticks], [text for _, text in ticks])
        place.tick_params(labelsize=SMALL, color=SOFT)
        place.tick_params(axis="y", length=0)
        place.grid(visible=True, axis="x", color=GRID, linewidth=0.5)
        _legend(place, high)
        return list(_hovers(data, box))

    return canvas.svg(name, data.title, caption, height, fill)


def _hovers(data: Strips, box: tuple[float, float, float, float]) -> Iterator[canvas.Hover]:
    """How long each row was in which state, and over it when it was down."""
    left, bottom, wide, tall = box
    begin, whole = data.first.timestamp(), (data.last - data.first).total_seconds()
    tall /= len(data.rows)
    for y, (name, states) in enumerate(data.rows.items()):
        lower = bottom + tall * (len(data.rows) - 1 - y)
        lengths = {state: sum(b - a for a, b in spans) for state, spans in states.items()}
        texts = [f"{state} {length / whole:.2%}" for state, length in lengths.items() if length]
        text = f"{name}: {', '.join(texts)}".replace("%", " %")
        yield canvas.Hover((left, lower, wide, tall), text)
        for start, end, text in _outages(states):
            width = max((end - start) / whole * wide, HOVERED / WIDTH)
            place = min(left + (start - begin) / whole * wide, left + wide - width)
            yield canvas.Hover((place, lower, width, tall), f"{name}: {text}")


def _outages(states: Mapping[str, Times]) -> list[tuple[float, float, str]]:
    """Begin and end of the longest outages, and both in words; a short one lies over a long one."""
    spans = [(b - a, a, b, state) for state in (PLANNED, DOWN) for a, b in states.get(state, ())]
    longest = sorted(spans, reverse=True)[:MAX_OUTAGES]
    return [(a, b, f"{state} from {_time(a)} to {_time(b)} UTC") for _, a, b, state in longest]


def _time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}"


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
