"""How a state looks, on a terminal and on the page; the sign before it shows without colours."""

from __future__ import annotations

LOOKS = {  # of states; each is the whole text of a cell
    "bad": ("FAIL", "ERROR", "FAILED", "worse", "drift", "worse drift", "misses"),
    "warn": ("REGRESSED", "FLAPPING", "SLOW", "ODD", "UNSTABLE", "nodes fell", "provisional"),
    "open": ("INCOMPLETE", "PENDING", "UNTESTED", "UNDECIDED", "PUBLISHED", "undecidable"),
    "good": ("PASS", "OK", "better", "keeps"),
    "none": ("SKIP",),
}
SIGNS = {"bad": "\N{BALLOT X}", "warn": "!", "open": "?", "good": "\N{CHECK MARK}", "none": "–"}
_OF = {state: look for look, states in LOOKS.items() for state in states}


def look(text: str) -> str:
    """The look of a state; empty for any other text."""
    return _OF.get(text, "")
