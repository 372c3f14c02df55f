"""Cells in rows and columns, each of a kind: nodes against runs, and pairs of nodes.

Kinds are shares of the typical value from light to dark, so that a grey print differs. Clearly
worse is what the rules on slow nodes and pairs call so: below the typical value, yet within the
scatter, is not. A cell without a value has a pattern.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from siteproof.report.figure import style
from siteproof.report.figure.style import WIDTH, short

EDGES = (0.98, 0.95, 0.90)  # a loss below 2 % is not worth a repair (siteproof.analysis.slow_nodes)
TYPICAL, BROKEN, MISSING, FAILED, NO_ANSWER, TOO_FEW, WARNED, NOT_EXPECTED = 0, 4, 5, 6, 7, 8, 9, 10
FOOT, HEAD, ROW, HIGHEST = 40.0, 20.0, 14.0, 330.0  # units
MAX_NAMES = 30  # of an axis: of more, every so many
MAX_TEXTS = 9  # columns whose cells have room for digits
APART = 1.2  # lines from one name of a row to the next
STEP = 4  # pixels from one stroke of a pattern to the next
PIXELS = 2  # of a unit
DARK = 0x90  # a colour with less red has white texts
LINED = 20  # pixels: larger cells have a line between them


@dataclass(frozen=True)
class Kind:
    """What a cell may be. text: for the legend. pattern: '', '/', 'x', '-' or '|'; ink: of it."""

    text: str
    colour: str
    pattern: str = ""
    ink: str = "#000000"


KINDS = (
    Kind("not clearly worse", "#e1ecf5"),
    Kind("2 to 5 % worse", "#e9b44c"),
    Kind("5 to 10 % worse", "#c9752d"),
    Kind("more than 10 % worse", "#8c3413"),
    Kind("misses the contract", "#2b0606"),
    Kind("not measured", "#ffffff", "/", "#8a8a8a"),
    Kind("failed", "#000000", "x", "#ffffff"),
    Kind("no answer", "#cccccc", "-", "#555555"),
    Kind("too few to judge", "#ffffff", "|", "#8a8a8a"),
    Kind("not above its link's warn", "#f3d9a4", "/", "#7a5200"),
    Kind("", "#ffffff"),  # not expected
)


def kinds_of(shares: np.ndarray) -> np.ndarray:
    """Indices into KINDS. shares: of the typical value; 1 or more is good, NaN is not measured."""
    worse = np.zeros(shares.shape, dtype=np.uint8)
    for edge in EDGES:
        worse += shares < edge
    return np.where(np.isnan(shares), np.uint8(MISSING), worse)


@dataclass(frozen=True)
class Panel:
    """head: above the cells. kinds: (rows, columns) of indices into KINDS. texts: in cells.

    starts: the rows that have a name where not all can, such as the first of each rack.
    """

    head: str
    rows: Sequence[str]
    kinds: np.ndarray
    texts: Mapping[tuple[int, int], str] = field(default_factory=dict)
    starts: Mapping[int, str] = field(default_factory=dict)

    @property
    def height(self) -> float:
        """In units."""
        return min(ROW * len(self.rows), HIGHEST)


def draw(title: str, names: Sequence[str], panels: Sequence[Panel]) -> str:
    """The figure for a page, of panels below each other with the same columns."""
    columns, heights = [short(name) for name in names], [p.height for p in panels]
    longest, many = max(map(len, columns)), len(columns)
    upright = 6 < many <= MAX_NAMES and many * (longest + 2) > style.LETTERS - longest

    def fill(made: style.Figure) -> None:
        places = made.subplots(len(heights), squeeze=False, sharex=True, height_ratios=heights)
        for place, panel in zip(places[:, 0], panels, strict=True):
            _panel(place, panel)
        _names(place, "x", columns, {})
        if upright:
            place.tick_params(axis="x", rotation=90)
        for kind in sorted({int(n) for panel in panels for n in np.unique(panel.kinds)}):
            one = KINDS[kind]  # for the legend
            look = {"facecolor": one.colour, "hatch": 3 * one.pattern, "edgecolor": one.ink}
            place.bar(np.nan, 0, linewidth=0.5, label=one.text, **look)

    foot = FOOT + 5 * longest * upright
    return style.svg(title, foot + sum(heights) + HEAD * len(heights), fill)


def _panel(place: style.Axes, panel: Panel) -> None:
    rows, columns = panel.kinds.shape
    wide = max(1, round(PIXELS * WIDTH / columns))
    high = max(1, round(PIXELS * panel.height / rows))
    ends = (-0.5, columns - 0.5, rows - 0.5, -0.5)
    cells = panel.kinds.repeat(high, 0).repeat(wide, 1)
    if min(wide, high) > LINED:
        cells[::high] = cells[:, ::wide] = NOT_EXPECTED
    place.imshow(_painted(cells), extent=ends, aspect="auto", interpolation="none")
    place.set_title(panel.head)
    place.spines[["top", "right"]].set_visible(True)
    _names(place, "y", [short(name) for name in panel.rows], panel.starts)
    if columns <= MAX_TEXTS and panel.height >= ROW * rows:
        for (y, x), text in panel.texts.items():
            colour = KINDS[panel.kinds[y, x]].colour
            ink = "white" if int(colour[1:3], 16) < DARK else "black"
            back = {"facecolor": colour, "edgecolor": "none", "pad": 0.6}
            place.text(x, y, text, ha="center", va="center", fontsize=8.4, color=ink, bbox=back)


def _names(
    place: style.Axes, which: Literal["x", "y"], names: Sequence[str], starts: Mapping[int, str]
) -> None:
    """All names of an axis where there are few; else those of some places, or every so many."""
    axis: style.Axis = getattr(place, f"{which}axis")
    if len(names) <= MAX_NAMES:
        axis.set_ticks(range(len(names)), names)
    elif starts:
        kept: list[int] = []
        for row in starts:
            if not kept or row - kept[-1] > APART * ROW * len(names) / HIGHEST:
                kept.append(row)
        axis.set_ticks(kept, [short(starts[row]) for row in kept])
    else:
        fitting = max(1, style.LETTERS // (4 + max(map(len, names))))
        place.locator_params(axis=which, nbins=fitting, integer=True)
        axis.set_major_formatter(lambda n, _: names[int(n)] if 0 <= n < len(names) else "")


def _painted(kinds: NDArray[np.uint8]) -> np.ndarray:
    """Pixels in the colours of their kinds; patterns go on from cell to cell."""
    rows, columns = np.ogrid[: kinds.shape[0], : kinds.shape[1]]
    falling, rising = (rows - columns) % STEP == 0, (rows + columns) % STEP == 0
    strokes = {"/": rising, "x": rising | falling, "-": rows % STEP == 0, "|": columns % STEP == 0}
    inked = np.zeros(kinds.shape, dtype=np.uint8)
    for number, kind in enumerate(KINDS):
        if kind.pattern:
            inked |= (kinds == number) & strokes[kind.pattern]
    palette = [[list(bytes.fromhex(c[1:])) for c in (kind.colour, kind.ink)] for kind in KINDS]
    return np.array(palette, dtype=np.uint8)[kinds, inked]
