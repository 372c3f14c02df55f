"""The numbers of chapters and figures, and where cells lead, for every kind of page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from siteproof.report.sections import NOTHING, Figure, Link, Report, Section, Table


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


@dataclass
class Numbering:
    """The places of a report's sections and figures, by their names. ids: of all of the page."""

    sections: dict[str, Place] = field(default_factory=dict)
    figures: dict[str, Place] = field(default_factory=dict)
    of_metric: dict[str, list[Place]] = field(default_factory=dict)
    values: dict[str, list[Place]] = field(default_factory=dict)
    ids: set[str] = field(default_factory=set)

    @staticmethod
    def of(report: Report) -> Numbering:
        """Number a report."""
        made = Numbering()
        for number, section in _numbered(report.sections):
            place = Place(f"{number} {section.title}", f"section-{section.name}")
            made.sections[section.name] = place
            made.ids.add(place.anchor)
            for figure in section.figures:
                made._figure(figure)
            for table in (*section.filled, *(figure.table for figure in section.figures)):
                made._table(table)
        return made

    def _figure(self, figure: Figure) -> None:
        place = Place(f"Figure {len(self.figures) + 1}", f"figure-{figure.name}")
        self.figures[figure.name] = place
        self.ids.add(place.anchor)
        for metric in figure.metrics:
            self.of_metric.setdefault(metric, []).append(place)

    def _table(self, table: Table) -> None:
        self.ids |= {table.name, *table.limited.ids} - {""}
        for metric in table.metrics:
            label = table.title.partition(":")[0]
            self.values.setdefault(metric, []).append(Place(label, table.name))

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
        """What is shown of a table: not the columns whose cells are all empty and lead nowhere."""
        table = table.limited
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
