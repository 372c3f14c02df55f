"""Health: how many values could not be read, and which, next to those that could."""

from __future__ import annotations

from decimal import Decimal

from siteproof.derive import Derived, Given
from siteproof.parsers import Reading, lines


def derive(given: Given) -> Derived:
    """Add the count unreadable, and a text for each value that could not be read."""
    unreadable = lines.unreadable(given.raw.stdout)
    count = Reading("unreadable", Decimal(len(unreadable)), "count")
    return [count, *given.readings, *not_read(unreadable)], dict(given.conditions)


def not_read(unreadable: dict[str, str]) -> list[Reading]:
    """A text for each value that a node could not read, with the reason."""
    return [
        Reading("not_read", why, "text", {"parameter": name}) for name, why in unreadable.items()
    ]
