"""IMB-MPI1 PingPong and collectives (Intel MPI Benchmarks 2019 and later): text in, readings out.

t of PingPong is half a round trip, t_avg of a collective the mean over the ranks. Its Mbytes are
10**6 bytes (2**20 before 2018; that is refused, since rate, size and time do not agree then). IMB
exits with 0 if it had too few processes, if it does not know the benchmark (it then runs all of
them), and if its time limit was reached.
"""

from __future__ import annotations

import re

from siteproof.errors import OutputError
from siteproof.parsers import Reading, values

NEEDS = (
    "'IMB-MPI1 PingPong' of Intel MPI Benchmarks 2019 or later, on two processes; or a collective"
)

COLLECTIVES = ("Allreduce", "Alltoall", "Allgather", "Bcast", "Barrier")

END = "\n# All processes entering MPI_Finalize"

_FAILED = re.compile(r"Invalid benchmark name .*|# !! Benchmark .* invalid for .*|.*time-out.*")
_BENCHMARK = values.row(r"# Benchmarking (\S+)")
_PROCESSES = values.row(r"# #processes = ([0-9]{1,9})")
_HEADER = values.row(r" +#bytes +#repetitions +t\[usec\] +Mbytes/sec")
_OF_RANKS = values.row(r" +(#bytes +)?#repetitions +t_min\[usec\] +t_max\[usec\] +t_avg\[usec\]")
_TIMES = values.row(
    r" +(?:([0-9]{1,12}) +)?([0-9]{1,12}) +([0-9]\S*) +([0-9]\S*) +([0-9]\S*)", r"\n"
)
_ROW = values.row(r" +([0-9]{1,12}) +([0-9]{1,12}) +([0-9]\S*) +([0-9]\S*)", r"\n")
_LAST = values.row(r"# Maximum message length in bytes: +([0-9]{1,12})")
_OWN = re.compile(r"^# Message lengths were user defined", re.MULTILINE)
_VERSION = re.compile(r"^# +Intel\(R\) MPI Benchmarks ([0-9][0-9.]{0,20})", re.MULTILINE)


def parse(text: str) -> list[Reading]:
    """latency (us) and bandwidth (MB/s), or a collective (us), with dims {"size": bytes}.

    A bandwidth that is printed as 0.00 (of an empty message, or too small for two decimals) is left
    out, and of a collective the empty message. Raises OutputError: `generic` with IMB's message if
    it ran nothing.
    """
    values.must_not_report("imb", _FAILED, text)
    names = _BENCHMARK.findall(text)
    if len(names) != 1 or names[0] not in ("PingPong", *COLLECTIVES):
        ran = (", ".join(names[:5]) or "none")[: values.LONGEST_MESSAGE]
        known = f"PingPong, {', '.join(COLLECTIVES)}"
        raise OutputError(f"imb: benchmarks that ran: {ran}; expected one of {known}")
    values.one("imb: headings of Intel MPI Benchmarks", _VERSION, text)
    if "additional processes waiting" in text:
        raise OutputError("imb: not all processes took part")
    if END not in text:
        raise OutputError("imb: cut off before 'All processes entering MPI_Finalize'")
    return _ping_pong(text) if names == ["PingPong"] else _collective(text, names[0])


def _ping_pong(text: str) -> list[Reading]:
    if _PROCESSES.findall(text) != ["2"]:
        raise OutputError("imb: not exactly two processes")
    values.one("imb: tables of t[usec] and Mbytes/sec", _HEADER, text)
    rows = _ROW.findall(text)
    _sizes(text, [int(size) for size, *_ in rows])
    found = []
    for size, _, time, rate in rows:
        microseconds = values.positive(f"imb: time of {size} bytes", time)
        latency = Reading("latency", microseconds, "us", {"size": size})
        seconds = microseconds.scaleb(-6)
        found += values.latency_and_bandwidth("imb", size, latency, rate, seconds)
    return found


def conditions(text: str) -> dict[str, str]:
    """IMB's version; of a collective that it has not looked at what arrived (validated)."""
    unseen = {"validated": "no"} if _OF_RANKS.search(text) else {}
    return {**values.printed({"version": _VERSION}, text), **unseen}


def _collective(text: str, name: str) -> list[Reading]:
    """The mean over the ranks, of each size that is not 0."""
    (processes,) = values.one("imb: numbers of processes", _PROCESSES, text)
    if int(processes) < 2:
        raise OutputError("imb: one process is no collective")
    has_sizes = values.only("imb", "tables of t_avg[usec]", _OF_RANKS.findall(text))
    rows = _TIMES.findall(text)
    if any(bool(size) != bool(has_sizes) for size, *_ in rows):
        raise OutputError("imb: a row that does not fit the table's heading")
    for *_, least, most, mean in rows:
        times = [values.number(f"imb: time of {name}", one) for one in (least, mean, most)]
        if times != sorted(times):
            raise OutputError(f"imb: a mean of {mean} us is not between {least} and {most}")
    metric = name.lower()
    if not has_sizes:
        *_, mean = values.only("imb", f"times of {name}", rows)
        return [Reading(metric, values.positive(f"imb: {metric}", mean), "us")]
    _sizes(text, [int(size) for size, *_ in rows])
    return [
        Reading(
            metric, values.positive(f"imb: {metric} of {size} bytes", mean), "us", {"size": size}
        )
        for size, *_, mean in rows
        if int(size)
    ]


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
