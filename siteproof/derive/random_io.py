"""RandomIo: rates count where the file was verified before."""

from __future__ import annotations

from siteproof.derive import Derived, Given
from siteproof.errors import OutputError
from siteproof.parsers import Reading

PHASES = ("read", "write")
BLOCKS = ("4096", "1048576")


def derive(given: Given) -> Derived:
    """Each phase's values with the dimension `block` alone.

    Raises OutputError: `invalid` where less than the whole file was verified.
    """
    given.must_be_verified()
    found = []
    for phase in PHASES:
        blocks = set()
        for r in given.of_phase(phase):
            if r.metric.startswith(phase) and not r.metric.endswith("_bytes"):
                blocks.add(r.dims["block"])
                found.append(Reading(r.metric, r.value, r.unit, {"block": r.dims["block"]}))
        if blocks != set(BLOCKS):
            raise OutputError(f"random {phase}: not in blocks of {' and '.join(BLOCKS)} bytes")
    return found, dict(given.conditions)
