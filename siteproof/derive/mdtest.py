"""Mdtest: rates count where all four phases were run, on as many files as asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from siteproof.errors import OutputError
from siteproof.parsers import Reading

if TYPE_CHECKING:
    from siteproof.collect.raw import Raw

PHASES = ["create", "stat", "read", "remove"]


def derive(
    readings: list[Reading], conditions: Mapping[str, str], raw: Raw, facts: Mapping[str, object]
) -> tuple[list[Reading], dict[str, str]]:
    """The figure of each phase, without a dimension.

    Raises OutputError: `invalid` where mdtest did something else than asked.
    """
    nodes = -(-int(str(facts["tasks"])) // int(str(facts["tasks_per_node"])))
    asked = {"tasks": str(facts["tasks"]), "nodes": str(nodes), "files": str(facts["files"])}
    left = dict(conditions)
    for key, value in asked.items():
        if left.pop(key, "unknown") != value:
            raise OutputError(f"mdtest: {key} {conditions.get(key)}, asked was {value}", "invalid")
    if [(r.dims.get("phase"), r.metric) for r in readings] != [(p, p) for p in PHASES]:
        raise OutputError("mdtest: not one run of each phase", "invalid")
    return [Reading(r.metric, r.value, r.unit) for r in readings], left
