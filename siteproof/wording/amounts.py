"""How values, limits, shares and changes are written, and a text with less room than words."""

from __future__ import annotations

import re
from fractions import Fraction
from math import isfinite

from siteproof import units
from siteproof.sweeps.tools import SIZES
from siteproof.units import size, with_unit

LEAST_SHARE = 0.0005  # what is less is shown as 0 %
LIMIT_DIGITS = 6  # significant ones of a limit that is no short decimal
_ENDS = (r"[;,](?= )", r":(?= )", r"(?= )")  # of phrases, of what a phrase is about, of words
MANY_TIMES = 10  # from which on a share is shown as so many times


def at(axis: str, value: object) -> str:
    """A place on an axis with its unit: 32 tasks, 64 servers, 1 MiB, depth 4."""
    text = f"{value}"
    if isinstance(value, float):
        text = f"{value:.4g}" if value < 10_000 else f"{value:.0f}"
    if axis in SIZES and text.isdigit():
        return size(int(text))
    if axis in ("tasks", "servers", "nodes"):
        return f"1 {axis[:-1]}" if text == "1" else f"{text} {axis}"
    return f"{axis} {text}"


def number(value: float) -> str:
    """A value for people: four significant digits, and no exponent."""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def quantity(value: float, unit: str) -> str:
    """A value with the unit with which it can be read: 8.712 Gb/s for 8712076343 b/s."""
    own = units.readable(value, unit)
    if own != unit:
        value = float(units.convert(Fraction(value), unit, own))
    return with_unit(number(value), own)


def stated(value: float, unit: str) -> str:
    """A limit, in the unit and the digits of who has set it: at most six."""
    text = f"{value:.{LIMIT_DIGITS}g}"
    return with_unit(f"{value:.0f}" if "e+" in text else text, unit)


def times(ratio: float) -> str:
    """A large ratio in three digits, or all before the point: `56.2 times`, `1467 times`."""
    return f"{ratio:.0f} times" if ratio >= 1000 else f"{ratio:.3g} times"


def per_cent(share: float) -> str:
    """A share: 97.9 %; below a tenth of a per cent 0 %; from 10 on, `210 times`."""
    if not isfinite(share):
        return "-"
    if share >= MANY_TIMES:
        return times(share)
    return f"{100 * share:.3g} %" if abs(share) >= LEAST_SHARE else "0 %"


def change(share: float | None) -> str:
    """A change with its sign: -5.2 %; from 10 on, `511 times`; from 0 what was 0 before."""
    if share is None:
        return "-"
    if not isfinite(share):
        return "from 0"
    if share >= MANY_TIMES:
        return times(share + 1)
    return f"{share:+.1%}".replace("%", " %") if abs(share) >= LEAST_SHARE else "0 %"


def shorten(text: str, room: int) -> str:
    """The first whole phrases that have room; of a phrase that is longer, its first words."""
    if len(text) <= room:
        return text
    for end in _ENDS:
        places = [found.start() for found in re.finditer(end, text[: room + 2])]
        whole = [place for place in places if place <= room and _closed(text[:place])]
        if whole:
            return text[: whole[-1]]
    return text[: room - 3] + "..."


def _closed(text: str) -> bool:
    """Whether no bracket is open, as in the middle of a node set."""
    return all(text.count(left) == text.count(right) for left, right in ("[]", "()"))
