"""Repairs: a person has repaired nodes, so their failures before that do not count any more.

Each record is a file `perflogs/<system>/repairs/<time>.json`, which is never changed or removed. A
repair clears no failure: only a measurement does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from siteproof import nodesets
from siteproof.record import evidence_records
from siteproof.record.ages import moment_of
from siteproof.record.finding import Finding, note
from siteproof.record.samples import Header

SECONDS = len("2026-11-26T08:00:00")  # of a time in UTC


@dataclass(frozen=True)
class Repair(evidence_records.ByPerson):
    """One record. nodes: a set. by: who has repaired them. ticket: empty if there is none."""

    folder, command = "repairs", "repaired"
    nodes: str
    by: str
    why: str
    ticket: str

    def __post_init__(self) -> None:
        """Raises ValueError for what is not a node set."""
        nodesets.parse(self.nodes)

    def is_before(self, header: Header) -> bool:
        """Whether a job ended after it."""
        return moment_of(header) > datetime.fromisoformat(self.recorded)

    def of_node(self, node: str) -> Finding:
        """That the node was repaired."""
        return note(
            "repaired on {since:day} by {by}: {message}{ticket: (%s)}",
            subject=node,
            since=self.recorded,
            message=self.why,
            by=self.by,
            ticket=self.ticket or None,
        )


def since(repair: Finding | None, why: Finding) -> Finding:
    """A reason, which holds since the repair of its node at most."""
    if repair is None or not why.since or why.since[:SECONDS] >= repair.since[:SECONDS]:
        return why
    details = tuple(detail for detail in why.details if detail[0] != "lasting")
    return replace(why, since=repair.since, alert="", details=details)


def newest(perflogs: Path, system: str, until: datetime | None = None) -> Mapping[str, Repair]:
    """The last repair of each node. Raises UserError for a broken record. until: not later ones."""
    return {
        node: one
        for one in evidence_records.read_kind(perflogs, system, Repair)
        if until is None or datetime.fromisoformat(one.recorded) <= until
        for node in nodesets.parse(one.nodes)
    }
