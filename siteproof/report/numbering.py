"""The numbers of chapters and figures, and where cells lead, for every kind of page."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from siteproof.report.sections import NOTHING, Figure, Link, Report, Section, Table, anchor


@dataclass(frozen=True)
class Place:
    """A section or figure. label: `3 Nodes` or `Figure 2`. anchor: its id in the page."""

    label: str
    anchor: str


@dataclass
class Numbering:
    """The places of a report's sections and figures, by their names. ids: of tables and rows."""

    sections: dict[str, Place] = field(default_factory=dict)
    figures: dict[str, Place] = field(default_factory=dict)
    of_metric: dict[str, list[Place]] = field(default_factory=dict)
    values: dict[str, list[Place]] = field(default_factory=dict)
    ids: set[str] = field(default_factory=set)

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
        self.ids |= {table.name, *table.ids}
        for metric in table.metrics:
            label = table.title.partition(":")[0]
            self.values.setdefault(metric, []).append(Place(label, table.name))

    def row(self, kind: str, name: str) -> str:
        """The id of the row on a criterion, change or node; empty if the page has none."""
        known = anchor(kind, name)
        return known if known in self.ids else ""

    def refer(self, cell: str) -> list[Place]:
        """The places that a cell leads to, of those that the page has."""
        found: list[Place] = []
        for label, name in cell.to if isinstance(cell, Link) else ():
            found += self.of_metric.get(name, ())
            found += [Place(label, name)] if name in self.ids else []
        return found

    def values_of(self, figure: Figure) -> list[Place]:
        """The tables with the values of a figure's metrics."""
        return [place for metric in figure.metrics for place in self.values.get(metric, ())]

    def shown(self, table: Table) -> Table:
        """The table without the columns whose cells are all empty and lead nowhere."""
        kept = [
            place
            for place in range(len(table.columns))
            if not table.rows or any(self._holds(row[place]) for row in table.rows)
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

    def _holds(self, cell: str) -> bool:
        return cell not in ("", NOTHING) or bool(self.refer(cell))
