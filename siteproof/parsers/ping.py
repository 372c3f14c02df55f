"""ping of iputils: text in, readings out. Its times are milliseconds.

Its own statistics round a list of replies that is there to see, so the median is taken from the
list; with -q there is none, and `mean` is all that is left. What answers twice counts once.
"""

from __future__ import annotations

import re
from decimal import Decimal
from statistics import median

from siteproof.errors import OutputError
from siteproof.parsers import Reading, figures, lines

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
    said = list(lines.harmless(text))
    if unknown := next((line for line in said if line.startswith("ping: ")), ""):
        raise OutputError(unknown[:100], "generic")
    if not text.endswith("\n") or len(_TITLE.findall(text)) != 1:
        raise OutputError("ping: cut off, or not exactly one run of ping")
    loss, received = _loss(said)
    least, mean, most = _times(said)
    readings = [
        Reading("min", least, "ms"),
        Reading("mean", mean, "ms"),
        Reading("max", most, "ms"),
        Reading("loss", loss, "%"),
    ]
    replies = _replies(said)
    if not replies:
        return readings
    if len(replies) != received:
        raise OutputError(f"ping: {len(replies)} replies listed, {received} counted")
    middle = median(replies)
    if not _below(least, min(replies)) or not _below(max(replies), most):
        raise OutputError("ping: the statistics are not those of the replies", "invalid")
    return [Reading("round_trip", middle, "ms"), *readings]


def conditions(text: str) -> dict[str, str]:
    """size: bytes of data in a packet; packets: how many were sent."""
    found = {}
    if title := _TITLE.search(text):
        found["size"] = title[1]
    if counts := next(filter(None, map(_COUNTS.fullmatch, lines.harmless(text))), None):
        found["packets"] = counts[1]
    return found


def _loss(said: list[str]) -> tuple[Decimal, int]:
    """The loss in percent, and how many came back."""
    counts = [match for line in said if (match := _COUNTS.fullmatch(line))]
    if len(counts) != 1:
        raise OutputError(f"ping: {len(counts)} statistics where one is expected")
    sent, received = int(counts[0][1]), int(counts[0][2])
    if not received:
        raise OutputError(f"ping: none of {sent} packets came back", "generic")
    loss = figures.number("ping: loss", counts[0][3])
    if received > sent or abs(Decimal(100 * (sent - received)) / sent - loss) >= 1:
        raise OutputError("ping: the loss is not that of its packets", "invalid")
    return loss, received


def _times(said: list[str]) -> tuple[Decimal, Decimal, Decimal]:
    """Least, mean and most, in ms."""
    found = [match for line in said if (match := _TIMES.fullmatch(line))]
    if len(found) != 1 or found[0][5] != "ms":
        raise OutputError("ping: no line of times in ms, or several")
    least, mean, most = (figures.positive("ping: time", found[0][i]) for i in (1, 2, 3))
    if not least <= mean <= most:
        raise OutputError("ping: the mean is not between least and most", "invalid")
    return least, mean, most


def _replies(said: list[str]) -> list[Decimal]:
    """The times of all replies but duplicates, in ms."""
    times: dict[str, Decimal] = {}
    for line in said:
        if line.startswith("wrong data byte"):
            raise OutputError("ping: a reply with wrong data", "invalid")
        if not (match := _REPLY.fullmatch(line)):
            continue
        sequence, time, unit, again, remark = match.groups()
        if unit != "ms" or remark:
            raise OutputError(f"ping: a reply says '{f'{unit}{remark}'[:60]}'", "invalid")
        if (
            not again
            and times.setdefault(sequence, value := figures.positive("ping: time", time))
            is not value
        ):
            raise OutputError(f"ping: two replies to packet {sequence}, appended to one file")
    return list(times.values())


def _below(low: Decimal, high: Decimal) -> bool:
    return low <= high * (1 + ROUNDING)
