"""A point of LNET selftest: the rate of all clients together, in the direction that was asked for.

lst prints what one client of the group has on average, so a total is that times the clients. R is
what clients received (read), W what they sent (write).
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from siteproof.errors import OutputError
from siteproof.parsers import Reading

if TYPE_CHECKING:
    from siteproof.collect.raw import Raw


def derive(
    readings: list[Reading], conditions: Mapping[str, str], raw: Raw, facts: Mapping[str, object]
) -> tuple[list[Reading], dict[str, str]]:
    """read or write, MiB/s of all clients. facts: direction and clients of the point.

    Raises OutputError where nothing moved in that direction.
    """
    way, clients = str(facts["direction"]), int(str(facts["clients"]))
    found = [
        Reading(way, Decimal(r.value) * clients, r.unit)
        for r in readings
        if r.metric == way and r.dims.get("group") == "clients"
    ]
    if not found:
        raise OutputError(f"lst: clients have no {way}", "invalid")
    return found, dict(conditions)
