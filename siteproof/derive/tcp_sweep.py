"""A point of a TCP sweep: iperf3's throughput as `rate`, beside the segments sent again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from siteproof.derive.tcp_bandwidth import OF_A_RUN
from siteproof.parsers import Reading

if TYPE_CHECKING:
    from siteproof.collect.raw import Raw

NAMES = {"throughput": "rate", "retransmits": "retransmits"}


def derive(
    readings: list[Reading], conditions: Mapping[str, str], raw: Raw, facts: Mapping[str, object]
) -> tuple[list[Reading], dict[str, str]]:
    """rate (b/s, as the receiver counted it) and retransmits of one run."""
    found = [replace(r, metric=NAMES[r.metric]) for r in readings if r.metric in NAMES]
    return found, {key: value for key, value in conditions.items() if key not in OF_A_RUN}
