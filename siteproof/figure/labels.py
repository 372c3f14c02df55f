"""Where labels stand without lying on each other, and how figures and dates are written."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from math import floor, log10

from siteproof.figure.canvas import SMALL, WIDTH

LETTER = 0.58  # of the letters' height: how wide one is in a wide font, on average
MOST_TICKS = 7


def number(value: float) -> str:
    """A figure for people: four significant digits, and no exponent."""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def numbers(values: Sequence[float]) -> list[str]:
    """Figures side by side: with as many digits as tell them apart."""
    for digits in (4, 6, 8, 12):
        told = [f"{v:.0f}" if digits == 4 and abs(v) >= 1000 else f"{v:.{digits}g}" for v in values]
        if len(set(told)) == len(set(values)):
            break
    return told


def short(text: str, most: int) -> str:
    """A text whose lines have so many letters at most; what is left out is told by an ellipsis."""
    return "\n".join(
        line if len(line) <= most else line[: most - 1] + "…" for line in text.splitlines()
    )


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
    """A lane for each span (left, right), so that none lies on another; None: no room.

    Spans that come first get the lower lanes.
    """
    taken: list[list[tuple[float, float]]] = [[] for _ in range(most)]
    found: list[int | None] = []
    for left, right in spans:
        free = next(
            (n for n, held in enumerate(taken) if all(right < a or left > b for a, b in held)), None
        )
        if free is not None:
            taken[free].append((left, right))
        found.append(free)
    return found


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
        step = -(-int(days / 365) // MOST_TICKS)
        years = range(first.year, last.year + 1)
        found = [datetime(y, 1, 1, tzinfo=UTC) for y in years if y % max(step, 1) == 0]
        told = [(at, f"{at:%Y}") for at in found]
    elif days > 60:
        step = next(n for n in (1, 2, 3, 6) if days / 30.4 / n <= MOST_TICKS or n == 6)
        months = range(first.year * 12 + first.month - 1, last.year * 12 + last.month)
        found = [datetime(m // 12, m % 12 + 1, 1, tzinfo=UTC) for m in months if m % step == 0]
        told = [(at, f"{at:%Y-%m}") for at in found]
    else:
        step = next(n for n in (1, 2, 7, 14) if days / n <= MOST_TICKS or n == 14)
        start = datetime(first.year, first.month, first.day, tzinfo=UTC)
        found = [start + timedelta(days=n) for n in range(0, int(days) + 2, step)]
        told = [(at, f"{at:%m-%d}") for at in found if at >= first]
        told[:1] = [(at, f"{at:%Y-%m-%d}") for at, _ in told[:1]]
    inside = [(at, text) for at, text in told if first <= at <= last]
    return inside or [(first, f"{first:%Y-%m-%d}")]
