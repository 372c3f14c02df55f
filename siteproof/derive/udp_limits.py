"""What UDP runs have in common: their values by run, and signs that an end was the limit.

UDP has no flow control: what a busy receiver does not fetch in time is lost, although the network
has carried it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from siteproof import units
from siteproof.derive.limitations import Limit, Limitation
from siteproof.errors import OutputError
from siteproof.parsers import Reading

BUSY = 90  # % of a core: the rest is lost between two looks at the clock
KEPT = ("program", "version", "mtu", "window_warning")  # what all runs of both programs have
OF_A_JOB = ("burst", "datagram", "duration", "window")


@dataclass(frozen=True)
class UdpResult:
    """What one run gave: its readings by metric, and its dimensions (siteproof/checks/udp.py)."""

    dims: Mapping[str, str]
    readings: Mapping[str, Reading]

    @property
    def conditions(self) -> dict[str, str]:
        """What it was measured with; a window of 0 is the host's default."""
        found = {key: self.dims[key] for key in OF_A_JOB}
        if found["window"] == "0":
            found["window"] = "default"
        return found

    @property
    def sent(self) -> Fraction:
        """The sender's rate in b/s."""
        reading = self.readings["sent"]
        return units.convert(Decimal(reading.value), reading.unit, "b/s")

    def share(self, metric: str) -> Decimal:
        """A share in %, as printed."""
        return Decimal(self.readings[metric].value)


def by_run(readings: Sequence[Reading]) -> list[UdpResult]:
    """The runs in the order of time. Raises OutputError where a run lacks a dimension."""
    found: dict[str, list[Reading]] = {}
    for reading in readings:
        if missing := sorted({"kind", *OF_A_JOB} - set(reading.dims)):
            raise OutputError(f"udp: a run without {', '.join(missing)}")
        found.setdefault(str(sorted(reading.dims.items())), []).append(reading)
    return [UdpResult(rows[0].dims, {row.metric: row for row in rows}) for rows in found.values()]


def conditions(given: Mapping[str, str]) -> dict[str, str]:
    """What is true of all runs, whichever program made them."""
    return {key: given[key] for key in KEPT if key in given}


def of_receiver(runs: Sequence[UdpResult]) -> Limitation | None:
    """Set if datagrams were lost, and the receiver is the reason, or the reason is unknown."""
    losing = [run for run in runs if run.share("loss") > 0]
    if any(run.dims.get("discarded", "0") != "0" for run in losing):
        return Limitation(Limit.RECEIVER_SOCKET)
    if any(run.share("cpu_receiver") >= BUSY for run in losing):
        return Limitation(Limit.RECEIVER_MAY_BE)
    if any("discarded" not in run.dims for run in losing):
        return Limitation(Limit.DISCARDED_UNKNOWN)
    return None
