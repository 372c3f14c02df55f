"""The trivial script's output: text in, readings out."""

from __future__ import annotations

import re
from decimal import Decimal

from siteproof.errors import OutputError
from siteproof.parsers import Reading


def parse(text: str) -> list[Reading]:
    """The answer. Raises OutputError if there is none."""
    found = re.search(r"^answer (\d+)$", text, re.MULTILINE)
    if not found:
        raise OutputError("trivial: no answer")
    return [Reading("answer", Decimal(found[1]), "count")]


def conditions(text: str) -> dict[str, str]:
    """None."""
    return {}
