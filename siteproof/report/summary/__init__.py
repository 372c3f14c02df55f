"""The first screen of a page as plain texts and numbers, and how they are found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from siteproof.report.sections import Table

OK, REMARK, SLOW, BAD, NONE = "ok", "remark", "slow", "bad", "none"  # looks of the page's style


@dataclass(frozen=True)
class Count:
    """How many of something there are: in the line below the verdict, or in a cell.

    note: a few words more, or which they are. of_nodes: the sum of these is all nodes.
    """

    number: int
    label: str
    look: str
    note: str = ""
    of_nodes: bool = False


@dataclass(frozen=True)
class Step:
    """A command for the next step, and what it does."""

    command: str
    what: str


@dataclass(frozen=True)
class Summary:
    """The first screen. mark: the verdict in a word. counts: how many criteria have which verdict.

    sentence: what `siteproof report --brief` has besides. cards: how many nodes have which look,
    then changes and waivers. answers: a table for each question that has an answer. conditions:
    those of HPL. cells: of each node; of many, of some of them, how many have the most severe look.
    cells_of: what a cell is, where it is not one node.
    """

    what: str
    when: str
    nodes: str
    compared: str
    mark: str
    counts: str
    sentence: str = ""
    cards: Sequence[Count] = ()
    answers: Sequence[Table] = ()
    conditions: str = ""
    steps: Sequence[Step] = ()
    cells: Sequence[Count] = ()
    cells_of: str = ""
    problems: Sequence[str] = ()
