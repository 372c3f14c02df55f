"""LNET selftest: `lst stat GROUP…` and then `lst show_error GROUP…`, stdout and stderr in one text.

Written after the Lustre manual and the source of lst (2.15); it was never run here. The rate of a
group is `Avg`, the share of one of its nodes: a group's total is that times its nodes. R is what
its nodes received, W what they sent. MiB/s are 2**20 bytes. `MB/s` is refused: older versions mean
2**20 bytes by it and newer ones (--mbs) 10**6, and nothing in the output shows which.

`lst stat` prints a block an interval until it is stopped; the first may have begun before the batch
was at speed. The reading is the median of the blocks (of an even number the lower of the two),
unrounded.
"""

from __future__ import annotations

import re
from collections import defaultdict
from decimal import Decimal
from statistics import median_low

from siteproof.errors import OutputError
from siteproof.parsers import Reading, values

NEEDS = "lst stat of LNET selftest in MiB/s, and lst show_error"

METRICS = {"R": "read", "W": "write"}

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

    A direction in which nothing moved is left out. Raises OutputError with lst's message: `invalid`
    if a node had an error, `generic` if lst could not run.
    """
    printed = values.filled(text)
    values.must_not_report("lst", _FAILED, text, "invalid")
    values.must_not_report("lst", _NOT_RUN, text)
    totals = [match for match in map(_TOTAL.fullmatch, printed) if match]
    if wrong := [match[2] for match in totals if int(match[1])]:
        named = ", ".join(wrong)[: values.LONGEST_MESSAGE]
        raise OutputError(f"lst: nodes of {named} had errors", "invalid")
    groups = [match[2] for match in totals]
    rates = _rates(printed)
    if not groups or sorted(groups) != sorted({group for group, _ in rates}):
        raise OutputError("lst: no rates, or show_error does not name each group once")
    intervals = {len(each) for each in rates.values()}
    if len(intervals) != 1 or len(rates) != 2 * len(groups):
        raise OutputError("lst: an interval is not complete")
    readings = [
        Reading(METRICS[direction], rate, "MiB/s", {"group": group})
        for (group, direction), each in rates.items()
        if (rate := median_low(each))
    ]
    if not readings:
        raise OutputError("lst: nothing moved", "invalid")
    return readings


def conditions(text: str) -> dict[str, str]:
    """intervals: how many each value is the median of."""
    blocks = filter(None, map(_BLOCK.fullmatch, values.harmless(text)))
    groups = [block[2] for block in blocks if block[1] == "Bandwidth"]
    return {"intervals": str(groups.count(groups[0]))} if groups else {}


def _rates(printed: list[str]) -> dict[tuple[str, str], list[Decimal]]:
    """Of each group and direction (R, W) the average of each interval, in MiB/s."""
    rates: dict[tuple[str, str], list[Decimal]] = defaultdict(list)
    kind = group = ""
    for line in printed:
        if block := _BLOCK.fullmatch(line):
            kind, group = block.groups()
            continue
        rate = _RATE.fullmatch(line)
        if rate is None:
            kind = ""
        elif kind == "Bandwidth":
            if rate[3] != "MiB/s":
                raise OutputError(f"lst: a rate in '{rate[3][:20]}', expected MiB/s")
            rates[group, rate[1]].append(values.number(f"lst: rate of {group}", rate[2]))
    return rates
