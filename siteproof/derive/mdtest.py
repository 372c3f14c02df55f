"""Mdtest: rates count where all four phases were run, on as many files as requested."""

from __future__ import annotations

from siteproof.derive import Derived, Given, must_be
from siteproof.errors import OutputError
from siteproof.parsers import Reading

PHASES = ["create", "stat", "read", "remove"]


def derive(given: Given) -> Derived:
    """The rate of each phase, without a dimension.

    Raises OutputError: `invalid` where mdtest did something else than requested.
    """
    tasks, files = given.fact("tasks"), given.fact("files")
    nodes = -(-int(tasks) // int(given.fact("tasks_per_node")))
    conditions = dict(given.conditions)
    for key, expected in (("tasks", tasks), ("nodes", nodes), ("files", files)):
        must_be(f"mdtest: {key}", conditions.pop(key, "unknown"), expected)
    if [(r.dims.get("phase"), r.metric) for r in given.readings] != [(p, p) for p in PHASES]:
        raise OutputError("mdtest: not one run of each phase", "invalid")
    return [Reading(r.metric, r.value, r.unit) for r in given.readings], conditions
