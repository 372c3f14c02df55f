"""Listings of the same folder, made from several places: the paths that not all of them have."""

from __future__ import annotations

from collections.abc import Collection, Mapping


def differing(listings: Mapping[str, Collection[str]], depth: int) -> dict[str, list[str]]:
    """Each path that some places lack, with these places; in the order of the paths.

    depth: levels of folders that every place has listed; deeper paths are not compared.
    """
    every = {path for listed in listings.values() for path in listed if path.count("/") < depth}
    lacking = {}
    for path in sorted(every):
        without = [place for place, listed in listings.items() if path not in listed]
        if without:
            lacking[path] = without
    return lacking
