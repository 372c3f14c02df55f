"""Cells as pixels of a small PNG, each kind with a colour and, where it needs one, a pattern."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from siteproof.figure.canvas import WIDTH
from siteproof.figure.labels import wide

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


def paint(cells: np.ndarray, kinds: Sequence[Kind], wide: int, high: int) -> bytes:
    """A PNG of cells, (rows, columns) of indices into kinds; a cell is wide x high pixels."""
    return paint_pixels(np.repeat(np.repeat(cells, high, axis=0), wide, axis=1), kinds)


def paint_pixels(pixels: np.ndarray, kinds: Sequence[Kind]) -> bytes:
    """A PNG whose pixels are indices into kinds; patterns go on from cell to cell."""
    from PIL import Image

    rows, columns = np.ogrid[: pixels.shape[0], : pixels.shape[1]]
    inked = np.zeros(pixels.shape, dtype=bool)
    for number, kind in enumerate(kinds):
        if kind.pattern and (mine := pixels == number).any():
            inked |= mine & _strokes(kind.pattern, rows, columns)
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
