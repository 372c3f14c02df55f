"""Places of labels so that none covers another, and values and dates as texts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from math import ceil, floor, log10

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
    """Values with as many digits as make different ones differ."""
    shown: list[str] = []
    for digits in (4, 6, 8, 12):
        shown = [_digits(value, digits) for value in values]
        if len(set(shown)) == len(set(values)):
            break
    return shown


def short(text: str, most: int) -> str:
    """A text whose lines have so many letters at most; an ellipsis stands for the rest."""
    lines = [line if len(line) <= most else f"{line[: most - 1]}…" for line in text.splitlines()]
    return "\n".join(lines)


def wide(text: str, size: float = SMALL) -> float:
    """Units that a text takes, generously."""
    return LETTER * size * max(map(len, text.splitlines()), default=0)


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
    return [_lane(taken, span) for span in spans]


def _lane(taken: Sequence[list[tuple[float, float]]], span: tuple[float, float]) -> int | None:
    """Put a span into the first lane that has room, and return the lane's number."""
    for number, lane in enumerate(taken):
        if all(span[1] < left or span[0] > right for left, right in lane):
            lane.append(span)
            return number
    return None


def side_of(x: float, text: str, left: float, right: float) -> tuple[str, tuple[float, float]]:
    """Which end of a text is at a place, and the span of the text."""
    width = wide(text) + 4
    if x + width <= right or x - width < left:
        return "left", (x, x + width)
    return "right", (x - width, x)


def nice_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers within a range."""
    if not high > low:
        return [low]
    rough = (high - low) / most
    power = 10.0 ** floor(log10(rough))
    steps = [power * factor for factor in (1, 2, 2.5, 5, 10)]
    step = next(step for step in steps if step >= rough * 0.999)
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return [round(n * step, 12) for n in range(first, last + 1)]


def date_ticks(first: datetime, last: datetime) -> list[tuple[datetime, str]]:
    """Some round dates between two moments, each as a text: years, months or days."""
    days = max((last - first).total_seconds() / 86400, 0.0)
    if days > 365 * 2.5:
        form, found = "%Y", _months(first, last, 12 * _step(days / 365, range(1, 200)))
    elif days > 60:
        form, found = "%Y-%m", _months(first, last, _step(days / 30.4, (1, 2, 3, 6)))
    else:
        form, found = "%m-%d", _days(first, int(days) + 2, _step(days, (1, 2, 7, 14)))
    inside = [at for at in found if first <= at <= last] or [first]
    texts = [f"{at:{form}}" for at in inside]
    if form == "%m-%d" or inside == [first]:
        texts[0] = f"{inside[0]:%Y-%m-%d}"
    return list(zip(inside, texts, strict=True))


def _step(many: float, steps: Sequence[int]) -> int:
    """The first of these steps with MAX_TICKS ticks at most; else the last."""
    fitting = [step for step in steps if many / step <= MAX_TICKS]
    return fitting[0] if fitting else steps[-1]


def _days(first: datetime, many: int, step: int) -> list[datetime]:
    """Every so many days from the day of a moment on."""
    start = datetime(first.year, first.month, first.day, tzinfo=UTC)
    return [start + timedelta(n) for n in range(0, many, step)]


def _months(first: datetime, last: datetime, step: int) -> list[datetime]:
    """The first of every so many months."""
    months = range(first.year * 12 + first.month - 1, last.year * 12 + last.month)
    return [datetime(m // 12, m % 12 + 1, 1, tzinfo=UTC) for m in months if m % step == 0]
