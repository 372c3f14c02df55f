"""Dated steps of an acceptance, in the order in which they belong.

A line that turns back is out of order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from siteproof.figure import canvas
from siteproof.figure.canvas import COLOURS, DASHES, GRID, MARKERS, SMALL, WIDTH
from siteproof.figure.labels import date_ticks, short, wide

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RIGHT, FOOT, TOP, ROW = WIDTH - 14, 22.0, 20.0, 20.0
LONGEST = 34


@dataclass(frozen=True)
class Track:
    """Whose steps: the first and the last day of each. early: steps that came before their turn."""

    name: str
    days: Mapping[str, tuple[date, date]]
    early: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Timeline:
    """steps: in the order in which they belong."""

    title: str
    steps: Sequence[str]
    tracks: Sequence[Track]


def draw(name: str, says: str, data: Timeline) -> str:
    """The figure for a page, as siteproof.figure.canvas.svg. Raises ValueError without a date."""
    days = [day for track in data.tracks for ends in track.days.values() for day in ends]
    if not days:
        raise ValueError("a timeline without a date")
    left = 10 + max(wide(short(step, LONGEST)) for step in data.steps)
    high = ROW * len(data.steps)
    height = FOOT + high + TOP
    first, last = _moment(min(days)), _moment(max(days))

    def fill(made: Figure) -> Sequence[canvas.Placed]:
        place = made.add_axes((left / WIDTH, FOOT / height, (RIGHT - left) / WIDTH, high / height))
        for index, track in enumerate(data.tracks):
            _track(place, data.steps, track, index, len(data.tracks))
        place.set_ylim(len(data.steps) - 0.5, -0.5)
        place.set_yticks(range(len(data.steps)), [short(step, LONGEST) for step in data.steps])
        ticks = date_ticks(first, last)
        place.set_xticks([at.timestamp() for at, _ in ticks], [text for _, text in ticks])
        place.tick_params(labelsize=SMALL)
        place.tick_params(axis="y", length=0)
        place.grid(visible=True, color=GRID, linewidth=0.5)
        place.legend(
            loc="lower left",
            bbox_to_anchor=(0, 1.0),
            ncols=4,
            frameon=False,
            fontsize=SMALL,
            borderaxespad=0.2,
        )
        return ()

    return canvas.svg(name, data.title, says, height, fill)


def _moment(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def _track(place: Axes, steps: Sequence[str], track: Track, index: int, count: int) -> None:
    """A line through the days of one; the mark of an early step is hollow and has a word."""
    shift = (index - (count - 1) / 2) * 0.22
    known = [(n, *track.days[step]) for n, step in enumerate(steps) if step in track.days]
    colour, mark = COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)]
    place.plot(
        [_moment(a).timestamp() for _, a, _ in known],
        [n + shift for n, _, _ in known],
        color=colour,
        linewidth=1,
        linestyle=DASHES[index % len(DASHES)],
        label=track.name,
        marker=mark,
        markersize=6,
    )
    for n, a, b in known:
        xs = [_moment(a).timestamp(), _moment(b).timestamp()]
        if b > a:
            place.plot(xs, [n + shift] * 2, color=colour, linewidth=4, solid_capstyle="butt")
        if steps[n] in track.early:
            place.plot(
                xs[:1],
                [n + shift],
                marker=mark,
                markersize=7,
                color=colour,
                markerfacecolor="white",
                markeredgewidth=1.5,
                linestyle="none",
            )
            place.annotate(
                "out of order",
                (xs[0], n + shift),
                (-7, 0),
                va="center",
                ha="right",
                textcoords="offset points",
                fontsize=SMALL,
                color=colour,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.3},
            )
