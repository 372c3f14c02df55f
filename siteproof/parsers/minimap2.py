"""minimap2 with reads whose place is known: text in, readings out.

The text is what minimap2 prints on stderr, then a line of checks/apps/minimap2.sh: how many reads
it has placed where they were taken from.
"""

from __future__ import annotations

import re
from decimal import Decimal

from siteproof.errors import OutputError
from siteproof.parsers import Reading, values

NEEDS = "minimap2 with PAF output and its messages on stderr"

_TIME = values.row(
    r"\[M::main\] Real time: (\S{1,30}) sec; CPU: (\S{1,30}) sec; Peak RSS: \S{1,30} GB"
)
_MAPPED = values.row(r"\[M::worker_pipeline::[0-9.*]{1,40}\] mapped ([0-9]{1,12}) sequences")
_PLACED = values.row(r"placed ([0-9]{1,12}) of ([0-9]{1,12}) reads")
_THREADS = re.compile(r"^\[M::main\] CMD: [ -~]{0,200} -t ([0-9]{1,6})\b", re.MULTILINE)
_ERROR = re.compile(r"^\[(?:E|ERROR)(?:::[a-z_]{1,40})?\S{0,40}\]? ?([ -~]{0,200})", re.MULTILINE)
_CONDITIONS = {
    "version": values.row(r"\[M::main\] Version: ([!-~]{1,40})"),
    "genome": re.compile(r"; total length: ([0-9]{1,15})[ \r]*$", re.MULTILINE),
    "threads": _THREADS,
    "reads": values.row(r"placed [0-9]{1,12} of ([0-9]{1,12}) reads"),
}


def parse(text: str) -> list[Reading]:
    """rate (reads/s), time (s), and the share of the reads that were placed rightly (%).

    Raises OutputError.
    """
    if error := _ERROR.search(text):
        raise OutputError(f"minimap2: {error[1]}", "generic")
    seconds, processor = values.one("minimap2: 'Real time'", _TIME, text)
    placed, reads = map(int, values.one("minimap2: reads that were placed", _PLACED, text))
    mapped = sum(int(count) for count in _MAPPED.findall(text))
    if mapped != reads or not 0 <= placed <= reads:
        raise OutputError(f"minimap2: {mapped} reads were mapped, {placed} of {reads} placed")
    time = values.positive("minimap2: time", seconds)
    threads = int(values.one("minimap2: number of threads", _THREADS, text)[0])
    if values.positive("minimap2: CPU", processor) > (threads + 1) * (time + 1):
        raise OutputError(f"minimap2: {processor} s of {threads} processors in {time} s")
    return [
        Reading("rate", values.rate("minimap2", reads, time), "reads/s"),
        Reading("time", time, "s"),
        Reading("placed", values.quotient(Decimal(100 * placed), Decimal(reads)), "%"),
    ]


def conditions(text: str) -> dict[str, str]:
    """Reads, letters of the genome, threads and the version."""
    return values.printed(_CONDITIONS, text)
