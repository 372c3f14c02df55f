"""The first screen of a page as plain texts and numbers, and how they are found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from siteproof.report.sections import Table

NO_CAUSES = Table(("nodes", "what", "explains", "change"), (), title="What explains it")
OK, REMARK, SLOW, BAD, NONE = "ok", "remark", "slow", "bad", "none"  # looks of the page's style


@dataclass(frozen=True)
class Count:
    """How many of something there are: on a card, in the counts of a criterion, in a cell or key.

    note: a few words more, or which they are. of_nodes: the sum of these is all nodes.
    """

    number: int
    label: str
    look: str
    note: str = ""
    of_nodes: bool = False


@dataclass(frozen=True)
class Line:
    """A criterion, or several that lack a value for one reason. limit: and from where it passes.

    spread: an SVG of siteproof.report.figure only. why: it did not pass, or has no value.
    """

    verdict: str
    ids: Sequence[str]
    description: str = ""
    limit: str = ""
    passes: str = ""
    value: str = ""
    node: str = ""
    margin: str = ""
    misses: bool = False
    spread: str = ""
    counts: Sequence[Count] = ()
    why: str = ""
    source: str = ""


@dataclass(frozen=True)
class Step:
    """A command for the next step, and what it does."""

    command: str
    what: str


@dataclass(frozen=True)
class Year:
    """A headline metric of the fleet over time. course: an SVG of siteproof.report.figure only."""

    title: str
    unit: str
    course: str
    change: str
    look: str
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Summary:
    """The first screen. mark: the verdict in a word. counts: how many criteria have which verdict.

    note: what `lines` leaves out.
    causes: what explains the verdict, a row each. cells: of each node; of many, of some of them,
    how many have the most severe look. cells_of: what a cell is, where it is not one node. keys: of
    each look, the nodes that have it.
    """

    what: str
    when: str
    nodes: str
    compared: str
    mark: str
    counts: str
    cards: Sequence[Count] = ()
    lines: Sequence[Line] = ()
    note: str = ""
    causes: Table = NO_CAUSES
    steps: Sequence[Step] = ()
    cells: Sequence[Count] = ()
    cells_of: str = ""
    keys: Sequence[Count] = ()
    period: str = ""
    years: Sequence[Year] = ()
    problems: Sequence[str] = ()
