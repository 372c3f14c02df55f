"""Bounds, baselines and medians in a plot, and labels in lanes above it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from siteproof.figure.canvas import SMALL, WIDTH
from siteproof.figure.labels import lanes, letters, short, side_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EXACT = 1e-12  # a value that was converted to another unit is the same value
DATA_SHARE = 0.12  # of the axis that the values must keep: a mark farther off is not drawn
MARGIN = 0.05  # of the axis, at both ends
LANE = 11.0  # units: from one lane to the next
STICKS_OUT = 40.0  # units by which a label may begin to the left of the axis
STYLES = {"bound": ("-", 1.8), "baseline": ("--", 1.4), "median": (":", 1.6)}


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


@dataclass(frozen=True)
class Label:
    """A text above a plot, with a line from its place on the axis. width 0: without the line.

    text: one line; several, where it is to be broken if it has no room.

    x: in the unit of the axis. side: which end of the text is at that place.
    """

    x: float
    text: str
    colour: str = "#000000"
    line: object = "-"
    width: float = 1.0
    side: str = "left"
    lane: int = 0


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


def in_lanes(
    wanted: Sequence[Label], ends: tuple[float, float], box: tuple[float, float], most: int
) -> list[Label]:
    """Those that have room, each in a lane where it covers no other; the first have priority.

    ends: of the axis. box: where these are in the figure, in units. most: lanes.
    """
    left, _ = box
    placed, spans = [], []
    for label, x, text in _lines(wanted, ends, box):
        side, span = side_of(x, text, left - STICKS_OUT, WIDTH)
        placed.append(replace(label, text=text, side=side))
        spans.append(span)
    return [
        replace(label, lane=lane)
        for label, lane in zip(placed, lanes(spans, most), strict=True)
        if lane is not None
    ]


def _lines(
    wanted: Sequence[Label], ends: tuple[float, float], box: tuple[float, float]
) -> Iterator[tuple[Label, float, str]]:
    """The lines of each label with their place: one if all of it has room, else each by itself."""
    (low, high), (left, right) = ends, box
    for label in wanted:
        x = left + (label.x - low) / (high - low) * (right - left)
        most = letters(max(WIDTH - x, x - (left - STICKS_OUT)) - 4)
        whole = ", ".join(label.text.splitlines())
        lines = [whole] if len(whole) <= most else label.text.splitlines()
        for number, line in enumerate(lines):
            yield replace(label, width=0.0) if number else label, x, short(line, most)


def height_of(found: Sequence[Label]) -> float:
    """Units above a plot that its labels take."""
    return 8 + LANE * (1 + max((label.lane for label in found), default=-1))


def draw_label(place: Axes, label: Label, height: float) -> None:
    """The line up from the axis, and the text above the plot, which is so many units high."""
    up = height + 3 + LANE * label.lane
    if label.width:
        place.plot(
            [label.x, label.x],
            [0, (up + 8) / height],
            transform=place.get_xaxis_transform(),
            clip_on=False,
            color=label.colour,
            linewidth=label.width,
            linestyle=label.line,
        )
    place.annotate(
        label.text,
        (label.x, 0),
        (3 if label.side == "left" else -3, up),
        fontsize=SMALL,
        xycoords=place.get_xaxis_transform(),
        textcoords="offset points",
        ha=label.side,
        va="bottom",
        annotation_clip=False,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
    )
