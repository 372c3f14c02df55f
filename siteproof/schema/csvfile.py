"""A CSV file as lines of named cells; every mistake in it is collected, not raised.

The first line names the columns, in any order; lines that begin with # are remarks, and an empty
cell is none.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from siteproof.schema import shapes
from siteproof.schema.yamlfile import Document, Stop, clip, text_of

if TYPE_CHECKING:
    from _csv import Reader

REMARK = "#"
MAX_COLUMNS = 1000
MAX_BYTES = 50_000_000  # some hundred thousand lines


def rows(
    document: Document, columns: Sequence[str], required: Sequence[str]
) -> Iterator[tuple[int, dict[str, str]]]:
    """The line and the filled cells of each row, by column. columns: those that may be there."""
    try:
        reader = csv.reader(io.StringIO(text_of(document, MAX_BYTES), newline=""), strict=True)
        named: list[str] = []
        for line, cells in _lines(document, reader):
            if named and len(cells) <= len(named):
                document.place((line,), line)
                yield line, {c: text for c, text in zip(named, cells, strict=False) if text}
            elif named:
                what = f"{len(cells)} cells under {len(named)} columns"
                document.add((), what, hint='Put a cell with a comma into "quotes"', line=line)
                if document.is_full:
                    raise Stop
            else:
                named = _named(document, line, cells, columns, required)
        if not named:
            document.add((), "no line with the names of the columns", columns)
    except Stop:
        return


def _lines(document: Document, reader: Reader) -> Iterator[tuple[int, list[str]]]:
    """Where each row begins, and its cells without the blanks around them."""
    line = 1
    try:
        for found in reader:
            here, line = line, reader.line_num + 1
            cells = [" ".join(cell.split()) for cell in found]
            if any(cells) and not cells[0].startswith(REMARK):
                yield here, cells
    except csv.Error as error:
        document.add((), f"bad CSV: {clip(error)}", line=line)
        raise Stop from None


def _named(
    document: Document, line: int, cells: list[str], columns: Sequence[str], required: Sequence[str]
) -> list[str]:
    """The columns of the first row. Raises Stop where they are not what they must be."""
    before = len(document.mistakes)
    if len(cells) > MAX_COLUMNS:
        document.add((), f"{len(cells)} columns", columns, line=line)
        raise Stop
    for name in dict.fromkeys(cells):
        if name not in columns:
            what = f"unknown column '{clip(name)}'{shapes.hint(name, columns)}"
            document.add((), what, columns, line=line)
        elif cells.count(name) > 1:
            document.add((), f"column '{name}' twice", "each column once", line=line)
    for name in required:
        if name not in cells:
            document.add((), f"no column '{name}'", columns, line=line)
    if len(document.mistakes) > before:
        raise Stop
    return cells
