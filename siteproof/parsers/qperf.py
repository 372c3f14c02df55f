"""qperf 0.4: text in, readings out. Its KB, MB, GB are powers of 1000.

qperf prints nothing at its end, so an output could be cut and not show it. Therefore `conf` has to
be the last test: the version of the other end is its last line.
"""

from __future__ import annotations

import re

from siteproof.errors import OutputError
from siteproof.parsers import Reading, values

NEEDS = "qperf 0.4 with 'conf' as its last test"

METRICS = {"bw": "bandwidth", "recv_bw": "bandwidth", "latency": "latency"}
UNITS = {
    "bytes/sec": "B/s",
    "KB/sec": "kB/s",
    "MB/sec": "MB/s",
    "GB/sec": "GB/s",
    "TB/sec": "TB/s",
    "Kb/sec": "kb/s",
    "Mb/sec": "Mb/s",
    "Gb/sec": "Gb/s",
    "us": "us",
    "ms": "ms",
    "sec": "s",
}

_TEST = re.compile(r"([a-z_]{1,30}):")
_VALUE = re.compile(r"(\w{1,30}) = (.{1,80})")
_VERSION = values.row(r"    rem_qperf +=  (\S{1,20})", r"\n")


def parse(text: str) -> list[Reading]:
    """latency and bandwidth, each with the dimension `test` (tcp_lat, udp_bw …).

    Of UDP the bandwidth is the receiver's. Raises OutputError: `generic` with qperf's message.
    """
    tests = _tests(text)
    if [name for name, _ in tests[-1:]] != ["conf"] or len(_VERSION.findall(text)) != 1:
        raise OutputError("qperf: the end is missing, or 'conf' was not the last test")
    names = [name for name, _ in tests]
    if len(set(names)) != len(names):
        raise OutputError(f"qperf: more than one result of {max(names, key=names.count)}")
    readings = [_reading(name, fields) for name, fields in tests[:-1]]
    if not readings:
        raise OutputError("qperf: no test but conf")
    return readings


def conditions(text: str) -> dict[str, str]:
    """The version of qperf at the other end."""
    found = _VERSION.search(text)
    return {"version": found[1]} if found and found[1].isprintable() else {}


def _tests(text: str) -> list[tuple[str, dict[str, str]]]:
    """Each test's name, and its values as they are printed. Raises OutputError."""
    tests: list[tuple[str, dict[str, str]]] = []
    for line in values.filled(text):
        if match := _TEST.fullmatch(line):
            tests.append((match[1], {}))
        elif tests and (match := _VALUE.fullmatch(line)) and match[1] not in tests[-1][1]:
            tests[-1][1][match[1]] = match[2]
        else:
            raise OutputError(f"qperf: {line[: values.LONGEST_MESSAGE]}", "generic")
    return tests


def _reading(test: str, fields: dict[str, str]) -> Reading:
    found = [key for key in METRICS if key in fields]
    if len(found) != 1:
        raise OutputError(f"qperf: no latency and no bandwidth of {test}")
    number, _, unit = fields[found[0]].partition(" ")
    metric = METRICS[found[0]]
    if unit not in UNITS or ("/" in unit) != (metric == "bandwidth"):
        raise OutputError(f"qperf: {metric} of {test} in unknown unit '{unit[:20]}'")
    value = values.positive(f"qperf: {metric} of {test}", number)
    return Reading(metric, value, UNITS[unit], {"test": test})
