"""The cores of a node each second, as checks/on_node/network.sh reads them from /proc/stat.

A line has the time (s since 1970) and each core's busy and all ticks since boot. Busy is what is
neither idle nor waiting for storage, as sar's 100 - %idle - %iowait (proc(5), sar(1)).
"""

from __future__ import annotations

import re
from decimal import Decimal

from siteproof.errors import OutputError
from siteproof.parsers import Reading

MAX_CORES = 10_000
END = "end cores"
_LINE = re.compile(r"cores (\d{1,12})((?: \d{1,19}/\d{1,19})+)")

Ticks = list[tuple[int, int]]  # busy and all, of each core
Look = tuple[int, Ticks]  # when, seconds since 1970


def parse(text: str) -> list[Reading]:
    """`busiest_core`: the core with the largest share of busy time from first to last line, in %.

    Raises OutputError if the end is missing or no tick lies between them.
    """
    return [Reading("busiest_core", busiest(whole(text)), "%")]


def whole(text: str) -> list[Look]:
    """Each line before the end. Raises OutputError."""
    lines = text.splitlines()
    if END not in lines or lines.index(END) != len(lines) - 1:
        raise OutputError(f"cores: no '{END}', or more after it")
    return looks("\n".join(lines[:-1]))


def looks(text: str) -> list[Look]:
    """Each line. Raises OutputError."""
    found = []
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if not match:
            raise OutputError("cores: a line is not a look at all cores")
        cores = [core.split("/") for core in match[2].split()]
        if len(cores) > MAX_CORES:
            raise OutputError(f"cores: {len(cores)}, at most {MAX_CORES}")
        found.append((int(match[1]), [(int(busy), int(every)) for busy, every in cores]))
    return found


def busiest(seen: list[Look]) -> Decimal:
    """The largest share of any core, in %. Raises OutputError without two looks at all cores."""
    if len(seen) < 2:
        raise OutputError("cores: fewer than two looks")
    first, last = seen[0][1], seen[-1][1]
    if len(first) != len(last):
        raise OutputError("cores: not the same cores all the time")
    return max(map(_share, first, last)).quantize(Decimal("0.1"))


def _share(before: tuple[int, int], after: tuple[int, int]) -> Decimal:
    busy, all_ticks = after[0] - before[0], after[1] - before[1]
    # The kernel's count of waiting for storage may go back by some ticks (proc(5)).
    if all_ticks <= 0 or busy < -1:
        raise OutputError("cores: a core's ticks do not rise")
    return Decimal(100 * min(max(busy, 0), all_ticks)) / all_ticks
