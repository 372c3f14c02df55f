"""Messages between two ranks: that they ran on the nodes that were meant, and values by size."""

from __future__ import annotations

import re

from siteproof.collect.derive import Derived, Measured, in_microseconds, must_be
from siteproof.errors import OutputError
from siteproof.parsers import Reading

_RANK = re.compile(r"^rank ([0-9]{1,9}) on (\S{1,200})$", re.MULTILINE)
METRICS = ("latency", "bandwidth")


def mpi_ping_pong(given: Measured) -> Derived:
    """latency (us) of the smallest and bandwidth of the largest size; *_by_size of each.

    facts: smallest and largest, in bytes. Raises OutputError: `invalid` if rank 0 was not on the
    client or rank 1 not on the server.
    """
    conditions = dict(given.conditions)
    server = conditions.pop("server", "")
    client = given.raw.meta.get("node", "")
    for run in given.raw.runs:
        if client == server:
            raise OutputError(f"client and server are both {client}", "invalid")
        must_run_on(run.stdout, client, server)
    each = [in_microseconds(reading) for reading in given.readings]
    by_size = [
        Reading(f"{r.metric}_by_size", r.value, r.unit, {"size": r.dims["size"]}) for r in each
    ]
    smallest, largest = given.fact("smallest"), given.fact("largest")
    conditions |= {"latency_size": smallest, "bandwidth_size": largest}
    found = [_at(each, "latency", smallest), _at(each, "bandwidth", largest), *by_size]
    return found, conditions


def must_run_on(text: str, first: str, second: str) -> None:
    """Raises OutputError unless ranks 0 and 1 ran on these nodes; each prints its own before."""
    ranks = sorted(set(_RANK.findall(text)))
    found = ", ".join(f"{rank} on {node}" for rank, node in ranks)
    must_be("ranks", found or "none", f"0 on {first}, 1 on {second}")


def _at(readings: list[Reading], metric: str, size: str) -> Reading:
    """The value of one size, without the dimension. Raises OutputError."""
    found = [r for r in readings if r.metric == metric and r.dims["size"] == size]
    must_be(f"values of {metric} at {size} bytes", len(found), 1, "parse")
    return Reading(metric, found[0].value, found[0].unit)


def message_sweep(given: Measured) -> Derived:
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
        must_run_on(run.stdout, nodes[0], nodes[needed - 1])
    return [
        Reading(r.metric, r.value, r.unit, {"size": r.dims["size"]})
        for r in map(in_microseconds, given.readings)
        if r.metric in METRICS
    ], conditions
