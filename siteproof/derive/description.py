"""A description: counts and a digest as samples, the thousands of texts beside them."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from siteproof.parsers import Reading, description
from siteproof.record import descriptions

if TYPE_CHECKING:
    from siteproof.collect.raw import Raw


def derive(
    readings: list[Reading], conditions: Mapping[str, str], raw: Raw, facts: Mapping[str, object]
) -> tuple[list[Reading], dict[str, str]]:
    """How many fields were read and not read, and a digest of them all instead of them all."""
    fields = {r.metric: str(r.value) for r in readings}
    return [
        Reading("fields", Decimal(len(fields)), "count"),
        Reading("unreadable", Decimal(len(description.unreadable(raw.stdout))), "count"),
        Reading("digest", descriptions.digest(fields), "text"),
    ], dict(conditions)


def aside(readings: list[Reading], raw: Raw) -> dict[str, str]:
    """Every field, and what could not be read with the reason."""
    unread = description.unreadable(raw.stdout)
    return {r.metric: str(r.value) for r in readings} | {
        f"{descriptions.UNREADABLE}{name}": why for name, why in unread.items()
    }
