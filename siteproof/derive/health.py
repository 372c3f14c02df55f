"""Health: how many values could not be read, and which, next to those that could; and faults.

Faults are what node health checks drain a node for (LBNL Node Health Check: check_hw_mcelog,
check_dmesg, check_fs_mount_rw), with the errors that the kernel counts itself.
"""

from __future__ import annotations

from decimal import Decimal

from siteproof.derive import Derived, Given
from siteproof.parsers import Reading, lines

FAULTS = ("mce", "kernel_errors", "oom_kills", "read_only")  # each must be read for the sum
ALSO_FAULTS = ("edac_ue",)  # where a driver counts them; without one they are machine checks, too


def derive(given: Given) -> Derived:
    """Add the counts unreadable and faults, and a text for each value that could not be read."""
    unreadable = lines.unreadable(given.raw.stdout)
    counts = [Reading("unreadable", Decimal(len(unreadable)), "count")]
    known = {r.metric: Decimal(r.value) for r in given.readings if r.unit == "count"}
    if lacking := [name for name in FAULTS if name not in known]:
        unreadable["faults"] = f"{', '.join(lacking)} could not be read"
    else:
        faults = sum(known.get(name, Decimal(0)) for name in (*FAULTS, *ALSO_FAULTS))
        counts.append(Reading("faults", Decimal(faults), "count"))
    return [*counts, *given.readings, *not_read(unreadable)], dict(given.conditions)


def not_read(unreadable: dict[str, str]) -> list[Reading]:
    """A text for each value that a node could not read, with the reason."""
    return [
        Reading("not_read", why, "text", {"parameter": name}) for name, why in unreadable.items()
    ]
