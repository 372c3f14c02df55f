"""A point of LNET selftest: the rate of all clients together, in the requested direction.

lst prints what one client of the group has on average, so a total is that times the clients. R is
what clients received (read), W what they sent (write).
"""

from __future__ import annotations

from decimal import Decimal

from siteproof.derive import Derived, Given
from siteproof.errors import OutputError
from siteproof.parsers import Reading


def derive(given: Given) -> Derived:
    """read or write, MiB/s of all clients. facts: direction and clients of the point.

    Raises OutputError where nothing moved in that direction.
    """
    direction, clients = given.fact("direction"), int(given.fact("clients"))
    found = [
        Reading(direction, Decimal(r.value) * clients, r.unit)
        for r in given.readings
        if r.metric == direction and r.dims.get("group") == "clients"
    ]
    if not found:
        raise OutputError(f"lst: no {direction} of the clients", "invalid")
    return found, dict(given.conditions)
