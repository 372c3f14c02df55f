"""perftest 4.5 (ib_write_bw, ib_write_lat): text in, readings out.

Its MiB/sec, MB/sec before version 4.5-0.18, are 2**20 bytes; its Gb/sec 10**9 bits. Written after
the formats in its source (src/perftest_parameters.h); no figure of it was measured here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal

from siteproof.errors import OutputError
from siteproof.parsers import Reading, values

NEEDS = "ib_write_bw or ib_write_lat of perftest 4.5, one size of message (-s, not -a)"

UNITS = {"Gb/sec": "Gb/s", "MiB/sec": "MiB/s", "MB/sec": "MiB/s"}

_BANDWIDTH = re.compile(
    r"#bytes #iterations BW peak\[(\S{1,9})\] BW average\[(\S{1,9})\] MsgRate\[Mpps\]"
)
_LATENCY = (
    "#bytes #iterations t_min[usec] t_max[usec] t_typical[usec] t_avg[usec] t_stdev[usec] "
    "99% percentile[usec] 99.9% percentile[usec]"
)
_LATENCIES = ("min", "max", "typical", "mean", "stdev", "p99", "p999")
_LINE = re.compile(r"-{40,}")
_KNOWN = {"Mtu": "rdma_mtu", "Link type": "link_type", "Connection type": "connection"}
_SETTING = re.compile(r"(Mtu|Link type|Connection type) *: (\S{1,30})(?: .*)?")
# What the tool reports instead of a result; its other messages are warnings.
_FAILED = re.compile(
    r"(Unable to .*|Couldn't .*|Failed to .*|Did not detect devices.*|Found Incompatibility .*|"
    r"IB device .* not found.*|.*Completion with error.*)"
)


def parse(text: str) -> list[Reading]:
    """bandwidth, bandwidth_peak and message_rate; or typical, min, max, mean, stdev, p99 and p999
    in us: of one size, with the dimension `size` in bytes.

    Raises OutputError: `generic` with the tool's own message, `parse` where the end is missing.
    """
    printed = values.filled(text)
    values.must_not_report("perftest", _FAILED, text)
    heads = [n for n, line in enumerate(printed) if line.startswith("#bytes")]
    head, *rows = printed[values.only("perftest", "tables", heads) :]
    # The line after the table is the only proof that it is whole.
    if not rows or not _LINE.fullmatch(rows[-1]):
        raise OutputError("perftest: cut off before the line after its table")
    if len(rows) != 2:
        raise OutputError(f"perftest: {len(rows) - 1} rows where one is expected")
    cells = rows[0].split()
    if match := _BANDWIDTH.fullmatch(head):
        return _bandwidth(cells, match[1], match[2])
    if head == _LATENCY:
        return _latency(cells)
    raise OutputError("perftest: a table of unknown columns")


def conditions(text: str) -> dict[str, str]:
    """MTU of the port in bytes, link type (IB, Ethernet), connection, and the size of a message."""
    found = {}
    for line in values.filled(text):
        if match := _SETTING.match(line):
            found[_KNOWN[match[1]]] = match[2].removesuffix("[B]")
    return found


def _bandwidth(cells: Sequence[str], peak: str, average: str) -> list[Reading]:
    if len(cells) != 5 or peak != average or average not in UNITS:
        raise OutputError("perftest: a row of bandwidths with other columns or units")
    dims, unit = {"size": _size(cells[0])}, UNITS[average]
    rate = values.positive("perftest: bandwidth", cells[3])
    best = values.number("perftest: peak", cells[2])
    messages = values.number("perftest: message rate", cells[4])
    _must_agree(int(dims["size"]), rate, unit, messages)
    peaks = [Reading("bandwidth_peak", best, unit, dims)] if best else []  # -N prints 0
    return [
        Reading("bandwidth", rate, unit, dims),
        *peaks,
        Reading("message_rate", messages, "MIOPS", dims),
    ]


def _must_agree(size: int, rate: Decimal, unit: str, messages: Decimal) -> None:
    """Bytes of a message times messages are the rate, but for what is rounded away."""
    per_second = rate * (2**20 if unit == "MiB/s" else Decimal(10**9) / 8)
    by_messages = size * messages * 10**6
    rounding = size + Decimal(10**9) / 8 / 100  # the last digits: a message, 0.01 Gb a second
    if abs(per_second - by_messages) > per_second / 50 + rounding:
        raise OutputError("perftest: bandwidth and message rate disagree", "invalid")


def _latency(cells: Sequence[str]) -> list[Reading]:
    if len(cells) != 2 + len(_LATENCIES):
        raise OutputError("perftest: a row of latencies with other columns")
    dims = {"size": _size(cells[0])}
    each = dict(zip(_LATENCIES, cells[2:], strict=True))
    found = {
        name: (values.number if name == "stdev" else values.positive)(f"perftest: {name}", text)
        for name, text in each.items()
    }
    order = [found[name] for name in ("min", "typical", "p99", "p999", "max")]
    if order != sorted(order) or not found["min"] <= found["mean"] <= found["max"]:
        raise OutputError("perftest: the latencies are not in their order", "invalid")
    return [Reading(name, value, "us", dims) for name, value in found.items()]


def _size(text: str) -> str:
    return str(int(values.positive("perftest: size", text)))
