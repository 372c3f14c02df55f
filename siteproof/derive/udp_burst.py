"""Bursts of UDP: losses count where the bursts were sent at the rate that was asked for.

Why: nuttcp 6.1.2 sends a thousandth of it, loses nothing and exits with 0; and a sender that does
not get its processor in time sends no bursts either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from siteproof.derive import udp_limits
from siteproof.derive.udp_limits import UdpRun
from siteproof.errors import OutputError
from siteproof.parsers import Reading

if TYPE_CHECKING:
    from siteproof.collect.raw import Raw

ASKED_MBPS = 300  # Mb/s: the -Ri300m of the contracts' commands
NEAR = Fraction(5, 100)  # by which the rate may miss


def derive(
    readings: list[Reading], conditions: Mapping[str, str], raw: Raw, facts: Mapping[str, object]
) -> tuple[list[Reading], dict[str, str]]:
    """loss_small, loss_large (%), and largest_lossless (packets) with its burst_bound.

    Raises OutputError: `invalid` where the small or large bursts were not sent as asked.
    """
    runs = udp_limits.by_run(readings)
    found = []
    for kind in ("small", "large"):
        run = next((run for run in runs if run.dims["kind"] == kind), None)
        if run is None:
            raise OutputError(f"udp: no run of {kind} bursts")
        if words := _not_as_asked(run):
            raise OutputError(words, "invalid")
        found.append(replace(run.readings["loss"], metric=f"loss_{kind}", dims=run.told))
    ladder = [run for run in runs if run.dims["kind"] in ("large", "step")]
    lossless, warning = _largest(ladder, conditions.get("burst_bound", ""))
    warnings = {"burst_warning": warning, "receiver_warning": udp_limits.receiver_warning(runs)}
    kept = {
        **udp_limits.conditions(conditions),
        "rate": f"{ASKED_MBPS} Mb/s",
        **{key: words for key, words in warnings.items() if words},
    }
    return [*found, lossless], kept


def _not_as_asked(run: UdpRun) -> str:
    """In words, unless the rate is that of the bursts that were asked for."""
    mbps = run.sent / 10**6
    if abs(mbps / ASKED_MBPS - 1) <= NEAR:
        return ""
    return (
        f"bursts of {run.dims['burst']} packets were sent at {float(mbps):.1f} Mb/s, asked was "
        f"{ASKED_MBPS} Mb/s"
    )


def _largest(ladder: Sequence[UdpRun], bound: str) -> tuple[Reading, str]:
    """The largest of ever larger bursts before the first loss; 0 where the first lost something.

    bound: the largest that would have been tried. A value that equals burst_bound only says that
    nothing was lost so far. A burst that could not be sent as asked ends the ladder before it.
    """
    largest, words = "0", ""
    for run in ladder:
        if words := _not_as_asked(run):
            bound = largest
            break
        if run.share("loss") > 0:
            break
        largest = run.dims["burst"]
    told = {key: ladder[0].told[key] for key in ("datagram", "window")}
    if not bound.isdecimal():
        raise OutputError(f"udp: no whole number of packets as burst_bound, but '{bound}'")
    dims = {**told, "burst_bound": bound}
    return Reading("largest_lossless", Decimal(largest), "packets", dims), words
