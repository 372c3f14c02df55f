"""Which entries of the reference's list of files a path belongs to."""

import re

from siteproof.sites import manual

NAMES = r"SYSTEM|PARTITION|SESSION|USER|NAME"


def listed(path: str, below: str) -> list[str]:
    """The paths of those entries. path: relative to the folder `below`."""
    return [
        place.path
        for place in manual.places()
        if place.below == below and re.fullmatch(_pattern(place.path), path)
    ]


def _pattern(place: str) -> str:
    return re.sub(NAMES, "[^/]+", re.escape(place)).replace(r"\*", ".*")
