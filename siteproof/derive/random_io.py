"""RandomIo: rates count where the file was verified before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from siteproof.errors import OutputError
from siteproof.parsers import Reading

if TYPE_CHECKING:
    from siteproof.collect.raw import Raw

PHASES = ("read", "write")
BLOCKS = ("4096", "1048576")


def derive(
    readings: list[Reading], conditions: Mapping[str, str], raw: Raw, facts: Mapping[str, object]
) -> tuple[list[Reading], dict[str, str]]:
    """Each phase's figures with the dimension `block` alone.

    Raises OutputError: `invalid` where less than the whole file was verified.
    """
    verified = sum(
        int(r.value)
        for r in readings
        if r.dims.get("phase") == "verify" and r.metric == "read_bytes"
    )
    if verified < int(str(facts["size"])):
        raise OutputError(f"{verified} of {facts['size']} bytes were verified", "invalid")
    found = []
    for phase in PHASES:
        mine = [
            r
            for r in readings
            if r.dims.get("phase") == phase
            and r.metric.startswith(phase)
            and not r.metric.endswith("_bytes")
        ]
        if {r.dims["block"] for r in mine} != set(BLOCKS):
            raise OutputError(f"random {phase}: not in blocks of {' and '.join(BLOCKS)} bytes")
        found += [Reading(r.metric, r.value, r.unit, {"block": r.dims["block"]}) for r in mine]
    return found, dict(conditions)
