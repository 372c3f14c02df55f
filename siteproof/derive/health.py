"""Health: how many things could not be read, and which, beside those that could."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from siteproof.parsers import Reading, health

if TYPE_CHECKING:
    from siteproof.collect.raw import Raw


def derive(
    readings: list[Reading], conditions: Mapping[str, str], raw: Raw, facts: Mapping[str, object]
) -> tuple[list[Reading], dict[str, str]]:
    """Add the count unreadable, and a text for each thing that could not be read."""
    unread = health.unreadable(raw.stdout)
    details = [
        Reading("not_read", why, "text", {"parameter": name}) for name, why in unread.items()
    ]
    return [Reading("unreadable", Decimal(len(unread)), "count"), *readings, *details], dict(
        conditions
    )
