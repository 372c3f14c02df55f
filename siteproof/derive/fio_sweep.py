"""FioSweep: a point's figures count where its file was verified and fio did what was asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from siteproof.errors import OutputError
from siteproof.parsers import Reading

if TYPE_CHECKING:
    from siteproof.collect.raw import Raw

NAMES = {"": "rate", "_iops": "iops", "_p99": "p99"}  # by what follows the direction


def derive(
    readings: list[Reading], conditions: Mapping[str, str], raw: Raw, facts: Mapping[str, object]
) -> tuple[list[Reading], dict[str, str]]:
    """rate (MB/s), iops and p99 (us) of the point's pattern.

    facts: size of the file in bytes; block, depth and pattern as asked for. Raises OutputError:
    `invalid` where less than the file was verified, or fio measured something else.
    """
    verified = sum(
        int(r.value)
        for r in readings
        if r.dims.get("phase") == "verify" and r.metric == "read_bytes"
    )
    if verified < int(str(facts["size"])):
        raise OutputError(f"{verified} of {facts['size']} bytes were verified", "invalid")
    pattern, block = str(facts["pattern"]), str(facts["block"])
    direction = pattern.removeprefix("rand")
    mine = [r for r in readings if r.dims.get("phase") == pattern]
    if {(r.dims["block"], r.metric.partition("_")[0]) for r in mine} != {(block, direction)}:
        raise OutputError(f"fio: {pattern} was not in blocks of {block} bytes", "invalid")
    if conditions.get("depth", "1") != str(facts.get("depth", "1")):
        raise OutputError(
            f"fio: {conditions.get('depth')} requests at a time, asked were {facts['depth']}",
            "invalid",
        )
    found = [
        Reading(name, r.value, r.unit)
        for r in mine
        for ending, name in NAMES.items()
        if r.metric == direction + ending
    ]
    return found, {k: text for k, text in conditions.items() if k != "depth" or k not in facts}
