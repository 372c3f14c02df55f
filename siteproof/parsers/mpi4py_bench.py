"""mpi4py 4: `python -m mpi4py.bench helloworld`, then `… pingpong`, in one output.

The mean time is half a round trip, in s; MB/s are 10**6 bytes per second. Started by the mpirun of
another MPI, each process finds itself alone, sends to itself, prints the same table and
exits with 0. So does a single process. Nothing in the table shows it; helloworld does, so it has to
run before, started in the same way. Sizes go from 1 to 1 GiB, or as in a line `sizes MIN:MAX`.
"""

from __future__ import annotations

from siteproof.errors import OutputError
from siteproof.parsers import Reading, values

NEEDS = "mpi4py 4: python -m mpi4py.bench helloworld, then pingpong up to its last size"

DEFAULT = (1, 2**30)  # bytes

_HELLO = values.row(r"Hello, World! I am process ([0-9]{1,9}) of ([0-9]{1,9}) on \S+")
_TITLE = values.row(r"# MPI PingPong Test")
_HEADER = values.row(r"# Size \[B\] +Bandwidth \[MB/s\] \| Time Mean \[s\] ± StdDev \[s\] +Samples")
_ROW = values.row(r" *([0-9]{1,12}) +([0-9]\S*) \| ([0-9]\S*) ± ([0-9]\S*) +([0-9]{1,12})", r"\n")


def parse(text: str) -> list[Reading]:
    """latency (s) and bandwidth (MB/s) with dims {"size": bytes}.

    A bandwidth that is printed as 0.00 is left out. Raises OutputError: `generic` if there were not
    two processes in one communicator.
    """
    ranks = sorted(_HELLO.findall(text))
    if ranks != [("0", "2"), ("1", "2")]:
        why = f"mpi4py_bench: {len(ranks)} processes in helloworld, expected 0 and 1 of 2"
        raise OutputError(why, "generic" if ranks else "parse")
    values.one("mpi4py_bench: titles of pingpong", _TITLE, text)
    values.one("mpi4py_bench: tables with statistics", _HEADER, text)
    rows = _ROW.findall(text)
    first, last = values.requested(text, "mpi4py_bench", DEFAULT)
    values.must_be_whole("mpi4py_bench", [int(size) for size, *_ in rows], first, last)
    found = []
    for size, rate, time, *_ in rows:
        seconds = values.positive(f"mpi4py_bench: time of {size} bytes", time)
        latency = Reading("latency", seconds, "s", {"size": size})
        found += values.latency_and_bandwidth("mpi4py_bench", size, latency, rate, seconds)
    return found
