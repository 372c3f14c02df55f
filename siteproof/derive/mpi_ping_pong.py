"""MpiPingPong: that the two ranks sat on the two nodes, and which sizes are compared."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from siteproof.errors import OutputError
from siteproof.parsers import Reading

if TYPE_CHECKING:
    from siteproof.raw import Raw

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
    for run in raw.runs:
        _must_sit_apart(run.stdout, raw.meta.get("node", ""), server)
    each = [_in_microseconds(reading) for reading in readings]
    by_size = [Reading(f"{r.metric}_by_size", r.value, r.unit, {"size": r.dims["size"]})
               for r in each]
    smallest, largest = str(facts["smallest"]), str(facts["largest"])
    kept |= {"latency_size": smallest, "bandwidth_size": largest}
    return [_at(each, "latency", smallest), _at(each, "bandwidth", largest), *by_size], kept


def _must_sit_apart(text: str, client: str, server: str) -> None:
    """Refuse ranks that are not one on each node, as each says before it becomes the benchmark."""
    found, asked = set(_RANK.findall(text)), {("0", client), ("1", server)}
    if found != asked or client == server:
        told = ", ".join(f"{rank} on {node}" for rank, node in sorted(found)) or "nowhere"
        raise OutputError(f"ranks sat {told}; asked was 0 on {client}, 1 on {server}", "invalid")


def _in_microseconds(reading: Reading) -> Reading:
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
