"""netperf 2.7 with -k: one line of title, then KEY=VALUE: text in, readings out.

The service demand is the processor time for one KiB, in us, of the host that sends (netperf's
manual, "Service demand"; its K is 1024). Of the direction Receive (TCP_MAERTS) that is the
remote host.
"""

from __future__ import annotations

import re
from decimal import Decimal

from siteproof.errors import OutputError
from siteproof.parsers import Reading, values

# The last key is the end of an output that is whole.
KEYS = (
    *("THROUGHPUT", "THROUGHPUT_UNITS", "ELAPSED_TIME", "LOCAL_CPU_UTIL", "REMOTE_CPU_UTIL"),
    *("LOCAL_SD", "REMOTE_SD", "SD_UNITS", "LOCAL_SEND_SIZE", "REMOTE_RECV_SIZE", "PROTOCOL"),
    *("DIRECTION", "LSS_SIZE_END"),
)
NEEDS = f"netperf 2.7 with -c -C, and after '--' -k {','.join(KEYS)}"

_TITLE = re.compile(r"MIGRATED TCP (?:STREAM|MAERTS) TEST from [ -~]{1,200}")
_ENDS = {"Send": ("LOCAL", "REMOTE"), "Receive": ("REMOTE", "LOCAL")}  # sender and receiver


def parse(text: str) -> list[Reading]:
    """throughput (Mb/s), cpu_sender, cpu_receiver (%) and service_demand (us).

    Raises OutputError: `generic` with netperf's message.
    """
    found = _fields(text)
    for key, unit in (("THROUGHPUT_UNITS", "10^6bits/s"), ("SD_UNITS", "usec/KB")):
        if found[key] != unit:
            raise OutputError(f"netperf: {key} is '{found[key][:20]}', expected {unit}")
    if found["DIRECTION"] not in _ENDS:
        raise OutputError(f"netperf: unknown direction '{found['DIRECTION'][:20]}'")
    values.positive("netperf: elapsed time", found["ELAPSED_TIME"])
    sender, receiver = _ENDS[found["DIRECTION"]]
    return [
        Reading(metric, values.positive(f"netperf: {metric}", found[key]), unit)
        for metric, key, unit in (
            ("throughput", "THROUGHPUT", "Mb/s"),
            ("cpu_sender", f"{sender}_CPU_UTIL", "%"),
            ("cpu_receiver", f"{receiver}_CPU_UTIL", "%"),
            ("service_demand", f"{sender}_SD", "us"),
        )
    ]


def conditions(text: str) -> dict[str, str]:
    """protocol, duration (s), block (B, of a call that sends); of a text that parse has read."""
    found = _fields(text)
    return {
        "protocol": found["PROTOCOL"],
        "duration": str(round(Decimal(found["ELAPSED_TIME"]))),
        "block": found["LOCAL_SEND_SIZE"],
    }


def _fields(text: str) -> dict[str, str]:
    """The keys with their values as printed, each once. Raises OutputError."""
    title, *rest = values.filled(text) or [""]
    if not _TITLE.fullmatch(title):
        raise OutputError(
            f"netperf: {title[: values.LONGEST_MESSAGE]}", "generic" if title else "parse"
        )
    found = [line.partition("=") for line in rest]
    if [key for key, _, _ in found] != list(KEYS) or not text.endswith("\n"):
        raise OutputError("netperf: the end is missing, or it is not one whole output")
    return {key: value for key, _, value in found}
