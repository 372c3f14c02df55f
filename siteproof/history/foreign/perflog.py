"""ReFrame's perflogs: lines in, rows of the view `samples` out, in blocks of many lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np

from siteproof.history.foreign import block_rows, columns, source
from siteproof.history.foreign.arrays import Batch
from siteproof.history.foreign.block_rows import State
from siteproof.history.foreign.cells import grid
from siteproof.history.foreign.columns import TIME, Layout
from siteproof.history.foreign.joined import Table
from siteproof.history.foreign.origins import Refused
from siteproof.history.foreign.repair import NOT_A_CELL, repaired

BLOCK = 2_000_000  # bytes read at once: arrays of their cells fit into a cache
LONGEST = 64_000_000  # of a line: one that never ends must not fill the memory
OURS = (  # the names in ReFrame's perflogs of Siteproof's own checks (checks/settings.py)
    "job_completion_time_unix|version|display_name|system|partition|environ|jobid|result|"
    "perf_var|perf_value|perf_unit|perf_ref|perf_lower_thres|perf_upper_thres|perf_result"
)
_CUT = "its line has no end: cut short, or still being written"


def looks_like(first: str) -> bool:
    """Whether a file's first line is one of a perflog."""
    return bool(columns.of_header(first) or columns.of_line(first))


def read(path: Path, site: str, file: str, zone: ZoneInfo | None, blocks: int) -> Iterator[Batch]:
    """All rows of a perflog, as many blocks at a time; at last what was refused. Raises OSError.

    site: the system that it is imported for. file: what the rows call it. zone: of times that
    have none; None is UTC.
    """
    state = State(Table(file), site, zone)
    number, layout = 1, None
    layouts: dict[int, Layout] = {}  # of lines without names, by their columns
    for turn, (block, whole) in enumerate(_blocks(path), start=1):
        if not whole:
            state.refused.append((number, _CUT if len(block) <= LONGEST else "a line without end"))
            break
        for part, head in _sections(block):
            if head is not None:
                number, layout = number + 1, head
            elif layout is not None:
                number += _named(state, part, layout, number)
            else:
                number += _unnamed(state, part, layouts, number)
        if turn % blocks == 0:
            yield state.table.batch()
    found = state.table.batch()
    found.refused = [f"{path}:{line}: {why}" for line, why in sorted(state.refused)]
    found.told = list(_notes(state))
    found.systems = state.systems
    yield found


def _notes(state: State) -> Iterator[str]:
    for what, count in state.told.items():
        if count or what != block_rows.SILENT:
            yield f"{count} {what}" if count else what
    yield from state.table.notes()


def _blocks(path: Path) -> Iterator[tuple[bytes, bool]]:
    """Whole lines of a file, many at once; at last what has no end, marked by False."""
    rest = b""
    with source.stream(path) as held:
        while data := held.read(BLOCK):
            cut = data.rfind(b"\n") + 1
            if cut:
                yield rest + data[:cut], True
                rest = data[cut:]
            else:
                rest += data
            if len(rest) > LONGEST:
                break
    if rest:
        yield rest, False


def _sections(block: bytes) -> Iterator[tuple[bytes, Layout | None]]:
    """A block's parts between lines of names, and the layout of each such line."""
    done = at = 0
    while (at := block.find(TIME.encode(), at)) >= 0:
        start, end = block.rfind(b"\n", 0, at) + 1, block.index(b"\n", at) + 1
        layout = columns.of_header(block[start:end].decode("utf-8", "replace").strip())
        if layout:
            if start > done:
                yield block[done:start], None
            yield block[start:end], layout
            done = end
        at = end
    if done < len(block):
        yield block[done:], None


def _named(state: State, data: bytes, layout: Layout, first: int) -> int:
    """Lines below a line of names. How many there are."""
    lines, others = grid(data, ord(layout.delimiter), len(layout.names))
    if len(lines.line):
        block_rows.rows(state, lines, layout, first + lines.line)
    good: list[tuple[int, bytes]] = []
    for i, line in others.items():
        try:
            if line.strip():
                good.append((first + i, repaired(line, layout)))
        except Refused as error:
            state.refused.append((first + i, str(error)))
    _cells(state, good, layout, NOT_A_CELL)
    return len(lines.line) + len(others)


def _unnamed(state: State, data: bytes, layouts: dict[int, Layout], first: int) -> int:
    """Lines of the formats before 4.0, a layout for each number of columns. How many there are."""
    lines = data.split(b"\n")[:-1]
    groups: dict[int, list[tuple[int, bytes]]] = {}
    for i, line in enumerate(lines, start=first):
        if line.strip():
            groups.setdefault(line.count(b"|"), []).append((i, line))
    for count, held in groups.items():
        if count not in layouts:
            found = (columns.of_line(line.decode("utf-8", "replace")) for _, line in held)
            if (layout := next(filter(None, found), None)) is not None:
                layouts[count] = layout
        if count in layouts:
            _cells(state, held, layouts[count], b"|")
        else:
            state.refused += [(i, "no line of a perflog of ReFrame") for i, _ in held]
    return len(lines)


def _cells(state: State, held: list[tuple[int, bytes]], layout: Layout, delimiter: bytes) -> None:
    """Lines that have the right number of cells, each with its number; very long ones apart."""
    while held:
        data = b"".join(line.removesuffix(b"\r") + b"\n" for _, line in held)
        numbers = np.array([i for i, _ in held])
        lines, others = grid(data, delimiter[0], len(layout.names))
        if not len(lines.line):
            state.refused += [(i, "not as many columns as other lines") for i, _ in held]
            return
        block_rows.rows(state, lines, layout, numbers[lines.line])
        held = [held[i] for i in others]
