"""MpiPingPong: that the two ranks sat on the two nodes, and which sizes are compared."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from siteproof.errors import OutputError
from siteproof.parsers import Reading

if TYPE_CHECKING:
    from siteproof.collect.raw import Raw

MICROSECONDS = 6  # powers of ten in a second
_RANK = re.compile(r"^rank ([0-9]{1,9}) on (\S{1,200})$", re.MULTILINE)


def derive(
    readings: list[Reading], conditions: Mapping[str, str], raw: Raw, facts: Mapping[str, object]
) -> tuple[list[Reading], dict[str, str]]:
    """latency (us) of the smallest and bandwidth of the largest size; *_by_size of each.

    facts: smallest and largest, in bytes. Raises OutputError: `invalid` if rank 0 was not on the
    client or rank 1 not on the server.
    """
    kept = dict(conditions)
    server = kept.pop("server", "")
    client = raw.meta.get("node", "")
    for run in raw.runs:
        if client == server:
            raise OutputError(f"client and server are both {client}", "invalid")
        must_sit(run.stdout, client, server)
    each = [in_microseconds(reading) for reading in readings]
    by_size = [
        Reading(f"{r.metric}_by_size", r.value, r.unit, {"size": r.dims["size"]}) for r in each
    ]
    smallest, largest = str(facts["smallest"]), str(facts["largest"])
    kept |= {"latency_size": smallest, "bandwidth_size": largest}
    return [_at(each, "latency", smallest), _at(each, "bandwidth", largest), *by_size], kept


def must_sit(text: str, first: str, second: str) -> None:
    """Refuse two ranks elsewhere than on these nodes; each says it before it is the benchmark."""
    found, asked = set(_RANK.findall(text)), {("0", first), ("1", second)}
    if found != asked:
        told = ", ".join(f"{rank} on {node}" for rank, node in sorted(found)) or "nowhere"
        raise OutputError(f"ranks sat {told}; asked was 0 on {first}, 1 on {second}", "invalid")


def in_microseconds(reading: Reading) -> Reading:
    """A latency in us, whichever unit the program has; no digit is lost."""
    if reading.unit != "s":
        return reading
    value = Decimal(f"{Decimal(reading.value).scaleb(MICROSECONDS):f}")
    return Reading(reading.metric, value, "us", reading.dims)


def _at(readings: list[Reading], metric: str, size: str) -> Reading:
    """The figure of one size, without the dimension. Raises OutputError."""
    found = [r for r in readings if r.metric == metric and r.dims["size"] == size]
    if len(found) != 1:
        raise OutputError(f"{len(found)} figures of {metric} at {size} bytes, asked was one")
    return Reading(metric, found[0].value, found[0].unit)
