"""A text with less room than it has words: whole phrases of it."""

from __future__ import annotations

import re

_ENDS = (r"[;,](?= )", r":(?= )", r"(?= )")  # of phrases, of what a phrase is about, of words


def shorten(text: str, room: int) -> str:
    """The first whole phrases that have room; of a phrase that is longer, its first words."""
    if len(text) <= room:
        return text
    for end in _ENDS:
        places = [found.start() for found in re.finditer(end, text[: room + 2])]
        whole = [place for place in places if place <= room and _closed(text[:place])]
        if whole:
            return text[: whole[-1]]
    return text[: room - 3] + "..."


def _closed(text: str) -> bool:
    """Whether no bracket is open, as in the middle of a node set."""
    return all(text.count(left) == text.count(right) for left, right in ("[]", "()"))
