"""PathMtu: the path's MTU, that of the client's device, and a warning where one is too small."""

from __future__ import annotations

from decimal import Decimal

from siteproof.derive import Derived, Given
from siteproof.derive.limitations import Limit, Limitation
from siteproof.parsers import Reading, values

OF_TCP = ("rmem_max", "wmem_max")


def derive(given: Given) -> Derived:
    """Add `device` (B), the MTU of the client's own device, where the client knows it.

    What a path does with larger packets, and what the client has, are warnings and no conditions.
    """
    conditions = {key: value for key, value in given.conditions.items() if key not in OF_TCP}
    own, promised = conditions.pop("mtu", ""), given.fact("mtu", "")
    if conditions.pop("silent", "no") == "yes":
        conditions["silent_warning"] = str(Limitation(Limit.SILENT_LOSS))
    if not own:
        return given.readings, conditions
    device = values.positive("path_mtu: the device's MTU", own)
    if promised and device < Decimal(promised):
        limitation = Limitation(Limit.DEVICE_MTU, {"own": own, "expected": promised})
        conditions["device_warning"] = str(limitation)
    return [*given.readings, Reading("device", device, "B")], conditions
