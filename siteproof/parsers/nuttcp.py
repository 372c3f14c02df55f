"""nuttcp 6.1.2 to 8: text in, readings out. Its MB are 2**20 bytes and its Mbps 10**6 bits/s.

Read are its one summary line and that of -fparse (key=value); the lines that -i prints each second
have no CPU share (and `real_sec` for `real_seconds`) and are not taken. The rate of UDP is what the
receiver got. nuttcp 6.1.2 misreads a burst (-Ri300m/100), sends 0.3 Mb/s of it, loses nothing and
exits with 0: a check has to compare `sent` with the rate that it requested.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Context, Decimal

from siteproof.errors import OutputError
from siteproof.parsers import Reading, values

NEEDS = "the client of nuttcp 6.1.2 to 8, of one run; its summary line or -fparse, without -v"

MIB_IN_MEGABITS = Decimal(8 * 2**20) / 10**6
ROUNDING = Decimal("0.0051")  # of the loss, printed with two decimals
DIGITS = Context(prec=9)  # as many as nuttcp prints of a rate

_N = r"(\S{1,40})"
_TEXT = values.row(
    rf" *{_N} MB / +{_N} sec = +{_N} Mbps +{_N} %TX +{_N} %RX"
    rf"(?: +(?:{_N} / +{_N} drop/pkt +{_N} %loss(?: +\S+ ms\w*Jitter.*)?"
    rf"|(?:{_N} retrans)?(?: *\S+ [KM]?B-cwnd)? *\S+ msRTT))",
    r"\n",
)
_KEYS = (
    "megabytes",
    "real_seconds",
    "rate_Mbps",
    "tx_cpu",
    "rx_cpu",
    "drop",
    "pkt",
    "data_loss",
    "retrans",
)
_PARSE = re.compile(r"^megabytes=\S+ real_seconds=.*\r?\n", re.MULTILINE)
_PAIR = re.compile(r"(\w{1,20})=(\S{1,40})")
_ERROR = re.compile(
    r"(?:error: .*|.*\berror: .*|bad hostname .*|.*transfer interrupted.*|"
    r".*version mismatch.*|.*not answering.*)",
    re.IGNORECASE,
)
_VERSION = re.compile(r"\bnuttcp-(?:[tr]: v)?([0-9]+\.[0-9]+\.[0-9]+)\b")


def parse(text: str) -> list[Reading]:
    """TCP: throughput (Mb/s), retransmits where printed, cpu_sender, cpu_receiver (%).

    UDP: throughput, sent (Mb/s, of all datagrams), loss (%), drop and packets, both CPU shares.

    Raises OutputError: `generic` with nuttcp's message if it failed or was interrupted, `invalid`
    if nothing arrived or its values contradict each other.
    """
    values.must_not_report("nuttcp", _ERROR, text)
    found = _summary(text)
    cpu = [
        Reading("cpu_sender", values.number("nuttcp: CPU of TX", found["tx_cpu"]), "%"),
        Reading("cpu_receiver", values.number("nuttcp: CPU of RX", found["rx_cpu"]), "%"),
    ]
    rate = values.positive("nuttcp: rate", found["rate_Mbps"])
    data = values.positive("nuttcp: MB", found["megabytes"]) * MIB_IN_MEGABITS
    seconds = values.positive("nuttcp: time", found["real_seconds"])
    values.must_agree("nuttcp: rate", rate, data, seconds)
    readings = [Reading("throughput", rate, "Mb/s")]
    if "drop" in found:
        return readings + _datagrams(rate, found) + cpu
    if "retrans" in found:
        again = values.number("nuttcp: retrans", found["retrans"])
        readings.append(Reading("retransmits", again, "count"))
    return readings + cpu


def conditions(text: str) -> dict[str, str]:
    """Protocol; the version where it is printed (`nuttcp -V`, or -v)."""
    version = " ".join(sorted(set(_VERSION.findall(text))))
    protocol = "UDP" if "drop" in _summary(text) else "TCP"
    return {"protocol": protocol} | ({"version": version} if version else {})


def _summary(text: str) -> Mapping[str, str]:
    """The fields of the one summary."""
    plain = [{k: v for k, v in zip(_KEYS, row, strict=True) if v} for row in _TEXT.findall(text)]
    pairs = [dict(_PAIR.findall(line)) for line in _PARSE.findall(text)]
    found = values.only("nuttcp", "summaries", plain + pairs)
    wanted = {"drop", "pkt", "data_loss"} if "pkt" in found or "data_loss" in found else set()
    tcp_end = "rtt_ms" in found or plain
    if missing := sorted((set(_KEYS[:5]) | wanted) - set(found)):
        raise OutputError(f"nuttcp: the summary has no {', '.join(missing)}")
    if not wanted and not tcp_end:
        raise OutputError("nuttcp: the summary is cut off")
    return found


def _datagrams(rate: Decimal, found: Mapping[str, str]) -> list[Reading]:
    drop = values.number("nuttcp: drop", found["drop"])
    packets = values.positive("nuttcp: packets", found["pkt"])
    loss = values.number("nuttcp: loss", found["data_loss"])
    if drop >= packets or abs(100 * drop / packets - loss) > ROUNDING:
        raise OutputError("nuttcp: the loss does not agree with the datagrams", "invalid")
    sent = DIGITS.divide(rate * packets, packets - drop)
    return [
        Reading("sent", sent, "Mb/s"),
        Reading("loss", loss, "%"),
        Reading("drop", drop, "packets"),
        Reading("packets", packets, "packets"),
    ]
