"""Bursts of UDP: losses count where the bursts were sent at the requested rate.

Why: nuttcp 6.1.2 sends a thousandth of it, loses nothing and exits with 0; and a sender that does
not get its processor in time sends no bursts either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from siteproof.derive import Derived, Given, udp_limits
from siteproof.derive.limitations import Limit, Limitation
from siteproof.derive.udp_limits import UdpResult
from siteproof.errors import OutputError
from siteproof.parsers import Reading

REQUESTED_MBPS = 300  # Mb/s: the -Ri300m of the contracts' commands
NEAR = Fraction(5, 100)  # by which the rate may miss


def derive(given: Given) -> Derived:
    """loss_small, loss_large (%), and largest_lossless (packets) with its burst_bound.

    Raises OutputError: `invalid` where the small or large bursts were not sent as requested.
    """
    runs = udp_limits.by_run(given.readings)
    conditions = udp_limits.conditions(given.conditions)
    conditions["rate"] = f"{REQUESTED_MBPS} Mb/s"
    found = []
    for kind in ("small", "large"):
        of_kind = [run for run in runs if run.dims["kind"] == kind]
        if not of_kind:
            raise OutputError(f"udp: no run of {kind} bursts")
        run = of_kind[0]
        if not _at_requested_rate(run):
            raise OutputError(str(_wrong_rate(run)), "invalid")
        found.append(replace(run.readings["loss"], metric=f"loss_{kind}", dims=run.conditions))
    ladder = [run for run in runs if run.dims["kind"] in ("large", "step")]
    tried = _until_off_rate(ladder)
    bound = given.conditions.get("burst_bound", "")
    if len(tried) < len(ladder):
        conditions["burst_warning"] = str(_wrong_rate(ladder[len(tried)]))
        bound = tried[-1].dims["burst"]
    if not bound.isdecimal():
        raise OutputError(f"udp: burst_bound '{bound}' is not a whole number of packets")
    if limitation := udp_limits.of_receiver(runs):
        conditions["receiver_warning"] = str(limitation)
    return [*found, _largest(tried, bound)], conditions


def _at_requested_rate(run: UdpResult) -> bool:
    return abs(run.sent / 10**6 / REQUESTED_MBPS - 1) <= NEAR


def _wrong_rate(run: UdpResult) -> Limitation:
    rate = f"{float(run.sent / 10**6):.1f}"
    details = {"burst": run.dims["burst"], "rate": rate, "expected": str(REQUESTED_MBPS)}
    return Limitation(Limit.BURST_RATE, details)


def _until_off_rate(ladder: Sequence[UdpResult]) -> Sequence[UdpResult]:
    """The bursts before the first that could not be sent as requested, or up to the first loss."""
    for number, run in enumerate(ladder):
        if not _at_requested_rate(run):
            return ladder[:number]
        if run.share("loss") > 0:
            break
    return ladder


def _largest(ladder: Sequence[UdpResult], bound: str) -> Reading:
    """The largest of ever larger bursts before the first loss; 0 where the first lost something.

    bound: the largest that would have been tried. A value that equals it only shows that nothing
    was lost so far.
    """
    largest = "0"
    for run in ladder:
        if run.share("loss") > 0:
            break
        largest = run.dims["burst"]
    conditions = ladder[0].conditions
    dims = {"datagram": conditions["datagram"], "window": conditions["window"]}
    return Reading("largest_lossless", Decimal(largest), "packets", {**dims, "burst_bound": bound})
