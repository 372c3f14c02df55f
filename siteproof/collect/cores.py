"""The busiest core of either end of a link while it is measured, from what both have counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from siteproof.collect.raw import Execution
from siteproof.errors import OutputError
from siteproof.parsers import Reading, cores

PROGRAM = "cores"  # of runs that are no measurement
METRIC = "busiest_core"


def busiest(client: Sequence[Execution], server: Sequence[Execution], way: str) -> list[Reading]:
    """A value, in %, of each run of a direction; or why it has none.

    The server has counted all the time: of that, what lies between the client's first and last
    look at its own cores, by the clocks of both.
    """
    of_server = next((run.stdout for run in server if _counts(run.dims)), "")
    found = []
    for run in client:
        if not _counts(run.dims) or run.dims.get("direction", "") != way:
            continue
        dims = {k: v for k, v in run.dims.items() if k not in ("program", "direction")}
        try:
            found.append(Reading(METRIC, _of_both(run.stdout, of_server), "%", dims))
        except OutputError as error:
            found.append(Reading("not_read", str(error), "text", {"parameter": METRIC, **dims}))
    return found


def _of_both(client: str, server: str) -> Decimal:
    own = cores.whole(client)
    begin, end = own[0][0], own[-1][0]
    # Ended with its turn, it may have been about to write a line.
    other = cores.looks(server[: server.rfind("\n") + 1])
    return max(cores.busiest(own), cores.busiest([s for s in other if begin <= s[0] <= end]))


def _counts(dims: Mapping[str, str]) -> bool:
    return dims.get("program") == PROGRAM
