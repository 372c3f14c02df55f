"""STREAM 5.10: text in, readings out. Its MB/s are 10**6 bytes per second."""

from __future__ import annotations

import re
from decimal import Decimal

from siteproof.errors import OutputError
from siteproof.parsers import Reading, values

NEEDS = "STREAM 5.10, of one run"

KERNELS = {"Copy": 2, "Scale": 2, "Add": 3, "Triad": 3}  # arrays that STREAM counts
MIN_TICKS = 20  # STREAM's own demand

_RATE = re.compile(
    r"^(Copy|Scale|Add|Triad):[ \t]+(\S+)[ \t]+\S+[ \t]+(\S+)[ \t]+\S+[ \t\r]*$", re.MULTILINE
)
_TICKS = re.compile(r"\(= (-?[0-9]{1,18}) clock ticks\)")
_CONDITIONS = {
    "version": re.compile(r"STREAM version \$Revision: ([0-9.]{1,20}) \$"),
    "array_size": re.compile(r"Array size = ([0-9]{1,18}) \(elements\)"),
    "ntimes": re.compile(r"Each kernel will be executed ([0-9]{1,18}) times"),
    "threads": re.compile(r"Number of Threads counted = ([0-9]{1,18})\b"),
}
_ELEMENT = re.compile(r"This system uses ([0-9]{1,3}) bytes per array element")


def parse(text: str) -> list[Reading]:
    """Best rate of each kernel, in MB/s.

    Raises OutputError: `invalid` if STREAM found its arrays wrong or its clock too coarse.
    """
    _prove(text)
    size = conditions(text).get("array_bytes")
    if size is None:
        raise OutputError("stream: the size of the arrays is not printed")
    rows = _RATE.findall(text)
    for kernel in KERNELS:
        values.only("stream", f"rates for {kernel}", [row for row in rows if row[0] == kernel])
    return [_reading(kernel, rate, time, int(size)) for kernel, rate, time in rows]


def conditions(text: str) -> dict[str, str]:
    """Version, array_size (elements), array_bytes (each), ntimes, and threads if it has OpenMP."""
    found = values.printed(_CONDITIONS, text)
    if (element := _ELEMENT.search(text)) and "array_size" in found:
        found["array_bytes"] = str(int(found["array_size"]) * int(element[1]))
    return found


def _prove(text: str) -> None:
    """Refuse what STREAM did not validate."""
    if (runs := text.count("STREAM version $Revision:")) != 1:
        raise OutputError(f"stream: {runs} runs of STREAM where one is expected")
    if "Failed Validation" in text:
        raise OutputError("stream: the arrays failed STREAM's validation", "invalid")
    if "Solution Validates: avg error less than" not in text:
        raise OutputError("stream: arrays not validated, so no rate counts")
    ticks = _TICKS.findall(text)
    if len(ticks) != 1:
        raise OutputError("stream: the clock's resolution is not printed")
    if int(ticks[0]) < MIN_TICKS:
        raise OutputError(
            f"stream: a test takes {ticks[0]} clock ticks, fewer than {MIN_TICKS}", "invalid"
        )


def _reading(kernel: str, rate: str, time: str, array_bytes: int) -> Reading:
    value = values.positive(f"stream: rate of {kernel}", rate)
    seconds = values.positive(f"stream: time of {kernel}", time)
    work = Decimal(KERNELS[kernel] * array_bytes) / 10**6
    values.must_agree(f"stream: rate of {kernel}", value, work, seconds)
    return Reading(kernel.lower(), value, "MB/s")
