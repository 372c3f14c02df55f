"""Cells of many lines at once: bytes in, positions and columns out. No object a cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from siteproof.history.foreign.arrays import Bytes, Ints

NEWLINE = 10
_RETURN, _BLANK, _DELETE = 13, 32, 127
_PAD = bytes(64)
_MOST_DIGITS = 16  # of a whole number, which 64 bits hold
_SEED = 20261121  # any: it decides nothing but which two texts would meet
_MIX = np.uint64(0x9E3779B97F4A7C15)  # odd, its bits spread evenly: the golden ratio's


@dataclass(frozen=True)
class Grid:
    """Lines with the same number of cells.

    text: all bytes. line: (n,) their numbers in the text, from 0. first: (n,) where each begins.
    ends: (n, cells) where each cell ends. is_clean: no line of the text has a control character.
    """

    text: Bytes
    line: Ints
    first: Ints
    ends: Ints
    is_clean: bool

    def span(self, column: int, last: int | None = None) -> tuple[Ints, Ints]:
        """Where a column, or all from it to a last one, begins and ends: (n,) each."""
        start = self.first if column == 0 else self.ends[:, column - 1] + 1
        return start, np.ascontiguousarray(self.ends[:, column if last is None else last])

    def cell(self, row: int, column: int) -> bytes:
        """The bytes of one cell."""
        start = self.first[row] if column == 0 else self.ends[row, column - 1] + 1
        return self.text[start : self.ends[row, column]].tobytes()


def grid(data: bytes, delimiter: int, count: int) -> tuple[Grid, dict[int, bytes]]:
    """Lines that have `count` cells, and all others by their number. data ends with a newline."""
    text = np.frombuffer(data + _PAD, dtype=np.uint8)
    marks = np.flatnonzero((text == delimiter) | (text == NEWLINE))
    last = np.flatnonzero(text[marks] == NEWLINE)  # the mark that ends each line
    begin = np.concatenate(([0], last[:-1] + 1))
    stop = marks[last]
    start = np.concatenate(([0], stop[:-1] + 1))
    lengths = stop - start
    # One long line among many short ones would make every column as wide as itself.
    fits = (last - begin == count - 1) & (lengths <= 4 * lengths.mean() + 1024)
    regular = np.flatnonzero(fits)
    if len(regular) == len(last):
        ends = marks.reshape(-1, count)
    else:
        ends = marks[begin[regular, None] + np.arange(count)]
    ends[:, -1] -= (text[ends[:, -1] - 1] == _RETURN) & (lengths[regular] > 0)
    others = {int(i): data[start[i] : stop[i]].removesuffix(b"\r") for i in np.flatnonzero(~fits)}
    odd = np.count_nonzero(text < _BLANK) - len(last) - len(_PAD)
    is_clean = delimiter >= _BLANK and not odd and not (text == _DELETE).any()
    return Grid(text, regular, start[regular], ends, is_clean), others


def gather(text: Bytes, starts: Ints, ends: Ints) -> Bytes:
    """Slices of the text as rows, (n, width), with zeros behind the end of each."""
    lengths = ends - starts
    width = max(8, -(-int(lengths.max(initial=0)) // 8) * 8)
    if starts.max(initial=0) + width > len(text):
        text = np.concatenate((text, np.zeros(width, dtype=np.uint8)))
    rows = np.lib.stride_tricks.sliding_window_view(text, width)[starts]
    if len(rows) and (shortest := int(lengths.min())) == int(lengths.max()):
        rows[:, shortest:] = 0
        return rows
    small = np.dtype(np.uint8 if width < 256 else np.int64)  # bytes are compared many at once
    rows *= (np.arange(width, dtype=small) < lengths.astype(small)[:, None]).view(np.uint8)
    return rows


def texts(rows: Bytes) -> np.ndarray:
    """Rows of bytes as an array of texts of ASCII. Raises UnicodeDecodeError."""
    return rows.view(f"S{rows.shape[1]}").ravel().astype(str)


def whole(rows: Bytes) -> Ints | None:
    """Rows of bytes as whole numbers, where each is one and is printed like that; else None."""
    is_digit = (rows >= ord("0")) & (rows <= ord("9"))
    if (
        rows.shape[1] > _MOST_DIGITS
        or (rows[:, 0] <= ord("0")).any()
        or (is_digit != (rows != 0)).any()
    ):
        return None
    found = np.zeros(len(rows), dtype=np.int64)
    for column, used in zip(rows.T, is_digit.T, strict=True):
        found = np.where(used, found * 10 + column - ord("0"), found)
    return found


def classes(groups: Sequence[Bytes]) -> tuple[Ints, Ints]:
    """Which lines are equal in all groups of bytes: one line of each class, and each line's class.

    Compared by a hash first, and then byte by byte.
    """
    factors = np.random.default_rng(_SEED)
    total = np.zeros(len(groups[0]), dtype=np.uint64)
    for rows in groups:
        words = rows.view(np.uint64)
        odd = factors.integers(0, 2**63, words.shape[1], dtype=np.uint64) * np.uint64(2) + _MIX
        odd |= np.uint64(1)
        total += ((words ^ (words >> np.uint64(29))) * odd).sum(axis=1, dtype=np.uint64)
        total *= _MIX
    # Lines of one test often follow each other, and then one of them is enough to be sorted.
    first = np.flatnonzero(np.concatenate(([True], total[1:] != total[:-1])))
    _, one, each = np.unique(total[first], return_index=True, return_inverse=True)
    one, each = first[one], np.repeat(each, np.diff(np.append(first, len(total))))
    if all(np.array_equal(rows, rows[one][each]) for rows in groups):
        return one, each
    whole = np.ascontiguousarray(np.hstack(groups))
    void = whole.view(np.dtype((np.void, whole.shape[1]))).ravel()
    _, one, each = np.unique(void, return_index=True, return_inverse=True)
    return one, each
