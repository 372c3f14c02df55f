"""All values of a fleet at once: how many nodes are where, beside what is promised and usual."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from siteproof.figure import canvas
from siteproof.figure.canvas import COLOURS, GRID, SMALL, SOFT, WIDTH
from siteproof.figure.labels import beside, lanes, nice_ticks, numbers, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BINS = 46
DOTS = 9  # nodes of one bin that are still dots
LEFT, RIGHT = 40.0, WIDTH - 10  # units: the axes
FOOT, HIGH, LANE = 40.0, 110.0, 11.0
MOST_LANES = 7
DATA_SHARE = 0.12  # of the axis that the data must keep, or a far bound is told and not drawn
NAMED = COLOURS[1]
STYLES = {"bound": ("-", 1.8), "baseline": ("--", 1.4), "median": (":", 1.6)}
DIRECTION = {"higher": "higher is better →", "lower": "← lower is better", "neither": ""}


EXACT = 1e-12  # a value in another unit is the same value


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
class Distribution:
    """A value a node. named: some nodes and what to say of them, the worst first.

    better: higher, lower or neither.
    """

    title: str
    unit: str
    values: Mapping[str, float]
    better: str = "higher"
    marks: Sequence[Mark] = ()
    named: Mapping[str, str] | None = None


def draw(name: str, says: str, data: Distribution) -> str:
    """The figure for a page, as siteproof.figure.canvas.svg."""
    values = {node: v for node, v in data.values.items() if isfinite(v)}
    low, high, near = _range(data, list(values.values()))
    told = _labels(data, values, near, low, high)
    top = LANE * (1 + max((lane for *_, lane in told), default=-1)) + 8
    height = FOOT + HIGH + top

    def fill(made: Figure) -> Sequence[canvas.Placed]:
        place = made.add_axes((LEFT / WIDTH, FOOT / height, (RIGHT - LEFT) / WIDTH, HIGH / height))
        _stacks(place, list(values.values()), low, high)
        _axes(place, data, low, high)
        for mark in near:
            if mark.side and mark.kind == "bound":
                ends = (low, mark.value) if mark.side == "at_least" else (mark.value, high)
                place.axvspan(
                    *ends, facecolor="none", edgecolor=GRID, hatch="///", zorder=0, linewidth=0
                )
        for x, text, side, style, lane in told:
            _label(place, x, text, side, style, lane)
        if not values:
            place.text(0.5, 0.5, "no value", transform=place.transAxes, ha="center", color=SOFT)
        return ()

    return canvas.svg(name, data.title, says, height, fill)


def _range(data: Distribution, values: Sequence[float]) -> tuple[float, float, list[Mark]]:
    """The ends of the axis, and the marks on it: none so far off that the data would shrink."""
    points = list(values) or [m.value for m in data.marks] or [0.0]
    low, high = min(points), max(points)
    least = (high - low) or abs(high) * 0.02 or 1.0
    near = []
    for mark in sorted(data.marks, key=lambda m: abs(m.value - median(points))):
        a, b = min(low, mark.value), max(high, mark.value)
        if least >= DATA_SHARE * (b - a):
            low, high = a, b
            near.append(mark)
    room = 0.04 * ((high - low) or 2 * least)
    return low - room, high + room, near


Told = tuple[float, str, str, tuple[object, float, str], int]


def _labels(
    data: Distribution, values: Mapping[str, float], near: Sequence[Mark], low: float, high: float
) -> list[Told]:
    """Each label with its place, side, line and lane."""
    wanted: list[tuple[float, str, tuple[object, float, str]]] = []
    for mark in data.marks:
        line, width = STYLES[mark.kind]
        shown, text = mark.value, mark.text
        if mark not in near:
            shown, text = (low, f"◂ {text}") if mark.value < low else (high, f"{text} ▸")
            width = 0.0
        wanted.append((shown, text, (line, width, "#000000")))
    for node, text in (data.named or {}).items():
        if node in values:
            wanted.append((values[node], short(text, 34), ("-", 0.7, NAMED)))
    spans, sides = [], []
    for x, text, _ in wanted:
        at = LEFT + (x - low) / (high - low) * (RIGHT - LEFT)
        side, span = beside(at, text, LEFT - 30, WIDTH)
        sides.append(side)
        spans.append(span)
    rows = lanes(spans, MOST_LANES)
    return [
        (x, text, side, style, lane)
        for (x, text, style), side, lane in zip(wanted, sides, rows, strict=True)
        if lane is not None
    ]


def _stacks(place: Axes, values: Sequence[float], low: float, high: float) -> None:
    """A dot a node where there are few, else a bar for those in one bin."""
    width = (high - low) / BINS
    counts: dict[int, int] = {}
    for value in values:
        index = min(int((value - low) / width), BINS - 1)
        counts[index] = counts.get(index, 0) + 1
    most = max(counts.values(), default=1)
    centres = {index: low + (index + 0.5) * width for index in counts}
    if most <= DOTS:
        dots = [(centres[i], n + 0.5) for i, count in sorted(counts.items()) for n in range(count)]
        place.plot(
            [x for x, _ in dots],
            [y for _, y in dots],
            linestyle="none",
            marker="o",
            markersize=6,
            color=COLOURS[0],
            markeredgecolor="white",
            markeredgewidth=0.5,
        )
        place.set_ylim(0, max(5, most + 0.5))
    else:
        order = sorted(counts)
        heights = [max(counts[i], most / HIGH) for i in order]  # one of hundreds is seen, too
        place.bar([centres[i] for i in order], heights, width=0.9 * width, color=COLOURS[0])
        place.set_ylim(0, most * 1.05)
    ticks = [t for t in nice_ticks(0, place.get_ylim()[1], 4) if t == int(t)]
    place.set_yticks(ticks, [f"{t:.0f}" for t in ticks])


def _axes(place: Axes, data: Distribution, low: float, high: float) -> None:
    place.set_xlim(low, high)
    ticks = nice_ticks(low, high)
    place.set_xticks(ticks, numbers(ticks))
    told = " · ".join(filter(None, (data.unit, DIRECTION.get(data.better, ""))))
    place.set_xlabel(told)
    place.set_ylabel("nodes")
    place.tick_params(labelsize=SMALL)
    place.set_facecolor("none")


def _label(
    place: Axes, x: float, text: str, side: str, style: tuple[object, float, str], lane: int
) -> None:
    """A line from the axis up to a label above the picture; none to what lies beside it."""
    line, width, colour = style
    up = HIGH + 3 + LANE * lane
    if width:
        place.plot(
            [x, x],
            [0, (up + 8) / HIGH],
            transform=place.get_xaxis_transform(),
            clip_on=False,
            color=colour,
            linewidth=width,
            linestyle=line,
        )
    if colour == NAMED:
        place.plot([x], [0], marker="^", markersize=6, color=colour, clip_on=False)
    place.annotate(
        text,
        (x, 0),
        (3 if side == "left" else -3, up),
        fontsize=SMALL,
        xycoords=place.get_xaxis_transform(),
        textcoords="offset points",
        ha=side,
        va="bottom",
        annotation_clip=False,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
    )
