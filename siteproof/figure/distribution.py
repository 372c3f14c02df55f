"""All values of a fleet at once: how many nodes are where, with bounds, baselines and median."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

from siteproof.figure import canvas, marks
from siteproof.figure.canvas import COLOURS, GRID, SMALL, SOFT, WIDTH
from siteproof.figure.labels import nice_ticks, number, numbers, short
from siteproof.figure.marks import STYLES, Label, Mark

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BINS = 46
MAX_DOTS = 9  # nodes of one bin that are still dots
LEFT, RIGHT = 40.0, WIDTH - 10  # units: the axes
FOOT, HIGH = 40.0, 110.0
MAX_LANES = 7
MAX_NAMES = 120  # letters of a set of nodes
NODE = COLOURS[1]  # of a node that is named
DIRECTION = {"higher": " · higher is better →", "lower": " · ← lower is better", "neither": ""}


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


def draw(name: str, caption: str, data: Distribution) -> str:
    """The figure for a page, as siteproof.figure.canvas.svg."""
    values = {node: v for node, v in data.values.items() if isfinite(v)}
    low, high, near = marks.axis_of(list(values.values()), data.marks)
    wanted = [_of_mark(mark, near, low, high) for mark in data.marks]
    for node, text in (data.named or {}).items():
        if node in values:
            wanted.append(Label(values[node], text, NODE, width=0.7))
    labels = marks.in_lanes(wanted, (low, high), (LEFT, RIGHT), MAX_LANES)
    height = FOOT + HIGH + marks.height_of(labels)

    def fill(made: Figure) -> Sequence[canvas.Hover]:
        box = (LEFT / WIDTH, FOOT / height, (RIGHT - LEFT) / WIDTH, HIGH / height)
        place = made.add_axes(box)
        _stacks(place, list(values.values()), low, high)
        _axes(place, data, low, high)
        for mark in near:
            _bad_side(place, mark, low, high)
        for label in labels:
            marks.draw_label(place, label, HIGH)
            if label.colour == NODE:
                place.plot([label.x], [0], marker="^", markersize=6, color=NODE, clip_on=False)
        if not values:
            place.text(0.5, 0.5, "no value", transform=place.transAxes, ha="center", color=SOFT)
        return _hovers(values, data.unit, low, high, box)

    return canvas.svg(name, data.title, caption, height, fill)


def _of_mark(mark: Mark, near: Sequence[Mark], low: float, high: float) -> Label:
    """The label of a mark; one outside the axis stands at its end, with an arrow."""
    line, width = STYLES[mark.kind]
    if mark in near:
        return Label(mark.value, mark.text, line=line, width=width)
    if mark.value < low:
        return Label(low, f"◂ {mark.text}", width=0)
    return Label(high, f"{mark.text} ▸", width=0)


def _bad_side(place: Axes, mark: Mark, low: float, high: float) -> None:
    """Hatch what a bound does not allow."""
    if mark.kind == "bound" and mark.side:
        ends = (low, mark.value) if mark.side == "at_least" else (mark.value, high)
        place.axvspan(*ends, facecolor="none", edgecolor=GRID, hatch="///", zorder=0, linewidth=0)


def _bin(value: float, low: float, high: float) -> int:
    return min(int((value - low) / (high - low) * BINS), BINS - 1)


def _hovers(
    values: Mapping[str, float], unit: str, low: float, high: float, box: Sequence[float]
) -> list[canvas.Hover]:
    """The nodes and the values of each bin."""
    bins: dict[int, list[str]] = {}
    for node, value in values.items():
        bins.setdefault(_bin(value, low, high), []).append(node)
    left, bottom, wide, tall = box
    found = []
    for index, nodes in sorted(bins.items()):
        own = [values[node] for node in nodes]
        ends = dict.fromkeys(number(value) for value in (min(own), max(own)))
        names = short(", ".join(nodes), MAX_NAMES)
        text = f"{names}: {' to '.join(ends)} {unit}"
        if len(nodes) > 1:
            text = f"{len(nodes)} nodes, {text}"
        part = (left + wide * index / BINS, bottom, wide / BINS, tall)
        found.append(canvas.Hover(part, text))
    return found


def _stacks(place: Axes, values: Sequence[float], low: float, high: float) -> None:
    """A dot a node where there are few, else a bar for those in one bin."""
    width = (high - low) / BINS
    counts = Counter(_bin(value, low, high) for value in values)
    most = max(counts.values(), default=1)
    if most <= MAX_DOTS:
        _dots(place, counts, low, width)
        place.set_ylim(0, max(5, most + 0.5))
    else:
        centres = [low + (index + 0.5) * width for index in counts]
        heights = [max(count, most / HIGH) for count in counts.values()]  # one of hundreds shows
        place.bar(centres, heights, width=0.9 * width, color=COLOURS[0])
        place.set_ylim(0, most * 1.05)
    ticks = [t for t in nice_ticks(0, place.get_ylim()[1], 4) if t == int(t)]
    place.set_yticks(ticks, [f"{t:.0f}" for t in ticks])


def _dots(place: Axes, counts: Mapping[int, int], low: float, width: float) -> None:
    xs, ys = [], []
    for index, count in sorted(counts.items()):
        xs += [low + (index + 0.5) * width] * count
        ys += [n + 0.5 for n in range(count)]
    place.plot(
        xs,
        ys,
        linestyle="none",
        marker="o",
        markersize=6,
        color=COLOURS[0],
        markeredgecolor="white",
        markeredgewidth=0.5,
    )


def _axes(place: Axes, data: Distribution, low: float, high: float) -> None:
    place.set_xlim(low, high)
    ticks = nice_ticks(low, high)
    place.set_xticks(ticks, numbers(ticks))
    place.set_xlabel(data.unit + DIRECTION.get(data.better, ""))
    place.set_ylabel("nodes")
    place.tick_params(labelsize=SMALL)
    place.set_facecolor("none")
