"""IorSingle and Ior: rates count where all requested data was written, read and compared."""

from __future__ import annotations

from siteproof.derive import Derived, Given, must_be
from siteproof.errors import OutputError
from siteproof.parsers import Reading

REQUESTED = ("api", "layout", "transfer", "block", "size", "tasks")  # IOR prints each of them
AXES = ("api", "layout", "transfer", "block")  # of a sweep; then no conditions of the readings
BYTES = {"write": "write_bytes", "read": "read_bytes", "verify": "verified_bytes"}  # by phase


def derive(given: Given) -> Derived:
    """The rates of the write and of the read; a sweep's point has its axes as dimensions.

    facts: what must have been done, by the names of IOR's conditions.

    Raises OutputError: `invalid` where IOR did something else, or less was compared than read.
    """
    conditions = dict(given.conditions)
    for key in REQUESTED:
        if key in given.facts:
            must_be(f"ior: {key}", conditions.get(key, "unknown"), given.fact(key))
    tasks_per_node = min(int(given.fact("tasks")), int(given.fact("tasks_per_node", "1")))
    must_be("ior: tasks per node", conditions.get("tasks_per_node"), tasks_per_node)
    for phase, metric in BYTES.items():
        moved = ", ".join(str(r.value) for r in given.of_phase(phase) if r.metric == metric)
        if moved != conditions.get("size"):
            raise OutputError(
                f"ior: {phase} of {moved or 'nothing'}, expected {conditions.get('size')} bytes",
                "invalid",
            )
    found = []
    for reading in given.readings:
        phase = reading.dims["phase"]
        if reading.metric.partition("_")[0] == phase and reading.metric != BYTES[phase]:
            found.append(Reading(reading.metric, reading.value, reading.unit))
    for key in ("tasks", "tasks_per_node", *(set(AXES) & given.facts.keys())):
        conditions.pop(key, None)
    return found, conditions
