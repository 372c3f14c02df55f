"""Waivers (waivers.yaml): known problems for which a node may go back, until a day."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date
from functools import cached_property
from typing import Literal

from ClusterShell.NodeSet import NodeSet
from pydantic import Field

from siteproof import nodesets
from siteproof.sites.key_types import Day, Model
from siteproof.sites.lint import node_set
from siteproof.sites.schema.shapes import near
from siteproof.sites.schema.yamlfile import Document, clip

EVERYTHING = "all"


class Waiver(Model):
    """A known problem with an owner."""

    nodes: str = Field(description="The nodes, in ClusterShell's syntax, all in the inventory.")
    waives: str = Field(
        description="What the nodes may miss: a criterion's id, a metric, or 'all'."
    )
    wrong_answers: list[Literal["invalid", "checksum"]] = Field(
        [],
        description="Statuses of wrong answers that are waived, too; without it wrong answers "
        "are never waived.",
    )
    problem: str = Field(description="The known problem, in a few words.")
    owner: str = Field(description="The person who is responsible for it.")
    expires: Day = Field(description="The last day on which it holds.")
    ticket: str = Field("", description="The ticket of the problem, such as an address.")

    @cached_property
    def set(self) -> NodeSet:
        """The nodes as a set; group names are never looked up."""
        return nodesets.parse(self.nodes)

    def holds(self, today: date) -> bool:
        """Whether it has not expired; it holds on its last day."""
        return today <= self.expires

    def covers(self, name: str, metric: str) -> bool:
        """Whether it covers a criterion, by its id or its metric."""
        return self.waives in (EVERYTHING, name, metric)


def lint_waiver(
    document: Document, key: str, waiver: Waiver, inventory: NodeSet | None, known: Collection[str]
) -> None:
    """Check one waiver. inventory: None if it is not known. known: criteria and metrics."""
    for name in ("problem", "owner", "ticket"):
        if name in document.data[key] and not getattr(waiver, name).strip():
            document.add((key, name), "an empty text")
    if waiver.waives != EVERYTHING and waiver.waives not in known:
        what = f"'{clip(waiver.waives)}' is neither a criterion nor a metric"
        close = near(document, (key, "waives"), waiver.waives, known)
        allowed = "all, the id of a criterion, a metric of the catalogue"
        document.add((key, "waives"), f"{what}{close}", allowed)
    node_set(document, (key, "nodes"), waiver.nodes, inventory)
