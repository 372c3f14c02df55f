"""iperf3 with -J, as its client prints it: text in, readings out. One direction a run.

iperf3 3.12 exits with 0 after every error, so the key `error` decides. Throughput is what the
receiver counted (end.sum_received), of TCP and of UDP; of UDP, `sum` and `sum_sent` hold the
sender's rate. The loss of UDP is what the receiver missed; it knows nothing of datagrams that were
lost after the last one that arrived. A few of those are normal when the sender is too fast, many
mean that the link died during the test.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from siteproof.errors import OutputError
from siteproof.parsers import Reading, values
from siteproof.parsers.values import Object

NEEDS = "the client of iperf3 3 with -J, one direction, of one run; of UDP 3.7 or later"

SHORTER = Decimal("0.99")  # of the requested seconds; the last interval ends a little early
UNSEEN = Decimal("0.01")  # of all datagrams, after the last that arrived
UNDER_WAY = Decimal("0.2")  # seconds of datagrams that may be: more than any round trip on Earth
LONGEST = 100  # characters of a message


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

    Raises OutputError: `generic` with iperf3's message if the test failed, `invalid` if nothing
    arrived, the test was shorter than requested, or its own counts contradict each other.
    """
    result = _result(text)
    start, end = _part(_part(result, "start"), "test_start"), _part(result, "end")
    if start.get("protocol") not in {"TCP", "UDP"} or start.get("reverse") not in {"0", "1"}:
        raise OutputError("iperf3: neither TCP nor UDP, or no direction")
    if any("bidir" in key for key in end):
        raise OutputError("iperf3: both directions at once (--bidir), where one is expected")
    sent, received = _part(end, "sum_sent"), _part(end, "sum_received")
    rate, seconds = _rate("received", received), _value(received, "seconds")
    offered = _rate("sent", sent)
    requested = _value(start, "duration")  # 0 where bytes or blocks were requested
    if min(seconds, _value(sent, "seconds")) < requested * SHORTER:
        raise OutputError(f"iperf3: ran {seconds} s of {requested} s", "invalid")
    readings = [Reading("throughput", rate, "b/s")]
    if start.get("protocol") == "UDP":
        readings += [Reading("sent", offered, "b/s"), *_datagrams(start, sent, received)]
    elif "retransmits" in sent:
        readings.append(Reading("retransmits", _value(sent, "retransmits"), "count"))
    used = _part(end, "cpu_utilization_percent")
    keys = ["host_total", "remote_total"]  # of the client, which sends unless -R is given
    sender, receiver = reversed(keys) if start.get("reverse") == "1" else keys
    return [
        *readings,
        Reading("cpu_sender", _value(used, sender), "%"),
        Reading("cpu_receiver", _value(used, receiver), "%"),
    ]


def conditions(text: str) -> dict[str, str]:
    """protocol, streams, duration (s), datagram or block, mss (B), reverse, window, version …"""
    result = _result(text)
    head = _part(result, "start")
    test = _part(head, "test_start")
    udp = test.get("protocol") == "UDP"
    found = {
        "protocol": test.get("protocol"),
        "streams": test.get("num_streams"),
        "duration": test.get("duration"),
        "omit": test.get("omit"),
        "datagram" if udp else "block": test.get("blksize"),
        "target_rate": test.get("target_bitrate") if udp else None,
        "reverse": {"0": "no", "1": "yes"}.get(str(test.get("reverse"))),
        "mss": head.get("tcp_mss", head.get("tcp_mss_default")),
        "window": "default" if head.get("sock_bufsize") == "0" else head.get("sock_bufsize"),
        "congestion": _part(result, "end").get("sender_tcp_congestion"),
        "version": str(head.get("version", "")).removeprefix("iperf "),
    }
    return values.words(found)


def intervals(text: str) -> list[Interval]:
    """The intervals that count (those of --omit do not), to add up pairs over a common window.

    A sending client counts what it sent, with -R what it received. Raises OutputError.
    """
    result = _result(text)
    head = _part(result, "start")
    begin = _value(_part(head, "timestamp"), "timesecs")
    begin += _value(_part(head, "test_start"), "omit")  # the clock of `start` begins after it
    sums = [_part(row, "sum") for row in values.rows("iperf3", result, "intervals")]
    return [
        Interval(begin + _value(row, "start"), _value(row, "seconds"), 8 * _value(row, "bytes"))
        for row in sums
        if row.get("omitted") is False
    ]


def _result(text: str) -> Object:
    """The JSON. Raises OutputError if there is none, or it reports that the test failed."""
    try:
        result, rest = values.load("iperf3", text.lstrip())
    except OutputError:
        first = next((line for line in values.harmless(text[:1000]) if line), "")
        if first.startswith("iperf3: "):
            raise OutputError(first[:LONGEST], "generic") from None
        raise
    if rest:
        raise OutputError("iperf3: more than one output in one file")
    if "error" in result:
        message = " ".join(values.harmless(str(result["error"])[:LONGEST]))
        raise OutputError(f"iperf3: {message}", "generic")
    if not str(_part(result, "start").get("version")).startswith("iperf 3"):
        raise OutputError("iperf3: JSON of another program")
    return result


def _rate(what: str, part: Object) -> Decimal:
    """A rate that is its bytes by its seconds."""
    data, seconds = _value(part, "bytes"), _value(part, "seconds")
    if data == 0 or seconds == 0:
        raise OutputError(f"iperf3: no bytes {what}", "invalid")
    rate = _value(part, "bits_per_second")
    values.must_agree(f"iperf3: rate {what}", rate, 8 * data, seconds)
    return rate


def _datagrams(start: Object, sent: Object, received: Object) -> list[Reading]:
    """Loss and jitter, if the counts of both ends and the loss belong together."""
    # iperf3 counts as seen all up to the last that arrived, the lost ones among them.
    seen, lost = _value(received, "packets"), _value(received, "lost_packets")
    all_sent, loss = _value(sent, "packets"), _value(received, "lost_percent")
    size, data = _value(start, "blksize"), _value(received, "bytes")
    if not 0 < seen <= all_sent or lost > seen:
        raise OutputError("iperf3: more datagrams arrived or were lost than were sent", "invalid")
    if abs((seen - lost) * size / data - 1) > values.TOLERANCE:
        raise OutputError("iperf3: the bytes received do not agree with the datagrams", "invalid")
    under_way = UNDER_WAY / max(_value(sent, "seconds"), UNDER_WAY)
    if all_sent - seen > max(UNSEEN, under_way) * all_sent:
        unseen = f"the last {all_sent - seen} datagrams"
        raise OutputError(f"iperf3: the receiver did not count {unseen}", "invalid")
    # Versions count against either end.
    least, most = 1 - values.TOLERANCE, 1 + values.TOLERANCE
    if not 100 * lost / all_sent * least <= loss <= 100 * lost / seen * most:
        raise OutputError("iperf3: the loss does not agree with the datagrams", "invalid")
    return [Reading("loss", loss, "%"), Reading("jitter", _value(received, "jitter_ms"), "ms")]


def _value(part: Object, key: str) -> Decimal:
    return values.number(f"iperf3: {key}", str(part.get(key)))


def _part(whole: Object, key: str) -> Object:
    return values.part("iperf3", whole, key)
