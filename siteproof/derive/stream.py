"""STREAM: the arrays must be too large for the caches.

STREAM's rule 1(a) (stream.c 5.10): each array at least four times the sum of all last-level caches.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from siteproof.errors import OutputError
from siteproof.parsers import Reading, figures

if TYPE_CHECKING:
    from siteproof.collect.raw import Raw

TIMES_CACHE = 4


def derive(
    readings: list[Reading], conditions: Mapping[str, str], raw: Raw, facts: Mapping[str, object]
) -> tuple[list[Reading], dict[str, str]]:
    """Refuse rates of arrays that fit into the caches (OutputError, invalid)."""
    seen = figures.number("stream: last_level_cache", conditions.get("last_level_cache", ""))
    cache = max(seen, Decimal(str(facts.get("cache") or 0)))
    size = figures.number("stream: array_bytes", conditions.get("array_bytes", ""))
    if size < TIMES_CACHE * cache:
        raise OutputError(
            f"an array of {size} bytes is less than {TIMES_CACHE} times the caches ({cache} bytes)",
            "invalid",
        )
    return readings, dict(conditions)
