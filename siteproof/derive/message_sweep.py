"""MessageSweep: that the two ranks sat where the point wants them, and a figure of each size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from siteproof.derive import mpi_ping_pong
from siteproof.errors import OutputError
from siteproof.parsers import Reading

if TYPE_CHECKING:
    from siteproof.collect.raw import Raw

FIGURES = ("latency", "bandwidth")


def derive(
    readings: list[Reading], conditions: Mapping[str, str], raw: Raw, facts: Mapping[str, object]
) -> tuple[list[Reading], dict[str, str]]:
    """latency (us) and bandwidth (MB/s) of each size, with the dimension `size`.

    facts: tasks_per_node of the point; conditions: its nodes, which are no condition of the figure.
    Raises OutputError: `invalid` if the ranks sat elsewhere.
    """
    kept = dict(conditions)
    nodes = kept.pop("nodes", "").split()
    apart = str(facts.get("tasks_per_node", "1")) == "1"
    if apart and len(nodes) > 1:
        placed = (nodes[0], nodes[1])
    elif nodes and not apart:
        placed = (nodes[0], nodes[0])
    else:
        raise OutputError(f"two ranks, one a node, on {len(nodes)} nodes", "invalid")
    for run in raw.runs:
        mpi_ping_pong.must_sit(run.stdout, *placed)
    return [
        Reading(r.metric, r.value, r.unit, {"size": r.dims["size"]})
        for r in map(mpi_ping_pong.in_microseconds, readings)
        if r.metric in FIGURES
    ], kept
