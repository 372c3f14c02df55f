"""ping of iputils: text in, readings out. Its times are milliseconds.

Its own statistics are rounded, so the median is taken from the list of replies; with -q there is
no list, and `mean` is all that is left. A packet that is answered twice counts once.
"""

from __future__ import annotations

import re
from decimal import Decimal
from statistics import median

from siteproof.errors import OutputError
from siteproof.parsers import Reading, values

NEEDS = "ping of iputils in the locale C, of one run"

ROUNDING = Decimal("0.01")  # of a time: a reply has three digits, the statistics have more

_TITLE = re.compile(
    r"^PING \S+ ?\(\S+\)(?: from .{1,80}:)? ([0-9]{1,5})(?:\([0-9]+\))? "
    r"(?:data bytes|bytes of data\.)",
    re.MULTILINE,
)
_REPLY = re.compile(
    r"(?:\[[0-9.]+\] )?[0-9]+ bytes from .{1,200}: icmp_seq=([0-9]{1,9}) "
    r"(?:ttl=[0-9]+ )?time=(\S{1,20}) (\S+)( \(DUP!\))?(.*)"
)
_COUNTS = re.compile(
    r"([0-9]{1,9}) packets transmitted, ([0-9]{1,9}) received,(?: \+[0-9]+ \w+,)*"
    r" (\S{1,20})% packet loss, time [0-9]+ms"
)
_TIMES = re.compile(r"rtt min/avg/max/mdev = (\S+?)/(\S+?)/(\S+?)/(\S+?) (\S+?)(?:,.*)?")


def parse(text: str) -> list[Reading]:
    """round_trip (median, ms; without -q), min, mean, max (ms) and loss (%).

    Raises OutputError: `generic` if the host is unknown or nothing came back, `invalid` if a reply
    is damaged or the statistics are not those of the replies.
    """
    printed = values.filled(text)
    for line in printed:
        if line.startswith("ping: "):
            raise OutputError(line[:100], "generic")
    if not text.endswith("\n") or len(_TITLE.findall(text)) != 1:
        raise OutputError("ping: cut off, or not exactly one run of ping")
    loss, received = _loss(printed)
    least, mean, most = _times(printed)
    readings = [
        Reading("min", least, "ms"),
        Reading("mean", mean, "ms"),
        Reading("max", most, "ms"),
        Reading("loss", loss, "%"),
    ]
    replies = _replies(printed)
    if not replies:  # ping -q
        return readings
    if len(replies) != received:
        raise OutputError(f"ping: {len(replies)} replies listed, {received} counted")
    slack = 1 + ROUNDING
    if least > min(replies) * slack or max(replies) > most * slack:
        raise OutputError("ping: the statistics do not agree with the replies", "invalid")
    return [Reading("round_trip", median(replies), "ms"), *readings]


def conditions(text: str) -> dict[str, str]:
    """size: bytes of data in a packet; packets: how many were sent."""
    found = {}
    if title := _TITLE.search(text):
        found["size"] = title[1]
    for counts in filter(None, map(_COUNTS.fullmatch, values.harmless(text))):
        found.setdefault("packets", counts[1])
    return found


def _loss(printed: list[str]) -> tuple[Decimal, int]:
    """The loss in percent, and how many came back."""
    counts = [match for match in map(_COUNTS.fullmatch, printed) if match]
    count = values.only("ping", "statistics", counts)
    sent, received = int(count[1]), int(count[2])
    if not received:
        raise OutputError(f"ping: none of {sent} packets came back", "generic")
    loss = values.number("ping: loss", count[3])
    if received > sent or abs(Decimal(100 * (sent - received)) / sent - loss) >= 1:
        raise OutputError("ping: the loss does not agree with the packets", "invalid")
    return loss, received


def _times(printed: list[str]) -> tuple[Decimal, Decimal, Decimal]:
    """Least, mean and most, in ms."""
    found = [match for match in map(_TIMES.fullmatch, printed) if match]
    if len(found) != 1 or found[0][5] != "ms":
        raise OutputError("ping: no line of times in ms, or several")
    least, mean, most = (values.positive("ping: time", found[0][i]) for i in (1, 2, 3))
    if not least <= mean <= most:
        raise OutputError("ping: the mean is not between least and most", "invalid")
    return least, mean, most


def _replies(printed: list[str]) -> list[Decimal]:
    """The times of all replies but duplicates, in ms."""
    times: dict[str, Decimal] = {}
    for line in printed:
        if line.startswith("wrong data byte"):
            raise OutputError("ping: a reply with wrong data", "invalid")
        match = _REPLY.fullmatch(line)
        if match is None:
            continue
        sequence, time, unit, duplicate, remark = match.groups()
        if unit != "ms" or remark:
            raise OutputError(f"ping: a reply with '{f'{unit}{remark}'[:60]}'", "invalid")
        if duplicate:
            continue
        if sequence in times:
            raise OutputError(f"ping: two replies to packet {sequence}, appended to one file")
        times[sequence] = values.positive("ping: time", time)
    return list(times.values())
