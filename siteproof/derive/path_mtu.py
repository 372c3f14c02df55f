"""PathMtu: beside the path's MTU that of the own device, and a word where one is too small."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from siteproof.parsers import Reading, figures

if TYPE_CHECKING:
    from siteproof.collect.raw import Raw

NO_MATTER = ("rmem_max", "wmem_max")  # of TCP


def derive(
    readings: list[Reading], conditions: Mapping[str, str], raw: Raw, facts: Mapping[str, object]
) -> tuple[list[Reading], dict[str, str]]:
    """Add `device` (B), the MTU of the client's own device, where the client knows it.

    What a path does with larger packets, and what the client has, are findings and no conditions.
    """
    kept = {key: value for key, value in conditions.items() if key not in NO_MATTER}
    own, promised = kept.pop("mtu", ""), str(facts.get("mtu", ""))
    if kept.pop("silent", "no") == "yes":
        kept["silent_warning"] = "larger packets are lost without a word, which can stall TCP"
    if not own:
        return readings, kept
    device = figures.positive("path_mtu: the device's MTU", own)
    if promised and device < Decimal(promised):
        kept["device_warning"] = f"the client's own MTU is {own}, the site says {promised}"
    return [*readings, Reading("device", device, "B")], kept
