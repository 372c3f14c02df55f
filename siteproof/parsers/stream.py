"""STREAM 5.10: text in, readings out. Its MB/s are 10**6 bytes per second."""

from __future__ import annotations

import re
from decimal import Decimal

from siteproof.errors import OutputError
from siteproof.parsers import Reading, values

NEEDS = "STREAM 5.10, of one run"

KERNELS = {"Copy": 2, "Scale": 2, "Add": 3, "Triad": 3}  # arrays that STREAM counts
MIN_TICKS = 20  # STREAM's own demand

_RATE = values.row(r"(Copy|Scale|Add|Triad):[ \t]+(\S+)[ \t]+\S+[ \t]+(\S+)[ \t]+\S+")
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
    found = []
    for kernel, rate, time in rows:
        what = f"stream: rate of {kernel}"
        value = values.positive(what, rate)
        seconds = values.positive(f"stream: time of {kernel}", time)
        values.must_agree(what, value, Decimal(KERNELS[kernel] * int(size)) / 10**6, seconds)
        found.append(Reading(kernel.lower(), value, "MB/s"))
    return found


def conditions(text: str) -> dict[str, str]:
    """Version, array_size (elements), array_bytes (each), ntimes, and threads if it has OpenMP."""
    found = values.printed(_CONDITIONS, text)
    if (element := _ELEMENT.search(text)) and "array_size" in found:
        found["array_bytes"] = str(int(found["array_size"]) * int(element[1]))
    return found


def _prove(text: str) -> None:
    """Refuse what STREAM did not validate."""
    values.only("stream", "runs of STREAM", _CONDITIONS["version"].findall(text))
    if "Failed Validation" in text:
        raise OutputError("stream: the arrays failed STREAM's validation", "invalid")
    if "Solution Validates: avg error less than" not in text:
        raise OutputError("stream: arrays not validated, so no rate counts")
    (ticks,) = values.one("stream: resolutions of the clock", _TICKS, text)
    if int(ticks) < MIN_TICKS:
        why = f"stream: a test takes {ticks} clock ticks, fewer than {MIN_TICKS}"
        raise OutputError(why, "invalid")
