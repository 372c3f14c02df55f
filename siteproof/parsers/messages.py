"""What the tables of MPI benchmarks share: a row a message size, each size twice the one before.

OSU's benchmarks and mpi4py's print nothing at their end and not which sizes they were asked for, so
a table that was cut looks like a whole one. It is whole if it reaches the last size: the tool's own
default, or what a line `sizes MIN:MAX` says, which the check's script prints before the tool.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from siteproof.errors import OutputError

_ASKED = re.compile(r"^sizes ([0-9]{1,12}):([0-9]{1,12})\r?$", re.MULTILINE)


def asked(text: str, tool: str, default: tuple[int, int]) -> tuple[int, int]:
    """The first and the last size (bytes) that the tool was asked for. Raises OutputError."""
    found = _ASKED.findall(text)
    if len(found) > 1:
        raise OutputError(f"{tool}: {len(found)} lines 'sizes', appended to one file")
    return (int(found[0][0]), int(found[0][1])) if found else default


def must_be_whole(tool: str, sizes: Sequence[int], first: int, last: int) -> None:
    """Refuse a table in which a size is missing, stands twice or is not in its place.

    The size after 0 is 1, and some versions begin with 1 where 0 was asked for. Raises OutputError.
    """
    if not sizes or sizes[0] not in {first, first or 1}:
        raise OutputError(f"{tool}: the table does not begin with {first} bytes")
    for before, size in zip(sizes, sizes[1:], strict=False):
        if size != (2 * before or 1):
            raise OutputError(f"{tool}: {size} bytes follow {before} bytes")
    if not sizes[-1] <= last < (2 * sizes[-1] or 1):
        raise OutputError(f"{tool}: the table ends with {sizes[-1]} of {last} bytes")
