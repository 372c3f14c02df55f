"""OSU micro-benchmarks 5 to 7: osu_latency, osu_bw, osu_bibw, and five collectives.

Latency is half a round trip, of a collective the mean over the ranks; MB/s are 10**6 bytes/s. A
barrier has one time and no size. Any other table has to reach 4194304 bytes, OSU's default, or the
last size of a line `sizes MIN:MAX` before it (siteproof.parsers.values). With -c OSU validates
what arrived, and prints Pass or Fail after each row; without, a wrong message is not noticed.
Between GPUs it is another quantity: `MPI-CUDA` in the title counts only where OSU also prints that
the buffers were on the host, as 5 and 6 do.
"""

from __future__ import annotations

import re

from siteproof.errors import OutputError
from siteproof.parsers import Reading, values

NEEDS = "one of OSU 5 to 7's benchmarks that Siteproof reads, up to the last size"

METRICS = {
    "Latency": ("latency", "us"),
    "Bandwidth": ("bandwidth", "MB/s"),
    "Bi-Directional Bandwidth": ("bidirectional", "MB/s"),
    "Allreduce Latency": ("allreduce", "us"),
    "All-to-All Personalized Exchange Latency": ("alltoall", "us"),
    "Allgather Latency": ("allgather", "us"),
    "Broadcast Latency": ("bcast", "us"),
    "Barrier Latency": ("barrier", "us"),
}
DEFAULT = (0, 4194304)  # bytes; some versions begin with 1

_TITLE = values.row(r"# OSU MPI(-[A-Z]{1,10})? ([ -~]{1,60}) Test +v?([0-9][0-9.]{0,10})")
_BUFFERS = re.compile(
    r"^# Send Buffer on (\w{1,20})\b.{0,10} Receive Buffer on (\w{1,20})\b", re.MULTILINE
)
_HEADER = values.row(
    r"# Size +(?:(?:Avg )?(Latency) ?\((\S+)\)|(Bandwidth) \((\S+)\))( +Validation)?"
)
_ROW = values.row(r"([0-9]{1,12})[ \t]+(\S+)(?:[ \t]+(Pass|Fail))?", r"\n")
_BARRIER = values.row(r"# Avg Latency\(us\)[ \t\r]*\n[ \t]*(\S+)", r"\n")
_WRONG = re.compile(r".*VALIDATION ERROR.*")
_FAILED = re.compile(r"This test requires .*")


def parse(text: str) -> list[Reading]:
    """latency or a collective (us), bandwidth or bidirectional (MB/s), with dims {"size": bytes}.

    Raises OutputError: `invalid` if OSU found a message wrong, `generic` with OSU's message.
    """
    values.must_not_report("osu", _WRONG, text, "invalid")
    values.must_not_report("osu", _FAILED, text)
    metric, unit = _benchmark(text)
    if metric == "barrier":
        time = values.only("osu", "times of a barrier", _BARRIER.findall(text))
        return [Reading(metric, values.positive("osu: barrier", time), unit)]
    checked = _checked(text, metric, unit)
    rows = _ROW.findall(text)
    if bad := [size for size, _, verdict in rows if verdict == "Fail"]:
        raise OutputError(f"osu: validation failed at {', '.join(bad[:5])} bytes", "invalid")
    if any(bool(verdict) != checked for _, _, verdict in rows):
        raise OutputError("osu: some rows are validated and some are not")
    first, last = values.requested(text, "osu", DEFAULT)
    values.must_be_whole("osu", [int(size) for size, *_ in rows], first, last)
    return [
        Reading(metric, values.positive(f"osu: {metric} at {size}", value), unit, {"size": size})
        for size, value, _ in rows
    ]


def conditions(text: str) -> dict[str, str]:
    """OSU's version, and whether it validated what arrived (validated: yes or no).

    A barrier has no message that could be wrong.
    """
    found = {}
    if title := _TITLE.search(text):
        found["version"] = title[3]
    if _BARRIER.search(text):
        found["validated"] = "yes"
    elif header := _HEADER.search(text):
        found["validated"] = "yes" if header[5] else "no"
    return found


def _benchmark(text: str) -> tuple[str, str]:
    """Metric and unit of the one benchmark that ran."""
    accelerator, name, _ = values.one("osu: benchmarks", _TITLE, text)
    if name not in METRICS:
        raise OutputError(f"osu: '{name}' is none of the benchmarks that Siteproof reads")
    buffers = _BUFFERS.findall(text)
    if accelerator and not buffers:
        raise OutputError("osu: run on GPUs; without '-d' and with 'H H' buffers are on the host")
    if any(where != ("HOST", "HOST") for where in buffers):
        raise OutputError(f"osu: buffers on {' and '.join(buffers[0])}; 'H H' has them on the host")
    return METRICS[name]


def _checked(text: str, metric: str, unit: str) -> bool:
    """Whether the table's heading, which has to be that of the metric, has a validation."""
    header = values.one("osu: headings of known columns", _HEADER, text)
    latency, in_time, _, in_rate, validation = header
    if bool(latency) != (unit == "us") or (in_time or in_rate) != unit:
        raise OutputError(f"osu: the heading is not {metric} in {unit}")
    return bool(validation)
