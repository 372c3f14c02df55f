"""All values of a fleet at once: how many nodes are where, with bounds, baselines and median."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite

import numpy as np

from siteproof.report.figure import style
from siteproof.report.figure.marks import Mark, axis_of, draw_marks
from siteproof.report.figure.style import COLOURS, HATCHED, MARKERS, SOFT

BINS = 46
HEIGHT = 160.0
DIRECTION = {"higher": ", higher is better →", "lower": ", ← lower is better"}


def draw(
    title: str,
    unit: str,
    values: Mapping[str, float],
    better: str,
    marks: Sequence[Mark],
    named: Mapping[str, str],
) -> str:
    """The figure for a page. values: of each node. better: higher, lower or neither.

    named: some nodes and what to say of them, the worst first.
    """
    known = [value for value in values.values() if isfinite(value)]
    low, high, near = axis_of(known, marks)

    def fill(made: style.Figure) -> None:
        place = made.add_subplot(xlim=(low, high), ylabel="nodes")
        place.set_xlabel(unit + DIRECTION.get(better, ""))
        counts, edges = np.histogram(known, BINS, (low, high))
        most, some = max(5.0, 1.05 * counts.max()), counts > 0
        bars = np.maximum(counts[some], most / HEIGHT)  # one of hundreds shows
        place.vlines((edges[:-1] + edges[1:])[some] / 2, 0, bars, COLOURS[0], linewidth=5.5)
        place.set_ylim(0, most)
        place.locator_params(axis="y", integer=True)
        draw_marks(place.axvline, marks, near)
        for mark in near:
            _bad_side(place, mark, low, high)
        for (node, text), marker in zip(named.items(), MARKERS, strict=False):
            at = values[node]
            place.plot(at, 0, marker, color=COLOURS[1], ms=6, clip_on=False, label=text)
        if not known:
            place.text(0.5, 0.5, "no value", transform=place.transAxes, ha="center", color=SOFT)

    return style.svg(title, HEIGHT, fill)


def _bad_side(place: style.Axes, mark: Mark, low: float, high: float) -> None:
    """Hatch what a bound does not allow."""
    if mark.kind == "bound" and mark.side:
        outer = low if mark.side == "at_least" else high
        place.axvspan(outer, mark.value, hatch="///", zorder=0, **HATCHED)
