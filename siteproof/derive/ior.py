"""IorSingle and Ior: rates count where all that was asked for was written, read and compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from siteproof.errors import OutputError
from siteproof.parsers import Reading

if TYPE_CHECKING:
    from siteproof.collect.raw import Raw

# What the check or the point asks for, and IOR says of itself.
ASKED = ("api", "layout", "transfer", "block", "size", "tasks")
PHASES = ("write", "read", "verify")
EACH = {"write": "write_bytes", "read": "read_bytes", "verify": "verified_bytes"}


def derive(
    readings: list[Reading], conditions: Mapping[str, str], raw: Raw, facts: Mapping[str, object]
) -> tuple[list[Reading], dict[str, str]]:
    """The figures of the write and of the read; the point's own dimensions are not said twice.

    facts: what must have been done, by the names of IOR's conditions.

    Raises OutputError: `invalid` where IOR did something else, or less was compared than read.
    """
    left = dict(conditions)
    for key in ASKED:
        if key in facts and left.get(key) != str(facts[key]):
            raise OutputError(
                f"ior: {key} {left.get(key, 'unknown')}, asked was {facts[key]}", "invalid"
            )
    together = min(int(str(facts["tasks"])), int(str(facts.get("tasks_per_node", 1))))
    if left.get("tasks_per_node") != str(together):
        raise OutputError(
            f"ior: {left.get('tasks_per_node')} tasks on a node, asked were {together}", "invalid"
        )
    for phase in PHASES:
        moved = [
            r.value for r in readings if r.dims.get("phase") == phase and r.metric == EACH[phase]
        ]
        if [str(value) for value in moved] != [left.get("size")]:
            raise OutputError(
                f"ior: {phase} of {moved or 'nothing'}, and not of {left.get('size')} bytes",
                "invalid",
            )
    found = [
        Reading(r.metric, r.value, r.unit)
        for r in readings
        if r.dims["phase"] == r.metric.partition("_")[0] and not r.metric.endswith("_bytes")
    ]
    dims = {"tasks", "tasks_per_node", *({"api", "layout", "transfer", "block"} & set(facts))}
    return found, {key: value for key, value in left.items() if key not in dims}
