"""Bounds, baselines and medians in a plot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

EXACT = 1e-12  # a value that was converted to another unit is the same value
DATA_SHARE = 0.12  # of the axis that the values must keep: a mark farther off is not drawn
MARGIN = 0.05  # of the axis, at both ends
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


def draw_marks(line: Callable[..., object], marks: Sequence[Mark], near: Sequence[Mark]) -> None:
    """Lines across a plot, each with its text in the legend. line: axhline or axvline."""
    for mark in marks:
        style, width = STYLES[mark.kind]
        place, text = mark.value, mark.text
        if mark not in near:
            place, text = float("nan"), f"{text}, outside the figure"
        line(place, label=text, color="#000000", linestyle=style, linewidth=width)
