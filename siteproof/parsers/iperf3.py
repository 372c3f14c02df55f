"""iperf3 with -J, as its client prints it: text in, readings out. One direction a run.

iperf3 3.12 exits with 0 after every error, so the key `error` decides. Throughput is what the
receiver counted (end.sum_received), of TCP and of UDP; of UDP, `sum` and `sum_sent` hold the
sender's rate. The loss of UDP is what the receiver missed; it knows nothing of datagrams that were
lost behind the last one that arrived. A few of those are normal when the sender is too fast, many
mean that the link died during the test.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from siteproof.errors import OutputError
from siteproof.parsers import Reading, figures, lines

SHORTER = Decimal("0.99")  # of the seconds asked for; the last interval ends a little early
UNSEEN = Decimal("0.01")  # of all datagrams, behind the last that arrived
UNDER_WAY = Decimal("0.2")  # seconds of datagrams that may be: more than any round trip on Earth
LONGEST = 100  # characters of a message or a name


@dataclass(frozen=True)
class Interval:
    """What all streams together moved in one interval, as the client's end counted it.

    start: seconds since the epoch by the client's clock. iperf3 3.12 prints the start of the test
    in whole seconds, so it is up to 1 s early. seconds: its length.
    """

    start: Decimal
    seconds: Decimal
    bits: Decimal


def parse(text: str) -> list[Reading]:
    """TCP: throughput (b/s), retransmits where printed, cpu_sender, cpu_receiver (%).

    UDP: throughput, sent (b/s), loss (%), jitter (ms), cpu_sender, cpu_receiver.

    Raises OutputError: `generic` with iperf3's words if the test failed, `invalid` if nothing
    arrived, the test was shorter than asked for, or its own counts contradict each other.
    """
    result = _result(text)
    start, end = _part(_part(result, "start"), "test_start"), _part(result, "end")
    _one_direction(start, end)
    sent, received = _part(end, "sum_sent"), _part(end, "sum_received")
    rate, seconds = _rate("received", received), _figure(received, "seconds")
    offered = _rate("sent", sent)
    asked = _figure(start, "duration")  # 0 where bytes or blocks were asked for
    if min(seconds, _figure(sent, "seconds")) < asked * SHORTER:
        raise OutputError(f"iperf3: ran {seconds} s of {asked} s", "invalid")
    readings = [Reading("throughput", rate, "b/s")]
    if start.get("protocol") == "UDP":
        readings += [Reading("sent", offered, "b/s"), *_datagrams(start, sent, received)]
    elif "retransmits" in sent:
        readings.append(Reading("retransmits", _figure(sent, "retransmits"), "count"))
    return readings + _cpu(start, end)


def conditions(text: str) -> dict[str, str]:
    """protocol, streams, duration (s), datagram or block, mss (B), reverse, window, version …"""
    try:
        result = _result(text)
        head = _part(result, "start")
        asked = _part(head, "test_start")
    except OutputError:
        return {}
    end = result.get("end")
    udp = asked.get("protocol") == "UDP"
    found: dict[str, object] = {
        "protocol": asked.get("protocol"),
        "streams": asked.get("num_streams"),
        "duration": asked.get("duration"),
        "omit": asked.get("omit"),
        "datagram" if udp else "block": asked.get("blksize"),
        "target_rate": asked.get("target_bitrate") if udp else None,
        "reverse": {"0": "no", "1": "yes"}.get(str(asked.get("reverse"))),
        "mss": head.get("tcp_mss", head.get("tcp_mss_default")),
        "window": "default" if head.get("sock_bufsize") == "0" else head.get("sock_bufsize"),
        "congestion": end.get("sender_tcp_congestion") if isinstance(end, dict) else None,
        "version": str(head.get("version", "")).removeprefix("iperf "),
    }
    return {key: value for key, value in found.items() if isinstance(value, str) and _plain(value)}


def intervals(text: str) -> list[Interval]:
    """The intervals that count (those of --omit do not), to add up pairs over a common window.

    A sending client counts what it sent, with -R what it received. Raises OutputError.
    """
    result = _result(text)
    head = _part(result, "start")
    begin = _figure(_part(head, "timestamp"), "timesecs")
    begin += _figure(_part(head, "test_start"), "omit")  # the clock of `start` begins after it
    rows = result.get("intervals")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise OutputError("iperf3: no intervals")
    sums = [_part(row, "sum") for row in rows]
    return [
        Interval(begin + _figure(row, "start"), _figure(row, "seconds"), 8 * _figure(row, "bytes"))
        for row in sums
        if row.get("omitted") is False
    ]


def _result(text: str) -> dict[str, Any]:
    """The JSON. Raises OutputError if there is none, or it says that the test failed."""
    try:  # numbers stay the text that was printed
        result = json.loads(text, parse_float=str, parse_int=str, parse_constant=str)
    except (ValueError, RecursionError):
        first = next((line for line in lines.harmless(text[:1000]) if line), "")
        if first.startswith("iperf3: "):
            raise OutputError(first[:LONGEST], "generic") from None
        raise OutputError("iperf3: cut off, or no JSON") from None
    if not isinstance(result, dict):
        raise OutputError("iperf3: JSON, and not iperf3's")
    if "error" in result:
        words = " ".join(lines.harmless(str(result["error"])[:LONGEST]))
        raise OutputError(f"iperf3: {words}", "generic")
    if not str(_part(result, "start").get("version")).startswith("iperf 3"):
        raise OutputError("iperf3: JSON, and not iperf3's")
    return result


def _one_direction(start: dict[str, Any], end: dict[str, Any]) -> None:
    if start.get("protocol") not in {"TCP", "UDP"} or start.get("reverse") not in {"0", "1"}:
        raise OutputError("iperf3: neither TCP nor UDP, or no direction")
    if any("bidir" in key for key in end):
        raise OutputError("iperf3: both directions at once (--bidir), where one is expected")


def _rate(what: str, part: dict[str, Any]) -> Decimal:
    """A rate that is its bytes by its seconds."""
    data, seconds = _figure(part, "bytes"), _figure(part, "seconds")
    if data == 0 or seconds == 0:
        raise OutputError(f"iperf3: no bytes {what}", "invalid")
    rate = _figure(part, "bits_per_second")
    figures.must_agree(f"iperf3: rate {what}", rate, 8 * data, seconds)
    return rate


def _datagrams(
    start: dict[str, Any], sent: dict[str, Any], received: dict[str, Any]
) -> list[Reading]:
    """Loss and jitter, if the counts of both ends and the loss belong together."""
    seen, lost = _figure(received, "packets"), _figure(received, "lost_packets")
    all_sent, loss = _figure(sent, "packets"), _figure(received, "lost_percent")
    size, data = _figure(start, "blksize"), _figure(received, "bytes")
    if not 0 < seen <= all_sent or lost > seen:
        raise OutputError("iperf3: more datagrams arrived or were lost than were sent", "invalid")
    if abs((seen - lost) * size / data - 1) > figures.TOLERANCE:
        raise OutputError("iperf3: bytes received are not the datagrams that arrived", "invalid")
    under_way = UNDER_WAY / max(_figure(sent, "seconds"), UNDER_WAY)
    if all_sent - seen > max(UNSEEN, under_way) * all_sent:
        raise OutputError(
            f"iperf3: the receiver knows nothing of the last {all_sent - seen} datagrams", "invalid"
        )
    if not _about(lost, all_sent) <= loss <= _about(lost, seen, up=True):
        raise OutputError("iperf3: the loss is not that of its datagrams", "invalid")
    return [Reading("loss", loss, "%"), Reading("jitter", _figure(received, "jitter_ms"), "ms")]


def _about(lost: Decimal, of: Decimal, *, up: bool = False) -> Decimal:
    """A share in percent, and a little less or more: versions count against either end."""
    return 100 * lost / of * (1 + figures.TOLERANCE if up else 1 - figures.TOLERANCE)


def _cpu(start: dict[str, Any], end: dict[str, Any]) -> list[Reading]:
    used = _part(end, "cpu_utilization_percent")
    local, remote = _figure(used, "host_total"), _figure(used, "remote_total")
    sender, receiver = (remote, local) if start.get("reverse") == "1" else (local, remote)
    return [Reading("cpu_sender", sender, "%"), Reading("cpu_receiver", receiver, "%")]


def _figure(part: dict[str, Any], key: str) -> Decimal:
    return figures.number(f"iperf3: {key}", str(part.get(key)))


def _part(held: dict[str, Any], key: str) -> dict[str, Any]:
    part = held.get(key)
    if not isinstance(part, dict):
        raise OutputError(f"iperf3: no '{key}'")
    return part


def _plain(value: str) -> bool:
    return 0 < len(value) <= LONGEST and value.isprintable()
