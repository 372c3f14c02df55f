"""Pairs of nodes: each cell a pair, each direction of it a cell or half of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from siteproof.figure import canvas, pixels, shares
from siteproof.figure.canvas import SMALL, WIDTH, Hover, Placed
from siteproof.figure.labels import nice_ticks, short, wide
from siteproof.figure.shares import KINDS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RIGHT, HEAD = WIDTH - 8, 18.0
LONGEST = 26
MAX_TICKS = 40  # of an axis: of more, every so many
MAX_HOVERS = 600  # cells that a browser explains; of more, it explains the rows
MAX_ROWS = 80  # of more, none is high enough to point at
MAX_TEXTS = 9  # columns whose cells have room for digits
CELL, SPLIT, SMALLEST = 24.0, 34.0, 1.2  # units: how high a cell is
HIGHEST = 330.0
WIDEST = 92.0
PIXELS = 700
NOT_EXPECTED = len(KINDS)  # the kind of a cell whose pair is not expected
Pair = tuple[str, str]


@dataclass(frozen=True)
class Matrix:
    """Nodes that send down the side, nodes that receive above. kinds: of each pair, of KINDS.

    A cell without a kind stays white: the pair is not expected.
    texts: what is written into a cell, by pair. split: the rows and the columns are two sets, and
    a cell has both directions: from the row's node above, to it below.
    """

    title: str
    rows: Sequence[str]
    columns: Sequence[str]
    kinds: Mapping[Pair, int]
    texts: Mapping[Pair, str]
    split: bool = False


def draw(name: str, caption: str, data: Matrix) -> str:
    """The figure for a page, as siteproof.figure.canvas.svg. Raises ValueError for no pair."""
    if not data.rows or not data.columns:
        raise ValueError("a matrix without nodes")
    left = 26 + max((wide(short(n, LONGEST)) for n in data.rows), default=0.0)
    cell_w = min((RIGHT - left) / len(data.columns), WIDEST)
    most = SPLIT if data.split else CELL
    cell_h = min(most, max(SMALLEST, HIGHEST / len(data.rows)))
    upright = max(wide(short(n, LONGEST)) for n in data.columns) + 6 > cell_w
    legend = pixels.legend([KINDS[n] for n in sorted(set(data.kinds.values()))])
    top = (
        8
        + 13 * (legend[-1][2] + 1 if legend else 0)
        + HEAD
        + (max(wide(short(n, LONGEST)) for n in data.columns) * 0.8 if upright else 6)
    )
    high, across = cell_h * len(data.rows), cell_w * len(data.columns)
    height = top + high + (16 if data.split else 6)

    def fill(made: Figure) -> Sequence[Placed | Hover]:
        box = (left / WIDTH, 1 - (top + high) / height, across / WIDTH, high / height)
        place = made.add_axes(box, facecolor="none")
        _axes(place, data, upright, (cell_w, cell_h))
        if len(data.columns) <= MAX_TEXTS and cell_h >= CELL:
            _texts(place, data)
        cells = Placed(box, _png(data, cell_w, cell_h))
        if data.split:
            made.text(
                left / WIDTH,
                4 / height,
                "upper left: from the row to the column; lower right: back",
                fontsize=SMALL,
                ha="left",
            )
        drawn = pixels.draw_legend(made, legend, KINDS, height)
        return [cells, *drawn, *_hovers(data, box)]

    return canvas.svg(name, data.title, caption, height, fill)


def _hovers(data: Matrix, box: tuple[float, float, float, float]) -> Iterator[Hover]:
    """The value and the kind of each cell; of many cells, how many each row has of a kind."""
    left, bottom, wide, tall = box
    across, high = wide / len(data.columns), tall / len(data.rows)
    each = len(data.rows) * len(data.columns) <= MAX_HOVERS
    if not each and len(data.rows) > MAX_ROWS:
        return
    for y, a in enumerate(data.rows):
        lower = bottom + high * (len(data.rows) - 1 - y)
        if not each:
            yield Hover((left, lower, wide, high), _row_in_words(data, a))
            continue
        for x, b in enumerate(data.columns):
            if text := _in_words(data, a, b):
                yield Hover((left + across * x, lower, across, high), text)


def _in_words(data: Matrix, a: str, b: str) -> str:
    """`n1 to n2: 9.4, typical or better`; empty for a cell without a kind."""
    texts = []
    for pair in [(a, b), (b, a)] if data.split else [(a, b)]:
        if pair in data.kinds:
            words = filter(None, (data.texts.get(pair, ""), KINDS[data.kinds[pair]].text))
            texts.append(f"{pair[0]} to {pair[1]}: {', '.join(words)}")
    return "; ".join(texts)


def _row_in_words(data: Matrix, a: str) -> str:
    """`n1: 300 typical or better, 20 not measured`, of both directions if a cell has both."""
    pairs = [(a, b) for b in data.columns]
    if data.split:
        pairs += [(b, a) for b in data.columns]
    counts = Counter(data.kinds[pair] for pair in pairs if pair in data.kinds)
    return f"{a}: {', '.join(f'{n} {KINDS[kind].text}' for kind, n in sorted(counts.items()))}"


def _png(data: Matrix, cell_w: float, cell_h: float) -> bytes:
    """All cells, those of two directions cut from corner to corner."""
    size = max(1, min(192 if data.split else 48, PIXELS // max(len(data.columns), len(data.rows))))
    high = max(1, round(size * cell_h / cell_w)) if size > 4 else size
    large = _enlarged([[(a, b) for b in data.columns] for a in data.rows], data, size, high)
    if data.split:
        other = _enlarged([[(b, a) for b in data.columns] for a in data.rows], data, size, high)
        rows, columns = np.ogrid[: large.shape[0], : large.shape[1]]
        below = (rows % high) / high + (columns % size) / size > 1
        large = np.where(below, other, large)
    return pixels.paint_pixels(large, (*KINDS, pixels.Kind("not expected", "#ffffff")))


def _enlarged(pairs: Sequence[Sequence[Pair]], data: Matrix, size: int, high: int) -> np.ndarray:
    """The kinds of pairs, each as a block of pixels."""
    cells = np.array([[data.kinds.get(pair, NOT_EXPECTED) for pair in row] for row in pairs])
    return np.repeat(np.repeat(cells, high, axis=0), size, axis=1)


def _texts(place: Axes, data: Matrix) -> None:
    """The values in the cells; of two directions each in its half."""
    for y, a in enumerate(data.rows):
        for x, b in enumerate(data.columns):
            if data.split:
                _text(place, data, (a, b), x + 0.05, y + 0.26, "left")
                _text(place, data, (b, a), x + 0.95, y + 0.74, "right")
            else:
                _text(place, data, (a, b), x + 0.5, y + 0.5, "center")


def _text(place: Axes, data: Matrix, pair: Pair, x: float, y: float, side: str) -> None:
    if text := data.texts.get(pair):
        dark = shares.is_dark(data.kinds.get(pair, shares.MISSING))
        patterned = KINDS[data.kinds.get(pair, shares.MISSING)].pattern
        back = {"facecolor": "black" if dark else "white", "edgecolor": "none", "pad": 0.6}
        place.text(
            x,
            y,
            text,
            fontsize=SMALL,
            ha=side,
            va="center",
            color="white" if dark else "black",
            bbox=back if patterned else None,
        )


def _axes(place: Axes, data: Matrix, upright: bool, cell: tuple[float, float]) -> None:
    place.set_xlim(0, len(data.columns))
    place.set_ylim(len(data.rows), 0)
    place.xaxis.tick_top()
    place.xaxis.set_label_position("top")
    for axis, names, room in (
        (place.xaxis, data.columns, cell[0]),
        (place.yaxis, data.rows, cell[1]),
    ):
        shown = _shown(names, room)
        axis.set_ticks([n + 0.5 for n in shown], [short(names[n], LONGEST) for n in shown])
    place.tick_params(labelsize=SMALL, length=0)
    if upright:
        place.tick_params(axis="x", labelrotation=55)
        for label in place.get_xticklabels():
            label.set(ha="left", rotation_mode="anchor")
    if data.split:
        place.set_xlabel("other end", fontsize=SMALL)
        place.set_ylabel("one end", fontsize=SMALL)
    else:
        place.set_xlabel("to", fontsize=SMALL)
        place.set_ylabel("from", fontsize=SMALL)
    place.spines[["top", "right"]].set_visible(True)
    _lines(place, data, min(cell))


def _lines(place: Axes, data: Matrix, size: float) -> None:
    """White lines between cells that are large enough, and across those of two directions."""
    rows, columns = len(data.rows), len(data.columns)
    if size >= 6:
        for n in range(1, columns):
            place.axvline(n, color="white", linewidth=1)
        for n in range(1, rows):
            place.axhline(n, color="white", linewidth=1)
    if data.split:
        for x, y in product(range(columns), range(rows)):
            place.plot([x, x + 1], [y + 1, y], color="white", linewidth=1)


def _shown(names: Sequence[str], room: float) -> list[int]:
    """Which nodes of an axis are named."""
    if len(names) <= MAX_TICKS and room >= SMALL:
        return list(range(len(names)))
    return [int(n) for n in nice_ticks(0, len(names) - 1, 8) if n == int(n)]
