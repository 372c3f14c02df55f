"""FioSweep: a point counts where its file was verified and fio did what the point requests."""

from __future__ import annotations

from siteproof.derive import Derived, Given, must_be
from siteproof.errors import OutputError
from siteproof.parsers import Reading

NAMES = {"": "rate", "_iops": "iops", "_p99": "p99"}  # by what follows the direction


def derive(given: Given) -> Derived:
    """rate (MB/s), iops and p99 (us) of the point's pattern.

    facts: size of the file in bytes; block, depth and pattern as requested. Raises OutputError:
    `invalid` where less than the file was verified, or fio measured something else.
    """
    given.must_be_verified()
    pattern, block = given.fact("pattern"), given.fact("block")
    direction = pattern.removeprefix("rand")
    found = []
    for reading in given.of_phase(pattern):
        if not reading.metric.startswith(direction) or reading.dims["block"] != block:
            raise OutputError(f"fio: {pattern} was not in blocks of {block} bytes", "invalid")
        if name := NAMES.get(reading.metric.removeprefix(direction)):
            found.append(Reading(name, reading.value, reading.unit))
    if not found:
        raise OutputError(f"fio: no result of {pattern}", "invalid")
    conditions = dict(given.conditions)
    must_be("fio: depth", conditions.get("depth", "1"), given.fact("depth", "1"))
    if "depth" in given.facts:  # then it is a dimension of the point
        conditions.pop("depth", None)
    return found, conditions
