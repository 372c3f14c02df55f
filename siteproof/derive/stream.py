"""STREAM: the arrays must be too large for the caches.

STREAM's rule 1(a) (stream.c 5.10): each array at least four times the sum of all last-level caches.
"""

from __future__ import annotations

from decimal import Decimal

from siteproof.derive import Derived, Given
from siteproof.errors import OutputError
from siteproof.parsers import values

TIMES_CACHE = 4


def derive(given: Given) -> Derived:
    """Refuse rates of arrays that fit into the caches (OutputError, invalid)."""
    conditions = dict(given.conditions)
    of_node = values.number("stream: last_level_cache", conditions.get("last_level_cache", ""))
    cache = max(of_node, Decimal(given.fact("cache", "0")))
    size = values.number("stream: array_bytes", conditions.get("array_bytes", ""))
    if size < TIMES_CACHE * cache:
        raise OutputError(
            f"an array of {size} bytes is less than {TIMES_CACHE} times the caches ({cache} bytes)",
            "invalid",
        )
    return given.readings, conditions
