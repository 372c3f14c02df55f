"""Bars: a group a scenario, a bar a trial."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from siteproof.report.figure import style
from siteproof.report.figure.style import COLOURS, short

HEIGHT = 200.0
GAP = 1.0  # bars between two groups


def draw(title: str, label: str, groups: Sequence[tuple[str, Sequence[float]]]) -> str:
    """The figure for a page. groups: name and values of each; their median is a line."""

    def fill(made: style.Figure) -> None:
        place = made.add_subplot(ylabel=label)
        at, middles = 0.0, []
        for number, (_, values) in enumerate(groups):
            ends = at - 0.5, at + len(values) - 0.5
            places = [at + n for n in range(len(values))]
            place.bar(places, values, color=COLOURS[number % len(COLOURS)], width=0.9)
            place.hlines(median(values), *ends, color="#000000", linewidth=1.2, label="median")
            middles.append((ends[0] + ends[1]) / 2)
            at += len(values) + GAP
        place.set_xticks(middles, [short(name) for name, _ in groups])
        place.tick_params(axis="x", length=0)
        place.grid(visible=True, axis="y")

    return style.svg(title, HEIGHT, fill)
