"""What a report is made of: sections of plain text, tables and figures, and the texts in them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import compress
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from siteproof import nodesets
from siteproof.record.pair_units import grouped

if TYPE_CHECKING:
    from siteproof.report.summary import Summary

ROOM = 40  # characters of a node set
NOTHING = "-"  # an empty cell
MAX_LINKED = 6  # nodes of a cell that lead to their values one by one
_UNSAFE = re.compile(r"[^A-Za-z0-9.-]")
T = TypeVar("T")


def anchor(kind: str, name: str) -> str:
    """The id of what a name of this kind names; two names never have the same."""
    return f"{kind}-{_UNSAFE.sub(lambda found: f'_{ord(found[0]):x}_', name)}"


class Cell(str, Generic[T]):
    """A cell that is more than its text. given: what makes it more."""

    given: T

    def __new__(cls, given: T, text: str) -> Self:
        """text: what is shown where a page can show no more."""
        made = super().__new__(cls, text)
        made.given = given
        return made


class Address(Cell[str]):
    """A cell that leads to another page: where that is, below the folder of this page."""


class Drawn(Cell[str]):
    """A cell with a drawing: an SVG of siteproof.report.figure only, as it is not escaped."""


class Link(Cell[list[tuple[str, str]]]):
    """A cell that leads to other places of the page.

    Of each place what it is called, and its id; or a metric, for all figures that show it.
    """

    def __new__(cls, to: Iterable[tuple[str, str]], text: str = "") -> Self:
        """text: what is shown where the page has none of these places."""
        places = list(to)
        return super().__new__(cls, places, text or ", ".join(name for name, _ in places))


class Marked(Cell[list[tuple[str, str]]]):
    """A cell of several texts, each with a look of the page: bad, warn, open, good, or none."""

    def __new__(cls, parts: Iterable[tuple[str, str]]) -> Self:
        """parts: a text and its look; the text itself says what the look says."""
        shown = list(parts)
        return super().__new__(cls, shown, " ".join(text for text, _ in shown))


def to_rows(kind: str, *names: str, text: str = "") -> Link:
    """A cell that leads to the rows of these names."""
    return Link([(name, anchor(kind, name)) for name in names], text)


def to_nodes(names: Collection[str]) -> Link:
    """A cell with nodes: few of them lead to their values one by one."""
    return to_rows("node", *(names if len(names) <= MAX_LINKED else ()), text=nodes(names))


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


# ---- times, node sets and counts as texts


def when(moment: datetime | str) -> str:
    """A time in UTC, to the minute: 2026-11-21 18:00 UTC."""
    at = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    return f"{(at if at.tzinfo is None else at.astimezone(UTC)):%Y-%m-%d %H:%M} UTC"


def day(moment: datetime | str) -> str:
    """A day in UTC: 2026-11-21."""
    return when(moment)[:10]


def nodes(names: Iterable[str]) -> str:
    """Nodes as a set, folded."""
    return str(nodesets.of(names))


def some_nodes(names: Iterable[str], room: int = ROOM) -> str:
    """Nodes as a set; of many that do not fold, the first, and how many more there are.

    room: characters of the set.
    """
    known = sorted(names)
    number = len(known)
    while number > 1 and len(nodes(known[:number])) > room:
        number = number * 3 // 4
    return nodes(known[:number]) + (
        f" and {len(known) - number} more" if number < len(known) else ""
    )


def counted(pairs: Iterable[tuple[str, int]]) -> str:
    """`2 FAIL, 9 PASS`, without those of which there are none."""
    return ", ".join(f"{number} {name}" for name, number in pairs if number)


def few(texts: Sequence[str], most: int, joint: str = ", ") -> str:
    """The first few of them, and how many more there are."""
    shown = list(texts[:most])
    if len(texts) > most:
        shown.append(f"{len(texts) - most} more")
    return joint.join(shown)


def period(moments: Sequence[str]) -> str:
    """From the first to the last of these times; one time if they are of the same minute."""
    minutes = sorted({when(moment) for moment in set(moments)})
    if not minutes:
        return "never"
    if len(minutes) == 1:
        return minutes[0]
    return f"{minutes[0].removesuffix(' UTC')} to {minutes[-1]}"


# ---- numbers of chapters and figures, and where cells lead


@dataclass(frozen=True)
class Place:
    """A section or figure. label: `3 Nodes` or `Figure 2`. anchor: its id in the page."""

    label: str
    anchor: str


def _numbered(sections: Sequence[Section], above: str = "") -> Iterator[tuple[str, Section]]:
    """Each section and part with its number, such as 3.1."""
    for place, section in enumerate(sections, start=1):
        yield f"{above}{place}", section
        yield from _numbered(section.sections, f"{above}{place}.")


class Numbering:
    """The places of a report's sections and figures, by their names. ids: of all of the page."""

    def __init__(self, report: Report) -> None:
        numbered = list(_numbered(report.sections))
        self.sections = {
            section.name: Place(f"{number} {section.title}", f"section-{section.name}")
            for number, section in numbered
        }
        figures = [figure for _, section in numbered for figure in section.figures]
        self.figures = {
            figure.name: Place(f"Figure {number}", f"figure-{figure.name}")
            for number, figure in enumerate(figures, start=1)
        }
        self._of_metric = grouped(
            (metric, self.figures[one.name]) for one in figures for metric in one.metrics
        )
        tables = [table for _, section in numbered for table in section.filled]
        self._values = grouped(
            (metric, Place(table.title.partition(":")[0], table.name))
            for table in tables
            for metric in table.metrics
        )
        self.ids = {place.anchor for place in (*self.sections.values(), *self.figures.values())}
        for table in (*tables, *(figure.table for figure in figures)):
            self.ids |= {table.name, *table.limited.ids}

    def refer(self, cell: str) -> list[Place]:
        """The places that a cell leads to, of those that the page has."""
        found: list[Place] = []
        for label, name in cell.given if isinstance(cell, Link) else ():
            found += self._of_metric.get(name, ())
            found += [Place(label, name)] if name and name in self.ids else []
        return found

    def values_of(self, figure: Figure) -> list[Place]:
        """The tables with the values of a figure's metrics."""
        return [place for metric in figure.metrics for place in self._values.get(metric, ())]

    def shown(self, table: Table) -> Table:
        """What is shown of a table: not the columns whose cells are all empty and lead nowhere."""
        table = table.limited
        columns = zip(table.columns, *table.rows, strict=True)
        kept = [
            any(cell not in ("", NOTHING) or self.refer(cell) for cell in cells)
            for _, *cells in columns
        ]
        if all(kept) or not table.rows:
            return table
        names = list(compress(table.columns, kept))
        return replace(
            table,
            columns=names,
            rows=[list(compress(row, kept)) for row in table.rows],
            numeric=[column for column in table.numeric if column in names],
        )
