"""What a report is made of: sections of plain text, tables and figures. Pages are made of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from siteproof.report.phrases import nodes

if TYPE_CHECKING:
    from siteproof.report.summary import Summary

NOTHING = "-"  # an empty cell
MAX_LINKED = 6  # nodes of a cell that lead to their values one by one
_UNSAFE = re.compile(r"[^A-Za-z0-9.-]")


def anchor(kind: str, name: str) -> str:
    """The id of what a name of this kind names; two names never have the same."""
    return f"{kind}-{_UNSAFE.sub(lambda found: f'_{ord(found[0]):x}_', name)}"


class Link(str):
    """A cell that leads to other places of the page.

    to: of each place what it is called, and its id; or a metric, for all figures that show it.
    """

    to: Sequence[tuple[str, str]]

    def __new__(cls, to: Iterable[tuple[str, str]], text: str = "") -> Link:
        """text: what is shown where the page has none of these places."""
        places = list(to)
        made = super().__new__(cls, text or ", ".join(name for name, _ in places))
        made.to = places
        return made


class Drawn(str):
    """A cell with a drawing. svg: of siteproof.report.figure only, as it is not escaped."""

    svg: str

    def __new__(cls, svg: str, text: str) -> Drawn:
        """text: what is shown where nothing can be drawn."""
        made = super().__new__(cls, text)
        made.svg = svg
        return made


def to_rows(kind: str, *names: str, text: str = "") -> Link:
    """A cell that leads to the rows of these names."""
    return Link([(name, anchor(kind, name)) for name in names], text)


def to_nodes(names: Collection[str]) -> Link:
    """A cell with nodes: few of them lead to their values one by one."""
    return to_rows("node", *(names if len(names) <= MAX_LINKED else ()), text=nodes(names))


class Marked(str):
    """A cell of several texts, each with a look of the page: bad, warn, open, good, or none."""

    parts: Sequence[tuple[str, str]]

    def __new__(cls, parts: Iterable[tuple[str, str]]) -> Marked:
        """parts: a text and its look; the text itself says what the look says."""
        shown = list(parts)
        made = super().__new__(cls, " ".join(text for text, _ in shown))
        made.parts = shown
        return made


@dataclass(frozen=True)
class Table:
    """Columns, and rows with a cell for each. numeric: the columns of numbers.

    title: what the rows are, in a few words. note: a sentence that explains the table. ids: of each
    row its own, unique in a report, to which a Link leads. name: the id of the table. metrics: of
    its values, as those of a figure. folded: long and plain, so the page shows it on demand only.
    most: rows that are shown; the note counts the others. command: prints all of them.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    numeric: Collection[str] = ()
    title: str = ""
    ids: Sequence[str] = ()
    name: str = ""
    metrics: Collection[str] = ()
    folded: bool = False
    most: int = 0
    command: str = ""

    def __post_init__(self) -> None:
        """Raises ValueError for a row of another length, or an unknown numeric column."""
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"{self.title or self.columns}: a row of another length")
        if strangers := set(self.numeric) - set(self.columns):
            raise ValueError(f"{self.title or self.columns}: no column {', '.join(strangers)}")

    @property
    def limited(self) -> Table:
        """The same with the rows that are shown."""
        left = len(self.rows) - self.most
        if not self.most or left <= 0:
            return self
        where = f"; '{self.command}' prints all of them" if self.command else ""
        note = f"{self.note} Rows left out: {left}{where}.".lstrip()
        return replace(self, rows=self.rows[: self.most], ids=self.ids[: self.most], note=note)


def limited_points(points: Sequence[str], most: int) -> list[str]:
    """The first `most` points, and one that counts the others."""
    left = [f"Lines left out: {len(points) - most}"] if len(points) > most else []
    return [*points[:most], *left]


@dataclass(frozen=True)
class Figure:
    """name: a slug, unique in a report. svg: of siteproof.report.figure only, as it is not escaped.

    caption: what is seen, in one sentence with unit and counts. table: the same as values.
    metrics: what it shows; the criteria on them link to it.
    """

    name: str
    title: str
    svg: str
    caption: str
    table: Table
    metrics: Collection[str] = ()


@dataclass(frozen=True)
class Section:
    """A chapter or a part of one. name: a slug, unique in a report. lead: its answer in a sentence.

    points: a sentence each. All texts are plain and are escaped by the pages.
    """

    name: str
    title: str
    lead: str
    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()
    points: Sequence[str] = ()
    sections: Sequence[Section] = ()

    @property
    def filled(self) -> list[Table]:
        """The tables that are shown: those with rows."""
        return [table for table in self.tables if table.rows]


@dataclass(frozen=True)
class Attached:
    """A file that the page carries, to be saved from it. what: in a few words."""

    name: str
    text: str
    what: str


@dataclass(frozen=True)
class Report:
    """A whole report. system: its name. summary: the first screen.

    attached: what an HTML page carries besides.
    """

    system: str
    summary: Summary
    sections: Sequence[Section]
    attached: Sequence[Attached] = ()
