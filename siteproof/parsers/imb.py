"""IMB-MPI1 PingPong (Intel MPI Benchmarks 2019 and later): text in, readings out.

t is half a round trip. Its Mbytes are 10**6 bytes (2**20 before 2018; that is refused, since rate,
size and time do not agree then). IMB exits with 0 if it had too few processes, if it does not know
the benchmark (it then runs all of them), and if its time limit was reached.
"""

from __future__ import annotations

import re

from siteproof.errors import OutputError
from siteproof.parsers import Reading, lines, values

NEEDS = "'IMB-MPI1 PingPong' of Intel MPI Benchmarks 2019 or later, on two processes"

END = "\n# All processes entering MPI_Finalize"
LONGEST = 100  # characters of a message

_FAILED = re.compile(r"Invalid benchmark name .*|# !! Benchmark .* invalid for .*|.*time-out.*")
_BENCHMARK = re.compile(r"^# Benchmarking (\S+)[ \t\r]*$", re.MULTILINE)
_PROCESSES = re.compile(r"^# #processes = ([0-9]{1,9})[ \t\r]*$", re.MULTILINE)
_HEADER = re.compile(r"^ +#bytes +#repetitions +t\[usec\] +Mbytes/sec[ \t\r]*$", re.MULTILINE)
_ROW = re.compile(
    r"^ +([0-9]{1,12}) +([0-9]{1,12}) +([0-9]\S*) +([0-9]\S*)[ \t\r]*\n", re.MULTILINE
)
_LAST = re.compile(r"^# Maximum message length in bytes: +([0-9]{1,12})[ \t\r]*$", re.MULTILINE)
_OWN = re.compile(r"^# Message lengths were user defined", re.MULTILINE)
_VERSION = re.compile(r"^# +Intel\(R\) MPI Benchmarks ([0-9][0-9.]{0,20})", re.MULTILINE)


def parse(text: str) -> list[Reading]:
    """latency (us) and bandwidth (MB/s) with dims {"size": bytes}.

    A bandwidth that is printed as 0.00 (of an empty message, or too small for two decimals) is left
    out. Raises OutputError: `generic` with IMB's message if it did not run PingPong.
    """
    for line in lines.harmless(text):
        if _FAILED.fullmatch(line):
            raise OutputError(f"imb: {line.strip('# !')[:LONGEST]}", "generic")
    if (names := _BENCHMARK.findall(text)) != ["PingPong"]:
        ran = ", ".join(names[:5]) or "none"
        raise OutputError(f"imb: benchmarks that ran: {ran[:LONGEST]}; expected one PingPong")
    if len(_VERSION.findall(text)) != 1:
        raise OutputError("imb: not exactly one heading of Intel MPI Benchmarks")
    if _PROCESSES.findall(text) != ["2"] or "additional processes waiting" in text:
        raise OutputError("imb: not exactly two processes")
    if len(_HEADER.findall(text)) != 1:
        raise OutputError("imb: no table of t[usec] and Mbytes/sec")
    if END not in text:
        raise OutputError("imb: cut off before 'All processes entering MPI_Finalize'")
    rows = _ROW.findall(text)
    _sizes(text, [int(size) for size, *_ in rows])
    return [reading for size, _, time, rate in rows for reading in _row(size, time, rate)]


def conditions(text: str) -> dict[str, str]:
    """IMB's version."""
    return values.printed({"version": _VERSION}, text)


def _sizes(text: str, sizes: list[int]) -> None:
    """Refuse a table that is not whole. -msglog 3:22 begins with 0 and goes on with 8."""
    if _OWN.search(text):
        if not sizes or sizes != sorted(set(sizes)):
            raise OutputError("imb: user-defined sizes that are not in order")
        return
    last = _LAST.findall(text)
    if len(last) != 1 or sizes[:1] != [0] or len(sizes) == 1:
        raise OutputError("imb: no sizes from 0 on, or their end is not printed")
    values.must_be_whole("imb", sizes[1:], sizes[1], int(last[0]))


def _row(size: str, time: str, rate: str) -> list[Reading]:
    microseconds = values.positive(f"imb: time of {size} bytes", time)
    latency = Reading("latency", microseconds, "us", {"size": size})
    return values.latency_and_bandwidth("imb", size, latency, rate, microseconds.scaleb(-6))
