"""A point of a TCP sweep: iperf3's throughput as `rate`, and the segments sent again."""

from __future__ import annotations

from dataclasses import replace

from siteproof.derive import Derived, Given
from siteproof.derive.tcp_bandwidth import OF_A_JOB

NAMES = {"throughput": "rate", "retransmits": "retransmits"}


def derive(given: Given) -> Derived:
    """rate (b/s, as the receiver counted it) and retransmits of one run."""
    found = [replace(r, metric=NAMES[r.metric]) for r in given.readings if r.metric in NAMES]
    return found, {key: value for key, value in given.conditions.items() if key not in OF_A_JOB}
