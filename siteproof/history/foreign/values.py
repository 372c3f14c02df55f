"""Values as ReFrame logs them: numbers, or why there is none."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from siteproof.errors import harmless
from siteproof.history.foreign.arrays import Bytes, Floats, Ints, Objects
from siteproof.record.samples import MAX_DIGITS

_ZERO, _POINT, _MINUS = ord("0"), ord("."), ord("-")
_EXACT = 15  # digits that a float holds, whatever they are
_WIDEST = 24  # a longer cell is no plain decimal
_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,4})?")
NONE, NOT_FINITE = 1, 2  # kinds of figures that are none; 0 is a number, REFUSED a mistake
REFUSED = -1
_WORDS = {
    **dict.fromkeys(("", "none", "null"), NONE),
    **{sign + word: NOT_FINITE for word in ("nan", "inf", "infinity") for sign in ("", "-", "+")},
}


@dataclass
class Figures:
    """values: (n,), NaN where there is none. kinds: (n,).

    digits: (n,) as logged; None where that is how the value itself is printed.
    """

    values: Floats
    digits: Objects
    kinds: Ints

    def some(self, which: Ints) -> Figures:
        """A part of them."""
        return Figures(self.values[which], self.digits[which], self.kinds[which])


def numbers(rows: Bytes, lengths: Ints) -> Figures:
    """Numbers of cells, (n, width) bytes with zeros behind `lengths` of them."""
    values, plain, own = decimals(rows, lengths)
    found = Figures(
        values, np.full(len(rows), None, dtype=object), np.zeros(len(rows), dtype=np.int64)
    )
    kept = np.flatnonzero(plain & ~own)
    found.digits[kept] = rows[kept].view(f"S{rows.shape[1]}").ravel().astype(str)
    for i in np.flatnonzero(~plain):
        _slowly(rows[i, : lengths[i]].tobytes().decode("latin-1"), found, int(i))
    return found


def decimals(rows: Bytes, lengths: Ints) -> tuple[Floats, np.ndarray, np.ndarray]:
    """Values of plain decimals, which cells are such, and which are written as a float prints.

    A plain decimal has at most 15 digits and no exponent: a quotient of two whole numbers that are
    exact, so it is the nearest float, as float() would have it.
    """
    cells = np.ascontiguousarray(rows.T)
    whole, places = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
    digits, points = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
    for column in cells[:_WIDEST]:
        is_digit = (column >= _ZERO) & (column <= _ZERO + 9)
        np.multiply(whole, 10, out=whole, where=is_digit)
        np.add(whole, column - _ZERO, out=whole, where=is_digit, casting="unsafe")
        digits += is_digit
        places += is_digit & (points > 0)
        points += column == _POINT
    minus = cells[0] == _MINUS
    plain = (digits > 0) & (digits <= _EXACT) & (points <= 1) & (digits + points + minus == lengths)
    values = whole / 10.0 ** np.minimum(places, _EXACT)
    values[minus] *= -1
    values[~plain] = np.nan
    first = cells[np.minimum(minus, len(cells) - 1).astype(np.int64), np.arange(len(rows))]
    last = cells[np.maximum(np.minimum(lengths, len(cells)) - 1, 0), np.arange(len(rows))]
    # 25001.0 and 0.5, but not 25001, 007.5, .5, 2.50 or -0.0
    own = plain & (points == 1) & (places >= 1) & ((last != _ZERO) | (places == 1))
    own &= (np.abs(values) >= 1) & (first != _ZERO) & (first != _POINT)
    return values, plain, own


def _slowly(word: str, found: Figures, i: int) -> None:
    """Any other cell: an exponent, more digits, or no number."""
    found.digits[i] = harmless(word)
    if _NUMBER.fullmatch(word):
        found.values[i] = float(word)
        size = abs(math.log10(abs(found.values[i]))) if found.values[i] else 0.0
        found.kinds[i] = 0 if size <= MAX_DIGITS else REFUSED
    else:
        found.kinds[i] = _WORDS.get(word.strip().lower(), REFUSED)


def texts(values: Sequence[object]) -> Figures:
    """The same of values of JSON."""
    cells = [repr(v) if isinstance(v, float) else "" if v is None else str(v) for v in values]
    encoded = [cell.encode("ascii", "replace") or b"" for cell in cells]
    width = -(-max(map(len, encoded), default=1) // 8) * 8 or 8
    rows = np.array(encoded, dtype=f"S{width}").view(np.uint8).reshape(len(cells), width)
    return numbers(rows, np.array([len(cell) for cell in encoded], dtype=np.int64))
