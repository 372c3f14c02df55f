"""Words that several chapters share: times, node sets, counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from math import isfinite

from siteproof import nodesets
from siteproof.units import with_unit

DIGITS = 6  # significant ones of a figure that was worked out


def when(moment: datetime | str) -> str:
    """A time in UTC, to the minute: 2026-11-21 18:00 UTC."""
    if isinstance(moment, str):
        moment = datetime.fromisoformat(moment)
    return f"{(moment if moment.tzinfo is None else moment.astimezone(UTC)):%Y-%m-%d %H:%M} UTC"


def day(moment: datetime | str) -> str:
    """A day in UTC: 2026-11-21."""
    return when(moment)[:10]


def nodes(names: Iterable[str]) -> str:
    """Nodes as a set, folded."""
    return str(nodesets.of(names))


def counted(pairs: Iterable[tuple[str, int]]) -> str:
    """`2 FAIL, 9 PASS`, without what there is none of."""
    return ", ".join(f"{number} {word}" for word, number in pairs if number)


def few(texts: Sequence[str], most: int, joint: str = ", ") -> str:
    """The first few of them, and how many more there are."""
    rest = [f"{len(texts) - most} more"] if len(texts) > most else []
    return joint.join([*texts[:most], *rest])


def percent_change(change: float | None) -> str:
    """A change with its sign: -5.2 %."""
    return "-" if change is None else f"{change:+.1%}".replace("%", " %")


def per_cent(part: float) -> str:
    """A part of something: 97.9 %; from ten times on, `210 times`."""
    if not isfinite(part):
        return "-"
    return f"{part:.3g} times" if part >= 10 else f"{part:.1%}".replace("%", " %")


def figure(value: float, unit: str = "") -> str:
    """A figure that was worked out, with its unit."""
    told = f"{value:.{DIGITS}g}"
    if "e" in told and 1e-4 <= abs(value) < 1e12:
        told = f"{float(told):.0f}"
    return with_unit(told, unit)


def period(moments: Sequence[str]) -> str:
    """From the first to the last of these times; one, if they are of the same minute."""
    told = sorted({when(moment) for moment in moments})
    return told[0] if len(told) == 1 else f"{told[0]} to {told[-1]}" if told else "never"
