"""GNU dd: text in, readings out. It prints on stderr, and its MB are 10**6 bytes."""

from __future__ import annotations

import re
from decimal import Context, Decimal

from siteproof.errors import OutputError
from siteproof.parsers import Reading, values

NEEDS = "GNU dd, with its summary on stderr in the locale C"

STREAM = "stderr"
DIGITS = Context(prec=6)  # as many as dd prints of the time

_RECORDS = values.row(r"([0-9]{1,18})\+([0-9]{1,18}) records (in|out)")
_RATE = values.row(
    r"([0-9]{1,18}) bytes \([^)\n]{1,40}\) copied, (\S{1,30}) s, (\S{1,30}) ([kMGT]?B)/s"
)
_UNIT = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def parse(text: str) -> list[Reading]:
    """`rate`: bytes by seconds, in MB/s; dd's own rate has two or three digits.

    Raises OutputError unless dd copied whole blocks only and had no error.
    """
    blocks, size, seconds, rate, unit = _summary(text)
    work = Decimal(size)
    time = values.positive("dd: time", seconds)
    values.must_agree("dd: rate", values.positive("dd: rate", rate), work / _UNIT[unit], time)
    if size % blocks:
        raise OutputError(f"dd: {size} bytes are not {blocks} whole blocks")
    return [Reading("rate", DIGITS.divide(work / 10**6, time), "MB/s")]


def conditions(text: str) -> dict[str, str]:
    """Bytes of a block, and of all of them (size)."""
    blocks, size, *_ = _summary(text)
    return {"block": str(size // blocks), "size": str(size)}


def _summary(text: str) -> tuple[int, int, str, str, str]:
    """Blocks, bytes, seconds, rate and its unit, each as printed. Raises OutputError."""
    # On a full disk dd prints a rate, too.
    if error := re.search(r"^\S{0,200}dd: ([ -~]{1,200})", text, re.MULTILINE):
        raise OutputError(f"dd: {error[1]}", "generic")
    rows, rates = _RECORDS.findall(text), _RATE.findall(text)
    if [row[2] for row in rows] != ["in", "out"] or len(rates) != 1:
        raise OutputError("dd: no summary of one copy")
    (read, part, _), (written, rest, _) = rows
    if read != written or int(part) or int(rest) or not int(read):
        raise OutputError(
            f"dd: {read}+{part} blocks read, {written}+{rest} written: not whole", "invalid"
        )
    size, seconds, rate, unit = rates[0]
    return int(read), int(size), seconds, rate, unit
