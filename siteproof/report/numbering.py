"""The numbers of chapters and figures, and the links of cells, for every kind of page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from siteproof import nodesets
from siteproof.report.sections import Figure, Report, Section, Table

SEE = "see"  # the column of references
NOTHING = "-"  # an empty cell
MAX_NODES = 6  # of a set that are linked one by one
KINDS = {  # what the cells of a column name
    "criterion": "criterion",
    "criteria not passed": "criterion",
    "job": "job",
    "jobs": "job",
    "node": "node",
}
SEVERAL = ("jobs", "criteria not passed")  # columns whose cells name several, with commas
_UNSAFE = re.compile(r"[^A-Za-z0-9.-]")


def anchor(kind: str, name: str) -> str:
    """The anchor of the row of a name; two names never have the same."""
    return f"{kind}-{_UNSAFE.sub(lambda found: f'_{ord(found[0]):x}_', name)}"


@dataclass(frozen=True)
class Place:
    """A section or figure. label: `3 Nodes` or `Figure 2`. anchor: its id in the page."""

    label: str
    anchor: str


@dataclass
class Numbering:
    """The places of a report's sections and figures, by their names. rows: the ids of rows."""

    sections: dict[str, Place] = field(default_factory=dict)
    figures: dict[str, Place] = field(default_factory=dict)
    of_metric: dict[str, list[Place]] = field(default_factory=dict)
    rows: dict[tuple[str, str], str] = field(default_factory=dict)
    values: dict[str, list[Place]] = field(default_factory=dict)

    @staticmethod
    def of(report: Report) -> Numbering:
        """Number a report."""
        made = Numbering()
        for number, section in enumerate(report.sections, start=1):
            made._section(section, str(number))
        return made

    def _section(self, section: Section, number: str) -> None:
        self.sections[section.name] = Place(f"{number} {section.title}", f"section-{section.name}")
        for table in section.tables:
            self._table(table)
        for figure in section.figures:
            self._figure(figure)
            self._table(figure.table)
        for place, part in enumerate(section.sections, start=1):
            self._section(part, f"{number}.{place}")

    def _figure(self, figure: Figure) -> None:
        place = Place(f"Figure {len(self.figures) + 1}", f"figure-{figure.name}")
        self.figures[figure.name] = place
        for metric in figure.metrics:
            self.of_metric.setdefault(metric, []).append(place)

    def _table(self, table: Table) -> None:
        if table.rows_are:
            names = (row[0] for row in table.rows)
            self.rows |= {(table.rows_are, name): anchor(table.rows_are, name) for name in names}
        for metric in table.metrics:
            label = table.title.partition(":")[0]
            self.values.setdefault(metric, []).append(Place(label, table.name))

    def row_id(self, table: Table, row: Sequence[str]) -> str:
        """The anchor of a row; empty where rows have none."""
        return self.row(table.rows_are, row[0])

    def row(self, kind: str, name: str) -> str:
        """The anchor of the row on a criterion, change or node; empty if the page has none."""
        return self.rows.get((kind, name), "")

    def refer(self, column: str, cell: str, own: str = "") -> list[Place]:
        """The places that a cell refers to. own: what the rows of its table are.

        A criterion in its own row refers to its values.
        """
        if column == SEE:
            return list(self._see(cell))
        if column not in KINDS:
            return []
        if KINDS[column] == own:
            return [Place(cell, name) for name in self._values_of(cell)]
        names = cell.split(", ") if column in SEVERAL else [cell]
        places = [(name, self.rows.get((KINDS[column], name))) for name in names]
        known = [Place(name, there) for name, there in places if there]
        return known if len(known) == len(names) else []

    def values_of(self, figure: Figure) -> list[Place]:
        """The tables with the values of a figure's metrics."""
        return [place for metric in figure.metrics for place in self.values.get(metric, ())]

    def _values_of(self, criterion: str) -> Iterator[str]:
        """The anchor of the table with the values of a criterion."""
        wanted = anchor("values", criterion)
        if any(place.anchor == wanted for found in self.values.values() for place in found):
            yield wanted

    def _see(self, cell: str) -> Iterator[Place]:
        if cell in self.sections:
            yield self.sections[cell]
        yield from self.of_metric.get(cell, ())
        try:
            nodes = list(islice(nodesets.parse(cell), MAX_NODES + 1))
        except ValueError:
            return
        if len(nodes) <= MAX_NODES:
            rows = ((node, self.rows.get(("node", node))) for node in nodes)
            yield from (Place(node, there) for node, there in rows if there)

    def shown(self, table: Table) -> Table:
        """The table without the columns whose cells are all empty or link to nothing."""
        kept = [
            place
            for place, column in enumerate(table.columns)
            if not table.rows or any(self._holds(column, row[place]) for row in table.rows)
        ]
        if len(kept) == len(table.columns):
            return table
        columns = [table.columns[place] for place in kept]
        return replace(
            table,
            columns=columns,
            rows=[[row[place] for place in kept] for row in table.rows],
            numeric=[column for column in table.numeric if column in columns],
        )

    def _holds(self, column: str, cell: str) -> bool:
        if column == SEE:
            return any(self.refer(column, cell))
        return cell not in ("", NOTHING)
