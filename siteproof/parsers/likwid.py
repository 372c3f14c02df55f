"""likwid-bench 5: one or more tests, one after the other. Its MByte/s are 10**6 bytes per second.

likwid-bench does not validate its arrays, so there is no validation that could be asserted. The
proof is consistency instead: each block is complete, its rate is its data volume by its time, and
its data volume is its arrays (Size) times its iterations. That is what STREAM counts: two arrays
for copy, three for stream, and not the cache lines that a store reads first (write-allocate).

likwid's `stream` is STREAM's triad. likwid's own `triad` has four arrays, `daxpy` and `update` work
in place, `*_sp` are single precision: none of them is a kernel of STREAM, and none is read.
"""

from __future__ import annotations

import re
from decimal import Decimal

from siteproof.errors import OutputError
from siteproof.parsers import Reading, values

NEEDS = "likwid-bench 5 with -t copy or -t stream, and what follows these names"

METRICS = {"copy": "copy", "stream": "triad"}  # it has no scale and no add
TITLE = "LIKWID MICRO BENCHMARK"
RULE = "-" * 80

_KERNEL = re.compile(r"(copy|stream)(?:_mem)?(?:_(?:sse|avx|avx512))?(?:_fma)?")
_TEST = values.row(r"Test: (\S{1,60})")
_SIZE = re.compile(r"^Size \(Byte\):[ \t]+([0-9]{1,20})\b", re.MULTILINE)
# likwid 5.5.1 on some virtual machines: then all of its rates are 0.00.
_NO_CLOCK = values.row(r"CPU Clock:[ \t]+0")
_FAULT = "likwid-bench reads 0 as the processor's clock, so it gives no rate: a fault of the tool"
_THREADS = re.compile(r"^Using ([0-9]{1,9}) threads\b", re.MULTILINE)


def parse(text: str) -> list[Reading]:
    """Rate of each test, in MB/s. Raises OutputError."""
    blocks = text.split(TITLE)[1:]
    if not blocks:
        raise OutputError("likwid: no output of likwid-bench")
    if not text.rstrip().endswith(RULE):
        raise OutputError("likwid: cut off before the closing line")
    readings = [_reading(block) for block in blocks]
    names = [reading.metric for reading in readings]
    if len(set(names)) != len(names):
        raise OutputError(f"likwid: more than one result for {max(names, key=names.count)}")
    return readings


def conditions(text: str) -> dict[str, str]:
    """For each metric its kernel and its arrays' bytes (all of them together); the threads."""
    found = {}
    threads = dict.fromkeys(_THREADS.findall(text))
    if threads:
        found["threads"] = " ".join(threads)
    for block in text.split(TITLE)[1:]:
        test, size = _TEST.search(block), _SIZE.search(block)
        if test and (kernel := _KERNEL.fullmatch(test[1])):
            metric = METRICS[kernel[1]]
            found[f"{metric}_kernel"] = test[1]
            if size:
                found[f"{metric}_bytes"] = size[1]
    return found


def _reading(block: str) -> Reading:
    name = _field(block, "Test")
    kernel = _KERNEL.fullmatch(name)
    if not kernel:
        raise OutputError(f"likwid: {name[:40]!r} is not a kernel of STREAM (copy, stream)")
    if RULE not in block.partition("\nMByte/s:")[2]:
        raise OutputError(f"likwid: test {name} is cut off")
    if _NO_CLOCK.search(block):
        raise OutputError(f"likwid: {_FAULT}")
    names = ("MByte/s", "Data volume (Byte)", "Time", "Size (Byte)", "Iterations per thread")
    rate, volume, seconds, size, iterations = (
        values.positive(f"likwid: {key} of {name}", _field(block, key)) for key in names
    )
    values.must_agree(f"likwid: rate of {name}", rate, volume / 10**6, seconds)
    if abs(iterations * size / volume - 1) > values.TOLERANCE:
        raise OutputError(
            f"likwid: data volume of {name} does not agree with its arrays and iterations"
        )
    return Reading(METRICS[kernel[1]], Decimal(rate), "MB/s")


def _field(block: str, name: str) -> str:
    """The first word after `name:`, which must occur once."""
    words = re.findall(rf"^{re.escape(name)}:[ \t]+(\S+)", block, re.MULTILINE)
    return str(values.only("likwid", f"lines '{name}:'", words))
