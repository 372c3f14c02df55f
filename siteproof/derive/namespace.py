"""Namespace: how many paths a node sees, with a digest, and all paths next to the samples."""

from __future__ import annotations

from siteproof.derive import Derived, Given
from siteproof.parsers import Reading, namespace
from siteproof.record import descriptions


def derive(given: Given) -> Derived:
    """Add `digest`, which is equal where all paths are."""
    digest = Reading("digest", descriptions.digest(aside(given)), "text")
    return [*given.readings, digest], {**given.conditions, "folder": given.fact("folder")}


def aside(given: Given) -> dict[str, str]:
    """Every path, in the form of a node's fields."""
    return dict.fromkeys(namespace.paths(given.raw.stdout), "")
