"""Nodes against runs: what became of each node in each run, over years.

Above, the worst nodes by name, in rows that can be read; below, all of them, a pixel's row each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from siteproof.figure import canvas, pixels
from siteproof.figure.canvas import SMALL, WIDTH, Hover, Placed
from siteproof.figure.labels import date_ticks, nice_ticks, short, wide
from siteproof.figure.pixels import Kind

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RIGHT = WIDTH - 8  # units
LONGEST = 18  # letters of a node's name
MAX_ROW_NAMES = 40  # rows that can all be named
ROW, LEGEND, HEAD, GAP, FOOT = 11.0, 13.0, 14.0, 24.0, 20.0
LOWEST, HIGHEST = 60.0, 330.0  # units: how high all of a large fleet is
PIXELS = 720  # about so many lie side by side


@dataclass(frozen=True)
class HeatMap:
    """cells: (nodes, runs) of indices into kinds. times: of the runs, rising.

    worst: rows to be shown above by name, where not all can be named. groups: where a rack
    begins, as its row and name. order: what the rows are sorted by, in words.
    """

    title: str
    nodes: Sequence[str]
    times: Sequence[datetime]
    cells: np.ndarray
    kinds: Sequence[Kind]
    worst: Sequence[int] = ()
    groups: Sequence[tuple[int, str]] = ()
    order: str = ""


@dataclass(frozen=True)
class _Panel:
    """Rows in one block. labels: row, from its centre, and text; top in units from above."""

    rows: Sequence[int]
    labels: Sequence[tuple[float, str]]
    top: float
    height: float
    head: str


def draw(name: str, caption: str, data: HeatMap) -> str:
    """The figure for a page, as siteproof.figure.canvas.svg. Raises ValueError for no cell."""
    if not data.cells.size or data.cells.shape != (len(data.nodes), len(data.times)):
        raise ValueError(f"{data.cells.shape} cells of {len(data.nodes)} nodes")
    shown = [kind for n, kind in enumerate(data.kinds) if (data.cells == n).any()]
    legend = pixels.legend(shown)
    panels = _panels(data, 6 + LEGEND * (legend[-1][2] + 1))
    height = panels[-1].top + panels[-1].height + FOOT
    texts = [text for panel in panels for _, text in panel.labels]
    left = 10 + max((wide(text) for text in texts), default=30.0)

    def fill(made: Figure) -> Sequence[Placed | Hover]:
        placed: list[Placed | Hover] = []
        for panel in panels:
            box = (
                left / WIDTH,
                1 - (panel.top + panel.height) / height,
                (RIGHT - left) / WIDTH,
                panel.height / height,
            )
            place = made.add_axes(box, facecolor="none")
            _axes(place, data, panel, panel is panels[-1])
            placed.append(Placed(box, _png(data, panel)))
            if len(panel.rows) <= MAX_ROW_NAMES:
                placed += _hovers(data, panel, box)
        return [*placed, *pixels.draw_legend(made, legend, data.kinds, height)]

    return canvas.svg(name, data.title, caption, height, fill)


def _panels(data: HeatMap, top: float) -> list[_Panel]:
    count = len(data.nodes)
    if count <= MAX_ROW_NAMES:
        labels = [(n, short(node, LONGEST)) for n, node in enumerate(data.nodes)]
        return [_Panel(range(count), labels, top + HEAD, ROW * count, data.order)]
    found = []
    if data.worst:
        labels = [(n, short(data.nodes[row], LONGEST)) for n, row in enumerate(data.worst)]
        high, head = ROW * len(labels), f"the worst {len(labels)}"
        found.append(_Panel(data.worst, labels, top + HEAD, high, head))
        top += high + GAP
    high = min(HIGHEST, max(LOWEST, count * 1.0))
    head = f"all {count} nodes" + (f", {data.order}" if data.order else "")
    found.append(_Panel(range(count), _rows(data, high), top + HEAD, high, head))
    return found


def _rows(data: HeatMap, high: float) -> list[tuple[float, str]]:
    """Names of racks, or of some nodes, that do not lie on each other."""
    count = len(data.nodes)
    wanted = [(float(row), short(text, LONGEST)) for row, text in data.groups] or [
        (float(row), short(data.nodes[int(row)], LONGEST)) for row in nice_ticks(0, count - 1, 6)
    ]
    kept: list[tuple[float, str]] = []
    for row, text in wanted:
        if not kept or (row - kept[-1][0]) * high / count >= SMALL + 1:
            kept.append((row, text))
    return kept


def _hovers(
    data: HeatMap, panel: _Panel, box: tuple[float, float, float, float]
) -> Iterator[Hover]:
    """How often each row is of which kind."""
    left, bottom, wide, tall = box
    tall /= len(panel.rows)
    for place, row in enumerate(panel.rows):
        counts = np.bincount(data.cells[row], minlength=len(data.kinds))
        texts = [f"{n} {kind.text}" for n, kind in zip(counts, data.kinds, strict=True) if n]
        lower = bottom + tall * (len(panel.rows) - 1 - place)
        yield Hover((left, lower, wide, tall), f"{data.nodes[row]}: {', '.join(texts)}")


def _png(data: HeatMap, panel: _Panel) -> bytes:
    cells = data.cells[list(panel.rows), :]
    scale = max(1, round(PIXELS / cells.shape[1]))
    tall = max(1, round(panel.height / len(panel.rows) * PIXELS / (RIGHT - 60)))
    return pixels.paint(cells, data.kinds, min(scale, 24), min(tall, 16))


def _axes(place: Axes, data: HeatMap, panel: _Panel, last: bool) -> None:
    count = len(data.times)
    place.set_xlim(0, count)
    place.set_ylim(len(panel.rows), 0)
    middle = 0.5 if panel.height / len(panel.rows) >= ROW else 0.0
    place.set_yticks([row + middle for row, _ in panel.labels], [text for _, text in panel.labels])
    ticks = _columns(data.times) if last else []
    place.set_xticks([x for x, _ in ticks], [text for _, text in ticks])
    place.tick_params(labelsize=SMALL, length=0 if middle else 3)
    place.tick_params(axis="x", length=3 if last else 0)
    place.set_title(panel.head, fontsize=SMALL, pad=3)
    place.spines[["top", "right"]].set_visible(True)


def _columns(times: Sequence[datetime]) -> list[tuple[float, str]]:
    """The first run of each round date, or every run where there are few."""
    if len(times) <= 5:
        form = "%Y-%m-%d" if len({at.date() for at in times}) == len(times) else "%m-%d %H:%M"
        return [(n + 0.5, f"{at:{form}}") for n, at in enumerate(times)]
    found: list[tuple[float, str]] = []
    for at, text in date_ticks(times[0], times[-1]):
        column = next(n for n, time in enumerate(times) if time.date() >= at.date())
        if not found or column + 0.5 - found[-1][0] > len(times) / 12:
            found.append((column + 0.5, text))
    return found
