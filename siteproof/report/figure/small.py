"""Small drawings in tables: how a criterion's values are spread over the nodes, and a year of days.

Each is an SVG element without a colour: the page's style gives it one in either theme. A drawing
of the plotting library is twenty times as large. All texts are escaped here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from itertools import groupby

import numpy as np

from siteproof.report.figure.marked import Mark, axis_of

BINS, STEP = 44, 5  # bars of a spread, and units from one to the next
WIDTH, FLOOR, HEIGHT = BINS * STEP, 30.0, 34  # of a spread
TALLEST, LEAST = 24.0, 2.5  # bars: of the most nodes, and of a single one
HEIGHTS = {"ok": 8.0, "slow": 16.0, "bad": 24.0, "failed": 30.0}  # of a day


def spread(
    title: str, unit: str, values: Mapping[str, Sequence[float]], marks: Sequence[Mark]
) -> str:
    """How many units lie where, of one or more, with limit and baseline.

    values: of the units with a look, such as `bad`; those of the first look stand lowest. marks:
    limits (kind `bound`) and baselines; one that is too far away is not drawn.
    """
    every = [value for found in values.values() for value in found]
    low, high, near = axis_of(every, marks)
    edges = np.linspace(low, high, BINS + 1)
    counts = {look: np.histogram(v, edges)[0] for look, v in values.items()}
    most = int(np.sum(list(counts.values()), axis=0).max())
    parts = [_bar(unit, counts, place, edges, most) for place in range(BINS)]
    parts += [_line(mark, (mark.value - low) / (high - low)) for mark in near]
    return _strip(title, WIDTH, "strip", parts)


def _strip(title: str, width: int, looks: str, parts: Sequence[str]) -> str:
    axis = f'<path class="axis" d="M0 {FLOOR:g}.5H{width}"/>'
    box = f'viewBox="0 0 {width} {HEIGHT}" role="img" aria-label="{escape(title)}"'
    return f'<svg class="{looks}" preserveAspectRatio="none" {box}>{"".join([*parts, axis])}</svg>'


def _bar(
    unit: str, counts: Mapping[str, np.ndarray], place: int, edges: np.ndarray, most: int
) -> str:
    """The bars at one place, one upon the other, and what they count."""
    here = [(look, int(found[place])) for look, found in counts.items() if found[place]]
    if not here:
        return ""
    top, bars = FLOOR, ""
    for look, some in here:
        high = max(LEAST, TALLEST * some / most)
        top -= high
        box = f'x="{place * STEP}" y="{top:.1f}" width="4.8" height="{high:.1f}"'
        bars += f'<rect class="{look}" {box}/>'
    total = sum(some for _, some in here)
    ends = " to ".join(dict.fromkeys(f"{edges[place + n]:.6g}" for n in (0, 1)))
    return f"<g><title>{total} at {ends} {escape(unit)}</title>{bars}</g>"


def _line(mark: Mark, share: float) -> str:
    x = share * WIDTH
    return f'<path class="{mark.kind}" d="M{x:.1f} 0V32"><title>{escape(mark.text)}</title></path>'


def year(title: str, looks: Sequence[str]) -> str:
    """A bar a day, higher the worse it was; days of one look after another are one bar.

    looks: of each day one of HEIGHTS, or empty for a day without an attempt.
    """
    parts, place = [], 0
    for look, days in groupby(looks):
        width = len(list(days))
        if look:
            high = HEIGHTS[look]
            box = f'x="{place}" y="{FLOOR - high:g}" width="{width}" height="{high:g}"'
            parts.append(f'<rect class="{look}" {box}/>')
        place += width
    return _strip(title, len(looks), "strip year", parts)
