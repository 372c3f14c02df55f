"""The first screen of a page as plain texts and numbers, and how they are found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

OK, REMARK, SLOW, BAD, NONE = "ok", "remark", "slow", "bad", "none"  # looks of the page's style


@dataclass(frozen=True)
class Card:
    """A number with its name. note: a few words more. of_nodes: the sum of these is all nodes.

    section: the name of the one that has all of them.
    """

    number: int
    label: str
    look: str
    note: str = ""
    of_nodes: bool = False
    section: str = ""


@dataclass(frozen=True)
class Count:
    """How many units of a criterion have a standing, and which."""

    number: int
    look: str
    text: str


@dataclass(frozen=True)
class Line:
    """A criterion, or several that lack a value for one reason. limit: and from where it passes.

    spread: an SVG of siteproof.figure only. why: it did not pass, or has no value.
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
class Cause:
    """An event, or what is wrong with nodes. explains: of each criterion, what it explains there.

    change: the id of a change in the history.
    """

    who: str
    what: str
    explains: Sequence[tuple[str, str]] = ()
    change: str = ""
    node: str = ""


@dataclass(frozen=True)
class Step:
    """A command for the next step, and what it does."""

    command: str
    what: str


@dataclass(frozen=True)
class Cell:
    """A node, or some of them: how many have the most severe look, and what all of them have."""

    look: str
    title: str
    number: int = 0
    node: str = ""


@dataclass(frozen=True)
class Key:
    """What a look means, of how many nodes, and of which."""

    look: str
    label: str
    number: int
    nodes: str


@dataclass(frozen=True)
class Year:
    """A headline metric of the fleet over time. course: an SVG of siteproof.figure only."""

    title: str
    unit: str
    course: str
    change: str
    look: str
    notes: Sequence[str] = ()
    figure: str = ""


@dataclass(frozen=True)
class Summary:
    """The first screen. mark: the verdict in a word. counts: how many criteria have which verdict.

    anchors: of a node that is not OK, where the page has the reason. note: what `lines` leaves out.
    cells_of: what a cell is, where it is not one node.
    """

    what: str
    when: str
    nodes: str
    compared: str
    mark: str
    counts: str
    cards: Sequence[Card] = ()
    lines: Sequence[Line] = ()
    note: str = ""
    causes: Sequence[Cause] = ()
    more_causes: int = 0
    steps: Sequence[Step] = ()
    cells: Sequence[Cell] = ()
    cells_of: str = ""
    keys: Sequence[Key] = ()
    period: str = ""
    years: Sequence[Year] = ()
    problems: Sequence[str] = ()
    anchors: Mapping[str, str] = field(default_factory=dict)
