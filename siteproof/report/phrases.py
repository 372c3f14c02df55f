"""Times, node sets, counts and values as texts, for several chapters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from siteproof import nodesets

ROOM = 40  # characters of a node set


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


def some_nodes(names: Iterable[str], room: int = ROOM) -> str:
    """Nodes as a set; of many that do not fold, the first, and how many more there are.

    room: characters of the set.
    """
    known = sorted(names)
    shown = known
    while len(shown) > 1 and len(nodes(shown)) > room:
        shown = shown[: len(shown) * 3 // 4]
    rest = len(known) - len(shown)
    return nodes(shown) + (f" and {rest} more" if rest else "")


def counted(pairs: Iterable[tuple[str, int]]) -> str:
    """`2 FAIL, 9 PASS`, without those of which there are none."""
    return ", ".join(f"{number} {name}" for name, number in pairs if number)


def few(texts: Sequence[str], most: int, joint: str = ", ") -> str:
    """The first few of them, and how many more there are."""
    shown = list(texts[:most])
    if len(texts) > most:
        shown.append(f"{len(texts) - most} more")
    return joint.join(shown)


def period(moments: Sequence[str]) -> str:
    """From the first to the last of these times; one time if they are of the same minute."""
    minutes = sorted({when(moment) for moment in set(moments)})
    if not minutes:
        return "never"
    if len(minutes) == 1:
        return minutes[0]
    return f"{minutes[0].removesuffix(' UTC')} to {minutes[-1]}"
