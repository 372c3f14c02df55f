"""A description: counts and a digest as samples, the thousands of texts next to them."""

from __future__ import annotations

from decimal import Decimal

from siteproof.derive import Derived, Given
from siteproof.parsers import Reading, description
from siteproof.record import descriptions


def derive(given: Given) -> Derived:
    """How many fields were read and not read, and a digest of them all instead of them all."""
    fields = {r.metric: str(r.value) for r in given.readings}
    unreadable = description.unreadable(given.raw.stdout)
    return [
        Reading("fields", Decimal(len(fields)), "count"),
        Reading("unreadable", Decimal(len(unreadable)), "count"),
        Reading("digest", descriptions.digest(fields), "text"),
    ], dict(given.conditions)


def aside(given: Given) -> dict[str, str]:
    """Every field, and what could not be read with the reason."""
    texts = {r.metric: str(r.value) for r in given.readings}
    for name, why in description.unreadable(given.raw.stdout).items():
        texts[f"{descriptions.UNREADABLE}{name}"] = why
    return texts
