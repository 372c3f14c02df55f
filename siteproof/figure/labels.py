"""Where labels stand without lying on each other, and how figures and dates are written."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from math import floor, log10

from siteproof.figure.canvas import SMALL, WIDTH

LETTER = 0.58  # of the letters' height: how wide one is in a wide font, on average
MAX_TICKS = 7


def number(value: float) -> str:
    """A value for people: four significant digits, and no exponent."""
    return _digits(value, 4)


def _digits(value: float, digits: int) -> str:
    if digits == 4 and abs(value) >= 1000:
        return f"{value:.0f}"
    return f"{value:.{digits}g}"


def numbers(values: Sequence[float]) -> list[str]:
    """Values side by side: with as many digits as tell them apart."""
    shown: list[str] = []
    for digits in (4, 6, 8, 12):
        shown = [_digits(value, digits) for value in values]
        if len(set(shown)) == len(set(values)):
            break
    return shown


def short(text: str, most: int) -> str:
    """A text whose lines have so many letters at most; an ellipsis stands for the rest."""
    lines = text.splitlines()
    return "\n".join(x if len(x) <= most else f"{x[: most - 1]}…" for x in lines)


def wide(text: str, size: float = SMALL) -> float:
    """Units that a text takes, generously."""
    return LETTER * size * max(map(len, text.splitlines() or [""]))


def letters(room: float, size: float = SMALL) -> int:
    """How many letters surely fit into so many units; one at least."""
    return max(1, int(room / (LETTER * size)))


def legend_columns(names: Sequence[str]) -> int:
    """Two where every name fits into half of the figure."""
    return 2 if all(wide(name) < WIDTH / 2 - 40 for name in names) else 1


def lanes(spans: Sequence[tuple[float, float]], most: int) -> list[int | None]:
    """A lane for each span (left, right), so that none covers another; None: no room.

    Spans that come first get the lower lanes.
    """
    taken: list[list[tuple[float, float]]] = [[] for _ in range(most)]
    found: list[int | None] = []
    for span in spans:
        free = next((n for n, lane in enumerate(taken) if _is_free(lane, span)), None)
        if free is not None:
            taken[free].append(span)
        found.append(free)
    return found


def _is_free(lane: Sequence[tuple[float, float]], span: tuple[float, float]) -> bool:
    return all(span[1] < left or span[0] > right for left, right in lane)


def side_of(x: float, text: str, left: float, right: float) -> tuple[str, tuple[float, float]]:
    """Which side of a place a text stands at, left or right of it, and its span."""
    width = wide(text) + 4
    if x + width <= right or x - width < left:
        return "left", (x, x + width)  # its left end is at the place
    return "right", (x - width, x)


def nice_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers within a range."""
    if not high > low:
        return [low]
    rough = (high - low) / most
    power = 10.0 ** floor(log10(rough))
    step = next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= rough * 0.999)
    first = -floor(-low / step + 1e-9)
    return [round(n * step, 12) for n in range(first, floor(high / step + 1e-9) + 1)]


def date_ticks(first: datetime, last: datetime) -> list[tuple[datetime, str]]:
    """Some round dates between two moments, each as a text: years, months or days."""
    days = max((last - first).total_seconds() / 86400, 0.0)
    if days > 365 * 2.5:
        form, found = "%Y", _months(first, last, 12 * _step(days / 365, range(1, 200)))
    elif days > 60:
        form, found = "%Y-%m", _months(first, last, _step(days / 30.4, (1, 2, 3, 6)))
    else:
        start = datetime(first.year, first.month, first.day, tzinfo=UTC)
        step = _step(days, (1, 2, 7, 14))
        form, found = "%m-%d", [start + timedelta(n) for n in range(0, int(days) + 2, step)]
    inside = [at for at in found if first <= at <= last] or [first]
    told = [(at, f"{at:{form}}") for at in inside]
    if form == "%m-%d" or inside == [first]:
        told[0] = (inside[0], f"{inside[0]:%Y-%m-%d}")
    return told


def _step(many: float, steps: Sequence[int]) -> int:
    """The first of these steps that leaves few enough ticks; else the last."""
    return next((step for step in steps if many / step <= MAX_TICKS), steps[-1])


def _months(first: datetime, last: datetime, step: int) -> list[datetime]:
    """The first of every so many months."""
    months = range(first.year * 12 + first.month - 1, last.year * 12 + last.month)
    return [datetime(m // 12, m % 12 + 1, 1, tzinfo=UTC) for m in months if m % step == 0]
