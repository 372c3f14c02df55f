"""Clocks, power and temperature of GPUs, read each second by gpu.sh while they work."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from statistics import median

from siteproof.errors import OutputError
from siteproof.parsers import Reading, values

END = "gpu_state"
FIELDS: tuple[tuple[str, str, Callable[[Sequence[Decimal]], Decimal]], ...] = (
    ("clock", "MHz", median),  # of all seconds
    ("power", "W", median),
    ("temperature", "C", max),
)
BUSY = Decimal("0.5")  # of its highest power: a GPU above it works, and below it waits


def parse(text: str) -> list[Reading]:
    """Of each `gpu` the median clock (MHz) and power (W) while it worked, and the highest
    temperature (C). A field that a GPU does not have ([N/A]) has no reading.

    Raises OutputError where it is cut off, or a line has other fields.
    """
    read: dict[str, list[list[str]]] = {}
    for line in values.whole(text, END):
        gpu, *cells = (cell.strip() for cell in line.split(","))
        if not re.fullmatch("[0-9]{1,9}", gpu) or len(cells) != len(FIELDS):
            raise OutputError(f"gpu_state: no GPU with clock, power, temperature in '{line[:60]}'")
        read.setdefault(gpu, []).append(cells)
    return [reading for gpu, rows in read.items() for reading in _of_gpu(gpu, rows)]


def _of_gpu(gpu: str, rows: list[list[str]]) -> list[Reading]:
    power = [_number(row[1]) or Decimal(0) for row in rows]
    busy = [row for row, own in zip(rows, power, strict=True) if own >= BUSY * max(power)]
    found = []
    for (field, unit, of_all), cells in zip(FIELDS, zip(*busy, strict=True), strict=True):
        numbers = [value for cell in cells if (value := _number(cell)) is not None]
        if numbers:
            found.append(Reading(field, of_all(numbers), unit, {"gpu": gpu}))
    return found


def _number(cell: str) -> Decimal | None:
    """None for [N/A], [Not Supported], ERR! and the like: what is measured does not need it."""
    try:
        return values.number("gpu_state", cell)
    except OutputError:
        return None
