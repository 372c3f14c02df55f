"""all_reduce_perf of nccl-tests and rccl-tests: text in, readings out.

Their GB/s are 10**9 bytes per second. Of the two halves of a row, out of place and in place, the
first is taken. The bus bandwidth is that of a rank's links, algbw x 2 (n - 1) / n for n ranks
(nccl-tests' doc/PERFORMANCE.md). With -c 1, the default, each number of each result is compared,
and `#wrong` counts those that are not right.
"""

from __future__ import annotations

import re
from decimal import Decimal

from siteproof.errors import OutputError
from siteproof.parsers import Reading, values

NEEDS = "all_reduce_perf -f 2 with validation, up to its last lines, of all ranks together"

TOOL = "nccl_tests"
_SETUP = re.compile(
    r"^# nThread [0-9]{1,4} nGpus [0-9]{1,4} minBytes ([0-9]{1,15}) maxBytes ([0-9]{1,15}) "
    r"step: (\S{1,20}) .{0,80}validation: ([0-9]{1,6})\b",
    re.MULTILINE,
)
_RANK = re.compile(
    r"^# +Rank +([0-9]{1,7}) .{0,60}\bon +(\S{1,100}) device +([0-9]{1,4}) \[\S{1,30}\] .*$",
    re.MULTILINE,
)
_HALF = r"[ \t]+(\S{1,12})[ \t]+(\S{1,12})[ \t]+(\S{1,12})[ \t]+([0-9.eE+]{1,12}\*?|N/A)"
_ROW = re.compile(
    r"^[ \t]*([0-9]{1,15})[ \t]+[0-9]{1,15}[ \t]+(\w{1,12})[ \t]+(\w{1,8})[ \t]+-1"
    rf"{_HALF}{_HALF}[ \t]*$",
    re.MULTILINE,
)
_BOUNDS = re.compile(r"^# Out of bounds values +: ([0-9]{1,15}) (OK|FAILED)", re.MULTILINE)
_VERSION = re.compile(
    r"^(?:# nccl-tests version |rccl-tests: Version )([\w.:+-]{1,40})", re.MULTILINE
)
_LIBRARY = re.compile(
    r"\bnccl-library=([0-9]{1,9})|^.{0,40}\b[NR]CCL version ([\w.+-]{1,40})", re.M
)


def parse(text: str) -> list[Reading]:
    """bus_bandwidth (GB/s) and time (us) with dims {"size": bytes}; gpus, how many took part.

    Raises OutputError: `invalid` if a result was wrong, or validation was off.
    """
    first, last, step, validation = values.one(f"{TOOL}: lines of settings", _SETUP, text)
    if validation == "0":
        raise OutputError(f"{TOOL}: run without validation (-c 0)", "invalid")
    bounds = values.one(f"{TOOL}: lines 'Out of bounds values'", _BOUNDS, text)
    rows = _ROW.findall(text)
    wrong = [row[0] for row in rows if {row[6], row[10]} != {"0"}]
    if wrong or bounds != ("0", "OK"):
        sizes = f" at {', '.join(wrong[:5])} bytes" if wrong else ""
        raise OutputError(f"{TOOL}: wrong results{sizes}, {bounds[0]} out of bounds", "invalid")
    if step != "2(factor)":
        raise OutputError(f"{TOOL}: sizes by '{step}', and not each twice the one before")
    values.must_be_whole(TOOL, [int(row[0]) for row in rows], int(first), int(last))
    ranks = len(_ranks(text))
    if ranks < 2:
        raise OutputError(f"{TOOL}: one GPU, which has nothing to reduce", "generic")
    found = [Reading("gpus", Decimal(ranks), "count")]
    for size, _, _, time, rate, bus, *_ in rows:
        found += _readings(size, time, rate, bus, ranks)
    return found


def conditions(text: str) -> dict[str, str]:
    """version of the tests, nccl (the library), datatype, redop, and that results are compared."""
    found = values.printed({"version": _VERSION}, text)
    if library := _LIBRARY.search(text):
        found["nccl"] = library[1] or library[2]
    if row := _ROW.search(text):
        found |= {"datatype": row[2], "redop": row[3]}
    return {**found, "validated": "yes"}


def hosts(text: str) -> set[str]:
    """The hosts of the ranks."""
    return {host for host, _ in _ranks(text).values()}


def _ranks(text: str) -> dict[int, tuple[str, str]]:
    """Host and device of each rank. Raises OutputError unless they are 0, 1, 2 ..., each once."""
    listed = _RANK.findall(text)
    found = {int(rank): (host, device) for rank, host, device in listed}
    if not listed or sorted(found) != list(range(len(listed))):
        raise OutputError(f"{TOOL}: not one list of ranks from 0 on")
    if len(set(found.values())) != len(found):
        raise OutputError(f"{TOOL}: two ranks on one GPU", "invalid")
    return found


def _readings(size: str, time: str, rate: str, bus: str, ranks: int) -> list[Reading]:
    """A row. Its bandwidths are left out where they are printed as 0.00."""
    what, dims = f"{TOOL}: {size} bytes", {"size": size}
    seconds = values.positive(what, time)
    moved = Decimal(size) / 1000  # GB/s by us are 1,000 bytes
    by_bus = values.number(what, bus)
    values.must_agree(what, values.number(what, rate), moved, seconds)
    values.must_agree(f"{what}: busbw", by_bus, moved * 2 * (ranks - 1) / ranks, seconds)
    found = [Reading("time", seconds, "us", dims)]
    return [*found, Reading("bus_bandwidth", by_bus, "GB/s", dims)] if by_bus else found
