"""The numbers of chapters and figures, and the links of cells, for every kind of page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from siteproof.report.sections import Figure, Report, Section, Table

SEE = "see"  # the column of references
NOTHING = "-"  # an empty cell


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
    rows: set[str] = field(default_factory=set)

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
            self.rows.update(filter(None, table.anchors))
        for figure in section.figures:
            self._figure(figure)
        for place, part in enumerate(section.sections, start=1):
            self._section(part, f"{number}.{place}")

    def _figure(self, figure: Figure) -> None:
        place = Place(f"Figure {len(self.figures) + 1}", f"figure-{figure.name}")
        self.figures[figure.name] = place
        for metric in figure.metrics:
            self.of_metric.setdefault(metric, []).append(place)

    def row(self, kind: str, name: str) -> str:
        """The id of the row on a criterion, change or node; empty if the page has none."""
        anchor = f"{kind}-{name}"
        return anchor if anchor in self.rows else ""

    def refer(self, column: str, cell: str) -> Iterator[Place]:
        """The places that a cell refers to, if it is in a column of references."""
        if column != SEE:
            return
        if cell in self.sections:
            yield self.sections[cell]
        yield from self.of_metric.get(cell, ())

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
