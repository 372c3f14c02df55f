"""A value as others print it: 113.1, >166, 166<, <25, ~60, 15-20.

A bound is not a value and a range is two, so the form is kept with the digits.
"""

from __future__ import annotations

import re

STATED = "stated"  # the condition for it; exact values have none
MORE, LESS, ABOUT = "more than", "less than", "about"
LOW, HIGH = "low end of a range", "high end of a range"
FORMS = "digits, such as 113.1, or >166, <25, ~60, 15-20"
_NUMBER = r"[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?"
_SIGNED = re.compile(rf"(?P<sign>[<>~])?\s*(?P<digits>[+-]?{_NUMBER})")
_BEHIND = re.compile(rf"(?P<digits>{_NUMBER})\s*<")  # 166<: there is more beyond it
_RANGE = re.compile(rf"({_NUMBER})\s*-\s*({_NUMBER})")
_WORDS = {">": MORE, "<": LESS, "~": ABOUT, None: ""}
_SIGNS = {MORE: "> ", LESS: "< ", ABOUT: "~ ", LOW: "from ", HIGH: "to "}


def parts(text: str) -> list[tuple[str, str]]:
    """The digits, and what they are of the value; empty: itself. Raises ValueError."""
    if match := _SIGNED.fullmatch(text):
        return [(match["digits"], _WORDS[match["sign"]])]
    if match := _BEHIND.fullmatch(text):
        return [(match["digits"], MORE)]
    if match := _RANGE.fullmatch(text):
        return [(match[1], LOW), (match[2], HIGH)]
    raise ValueError(text)


def sign(stated: str) -> str:
    """What stands before the digits of a sample for people; empty for an exact value."""
    return _SIGNS.get(stated, "")
