"""How a node has been, as checks/system/health.sh prints it: counters and states.

Counters count since boot, so one of them means little; siteproof.analysis.uniformity takes deltas.
"""

from __future__ import annotations

import re
from decimal import Decimal

from siteproof.errors import OutputError
from siteproof.parsers import Reading, rdma_ports, values

_COUNTS = (
    *("edac_ce", "edac_ue", "mce", "throttled", "throttled_package", "oom_kills", "swapped_out"),
    *("kernel_errors", "zombies", "read_only", "load"),
)
UNIT = dict.fromkeys(_COUNTS, "count") | {
    "clock_lowest": "MHz",
    "clock_most": "MHz",
    "time_offset": "ms",
    "uptime": "s",
    "swap_used": "KiB",
    "time": "s",
    "slurmd_age": "s",
}
NIC = (
    "rx_errors",
    "tx_errors",
    "rx_dropped",
    "tx_dropped",
    "rx_missed_errors",
    "rx_crc_errors",
    "carrier_changes",
    "rx_pause",
    "tx_pause",
    *rdma_ports.ERRORS,
    *rdma_ports.CONGESTION,
)
GPU = ("ecc_corrected", "ecc_uncorrected")
CARDS = {"nic": NIC, "gpu": GPU}

_COUNT = re.compile(r"count (\S+) = (-?[0-9]{1,20}(?:\.[0-9]{1,9})?)")
_CARD = re.compile(r"(nic|gpu)\.(\S+)\.([a-z_]+)")
_BOOT = re.compile(r"text boot = ([0-9a-f-]{36})")


def parse(text: str) -> list[Reading]:
    """A number each, and the boot's id as a text; those of a card have dims: {"nic": "eth0"}.

    Raises OutputError if the end or the boot's id is missing, or a counter is unknown, not a number
    or printed twice with two values.
    """
    found: dict[str, Reading] = {}
    for line in values.whole(text, "health"):
        if not line.startswith(("count ", "text ")):
            continue
        reading = _reading(line)
        name = f"{reading.metric} {reading.dims}"
        if found.setdefault(name, reading) != reading:
            raise OutputError(f"health: two values of {reading.metric}")
    if "boot {}" not in found:
        raise OutputError("health: no id of the boot, without which counters cannot be compared")
    return list(found.values())


def _reading(line: str) -> Reading:
    if boot := _BOOT.fullmatch(line):
        return Reading("boot", boot[1], "text")
    match = _COUNT.fullmatch(line)
    if not match:
        raise OutputError(f"health: no number in '{line[:80]}'")
    name, value = match[1][: values.LONGEST], Decimal(match[2])
    if name in UNIT:
        if value < 0 and name != "time_offset":
            raise OutputError(f"health: {name} is {match[2]}")
        return Reading(name, value, UNIT[name])
    card = _CARD.fullmatch(name)
    if not card or card[3] not in CARDS[card[1]] or value < 0:
        raise OutputError(f"health: unknown counter '{name[:80]}'")
    return Reading(f"{card[1]}_{card[3]}", value, "count", {card[1]: card[2]})
