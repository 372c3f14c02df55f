"""What the tables of MPI benchmarks share: a row a message size, each size twice the one before.

OSU's benchmarks and mpi4py's print nothing at their end and not which sizes they measure, so
a table that was cut looks like a whole one. It is whole if it reaches the last size: the tool's own
default, or that of a line `sizes MIN:MAX`, which the check's script prints before the tool.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal

from siteproof.errors import OutputError
from siteproof.parsers import Reading, values

_REQUESTED = re.compile(r"^sizes ([0-9]{1,12}):([0-9]{1,12})\r?$", re.MULTILINE)


def requested(text: str, tool: str, default: tuple[int, int]) -> tuple[int, int]:
    """The first and the last size (bytes) that the tool had to measure. Raises OutputError."""
    found = _REQUESTED.findall(text)
    if len(found) > 1:
        raise OutputError(f"{tool}: {len(found)} lines 'sizes', appended to one file")
    return (int(found[0][0]), int(found[0][1])) if found else default


def must_be_whole(tool: str, sizes: Sequence[int], first: int, last: int) -> None:
    """Refuse a table in which a size is missing, occurs twice or is not in its place.

    Raises OutputError.
    """
    # Some versions begin with 1 where 0 was requested.
    if not sizes or sizes[0] not in {first, first or 1}:
        raise OutputError(f"{tool}: the table does not begin with {first} bytes")
    for before, size in zip(sizes, sizes[1:], strict=False):
        if size != _after(before):
            raise OutputError(f"{tool}: {size} bytes follow {before} bytes")
    if not sizes[-1] <= last < _after(sizes[-1]):
        raise OutputError(f"{tool}: the table ends with {sizes[-1]} of {last} bytes")


def latency_and_bandwidth(
    tool: str, size: str, latency: Reading, rate: str, seconds: Decimal
) -> list[Reading]:
    """A row's two readings. A bandwidth that is printed as 0.00 is left out.

    latency: as printed. seconds: the same. rate: in MB/s. Raises OutputError where they disagree.
    """
    what = f"{tool}: bandwidth of {size} bytes"
    bandwidth = values.number(what, rate)
    values.must_agree(what, bandwidth, values.number(f"{tool}: size", size).scaleb(-6), seconds)
    if not bandwidth:
        return [latency]
    return [latency, Reading("bandwidth", bandwidth, "MB/s", latency.dims)]


def _after(size: int) -> int:
    return 2 * size if size else 1
