"""What a centre's own program prints in a workload, up to the line that the check adds at its end.

The line that shows a right answer is in the site; collect/derive/apps.py looks for it.
"""

from __future__ import annotations

from siteproof.errors import OutputError
from siteproof.parsers import Reading, count, values

NEEDS = "the output of a workload's 'command', with the line that Workload adds at its end"
END = "own_program"


def parse(text: str) -> list[Reading]:
    """lines (count). Raises OutputError where nothing is printed, or the end is missing."""
    found = values.whole(text, END)
    if not found:
        raise OutputError("the program printed nothing")
    return [count("lines", len(found))]
