"""MessageSweep: that the two ranks ran where the point wants them, and the values of each size."""

from __future__ import annotations

from siteproof.derive import Derived, Given, mpi_ping_pong
from siteproof.errors import OutputError
from siteproof.parsers import Reading

METRICS = ("latency", "bandwidth")


def derive(given: Given) -> Derived:
    """latency (us) and bandwidth (MB/s) of each size, with the dimension `size`.

    facts: tasks_per_node of the point; conditions: its nodes, which are no condition of the value.
    Raises OutputError: `invalid` if the ranks ran elsewhere.
    """
    conditions = dict(given.conditions)
    nodes = conditions.pop("nodes", "").split()
    one_a_node = given.fact("tasks_per_node", "1") == "1"
    needed = 2 if one_a_node else 1
    if len(nodes) < needed:
        raise OutputError(f"two ranks on {len(nodes)} nodes, expected {needed}", "invalid")
    for run in given.raw.runs:
        mpi_ping_pong.must_run_on(run.stdout, nodes[0], nodes[needed - 1])
    return [
        Reading(r.metric, r.value, r.unit, {"size": r.dims["size"]})
        for r in map(mpi_ping_pong.in_microseconds, given.readings)
        if r.metric in METRICS
    ], conditions
