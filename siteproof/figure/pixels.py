"""Cells as pixels of a small PNG, each kind with a colour and, where it needs one, a pattern."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from siteproof.figure.canvas import SMALL, WIDTH, Placed
from siteproof.figure.labels import wide

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROW = 13.0  # units: from one row of a legend to the next
STEP = 4  # pixels from one stroke of a pattern to the next


@dataclass(frozen=True)
class Kind:
    """What a cell may be. text: for the legend. pattern: '', '/', '\\\\', 'x', '.' or '-'.

    ink: the colour of the pattern.
    """

    text: str
    colour: str
    pattern: str = ""
    ink: str = "#000000"


def legend(kinds: Sequence[Kind]) -> list[tuple[Kind, float, int]]:
    """Each kind with its place: units from the left, and row."""
    found, x, row = [], 6.0, 0
    for kind in kinds:
        needed = 28 + wide(kind.text)
        if x > 6.0 and x + needed > WIDTH:
            x, row = 6.0, row + 1
        found.append((kind, x, row))
        x += needed
    return found


def draw_legend(
    made: Figure, found: Sequence[tuple[Kind, float, int]], kinds: Sequence[Kind], height: float
) -> list[Placed]:
    """Draw a legend at the top of a figure that is so many units high."""
    from matplotlib.patches import Rectangle

    placed = []
    for kind, x, row in found:
        y = 1 - (14 + ROW * row) / height
        box = (x / WIDTH, y, 16 / WIDTH, 9 / height)
        placed.append(Placed(box, paint(np.full((1, 1), kinds.index(kind)), kinds, 32, 18)))
        made.add_artist(Rectangle(box[:2], box[2], box[3], fill=False, linewidth=0.5))
        made.text((x + 20) / WIDTH, y + 1 / height, kind.text, fontsize=SMALL)
    return placed


def paint(cells: np.ndarray, kinds: Sequence[Kind], wide: int, high: int) -> bytes:
    """A PNG of cells, (rows, columns) of indices into kinds; a cell is wide x high pixels."""
    return paint_pixels(np.repeat(np.repeat(cells, high, axis=0), wide, axis=1), kinds)


def paint_pixels(pixels: np.ndarray, kinds: Sequence[Kind]) -> bytes:
    """A PNG whose pixels are indices into kinds; patterns go on from cell to cell."""
    from PIL import Image

    rows, columns = np.ogrid[: pixels.shape[0], : pixels.shape[1]]
    inked = np.zeros(pixels.shape, dtype=bool)
    for number, kind in enumerate(kinds):
        if kind.pattern:
            inked |= (pixels == number) & _strokes(kind.pattern, rows, columns)
    image = Image.fromarray((2 * pixels + inked).astype(np.uint8), "P")
    image.putpalette(
        [
            part
            for kind in kinds
            for colour in (kind.colour, kind.ink)
            for part in bytes.fromhex(colour.removeprefix("#"))
        ]
    )
    target = io.BytesIO()
    image.save(target, "PNG", optimize=True, bits=4 if len(kinds) <= 8 else 8)
    return target.getvalue()


def _strokes(
    pattern: str, rows: NDArray[np.int64], columns: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Which pixels of the whole image a pattern inks."""
    falling, rising = (rows - columns) % STEP == 0, (rows + columns) % STEP == 0
    inked: dict[str, NDArray[np.bool_]] = {
        "/": rising,
        "\\": falling,
        "x": rising | falling,
        ".": (rows % STEP == 0) & (columns % STEP == 0),
        "-": (rows % STEP == 0) | (columns < 0),
    }
    return inked[pattern]
