"""Lustre: what a client has read, and a text for each part that it could not read."""

from __future__ import annotations

from siteproof.derive import Derived, Given
from siteproof.derive.health import not_read
from siteproof.parsers import lines


def derive(given: Given) -> Derived:
    """The readings as they are, and why others are missing."""
    return [*given.readings, *not_read(lines.unreadable(given.raw.stdout))], dict(given.conditions)
