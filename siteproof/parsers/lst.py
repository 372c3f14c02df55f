"""LNET selftest: `lst stat GROUP…` and then `lst show_error GROUP…`, stdout and stderr in one text.

Written after the Lustre manual and the source of lst (2.15); it was never run here. The rate of a
group is `Avg`, the share of one of its nodes: a group's total is that times its nodes. R is what
its nodes received, W what they sent. MiB/s are 2**20 bytes. `MB/s` is refused: older versions mean
2**20 bytes by it and newer ones (--mbs) 10**6, and nothing in the output tells which.

`lst stat` prints a block an interval until it is stopped; the first may have begun before the batch
was at speed. The reading is the median of the blocks (the lower of two in the middle), unrounded.
"""

from __future__ import annotations

import re
from collections import defaultdict
from decimal import Decimal
from statistics import median_low

from siteproof.errors import OutputError
from siteproof.parsers import Reading, figures, lines

METRICS = {"R": "read", "W": "write"}
LONGEST = 100  # characters of a message

_BLOCK = re.compile(r"\[LNet (Rates|Bandwidth) of (\S{1,60})\]")
_RATE = re.compile(r"\[([RW])\] Avg: (\S+) (\S+)(?: Min: \S+ \S+)?(?: Max: \S+ \S+)?")
_TOTAL = re.compile(r"Total ([0-9]{1,9}) error nodes in (\S{1,60})")
_FAILED = re.compile(
    r".*\b(?:RPC|Framework) failure.*|.*\[Session [0-9-]+ brw errors.*|Failed to stat on .*|"
    r"Group is changed.*"
)
_NOT_RUN = re.compile(r"Failed to (?!stat on ).*|Can't find env LST_SESSION.*|No nodes added .*")


def parse(text: str) -> list[Reading]:
    """read and write (MiB/s a node of the group, the median of all intervals), dims {"group": …}.

    A way in which nothing moved is left out. Raises OutputError with lst's words: `invalid` if a
    node had an error, `generic` if lst could not run.
    """
    said = [line for line in lines.harmless(text) if line]
    for pattern, status in ((_FAILED, "invalid"), (_NOT_RUN, "generic")):
        if bad := next(filter(pattern.fullmatch, said), ""):
            raise OutputError(f"lst: {bad[:LONGEST]}", status)
    rates = _rates(said)
    totals = [match.groups() for line in said if (match := _TOTAL.fullmatch(line))]
    if wrong := [group for count, group in totals if int(count)]:
        raise OutputError(f"lst: nodes of {', '.join(wrong)[:LONGEST]} had errors", "invalid")
    groups = list(dict.fromkeys(group for group, _ in rates))
    if not groups or sorted(group for _, group in totals) != sorted(groups):
        raise OutputError("lst: no rates, or show_error does not speak of each group once")
    if len({len(values) for values in rates.values()}) != 1 or len(rates) != 2 * len(groups):
        raise OutputError("lst: an interval is not complete")
    readings = [
        Reading(METRICS[way], median_low(values), "MiB/s", {"group": group})
        for (group, way), values in rates.items()
        if median_low(values)
    ]
    if not readings:
        raise OutputError("lst: nothing moved", "invalid")
    return readings


def conditions(text: str) -> dict[str, str]:
    """intervals: how many each figure is the median of."""
    blocks = [
        m[2]
        for line in lines.harmless(text)
        if (m := _BLOCK.fullmatch(line)) and m[1] == "Bandwidth"
    ]
    return {"intervals": str(blocks.count(blocks[0]))} if blocks else {}


def _rates(said: list[str]) -> dict[tuple[str, str], list[Decimal]]:
    """Of each group and way the average of each interval, in MiB/s."""
    rates: dict[tuple[str, str], list[Decimal]] = defaultdict(list)
    kind = group = ""
    for line in said:
        if block := _BLOCK.fullmatch(line):
            kind, group = block.groups()
        elif (rate := _RATE.fullmatch(line)) and kind == "Bandwidth":
            if rate[3] != "MiB/s":
                raise OutputError(f"lst: a rate in '{rate[3][:20]}', where MiB/s is expected")
            rates[group, rate[1]].append(figures.number(f"lst: rate of {group}", rate[2]))
        elif not rate:
            kind = ""
    return rates
