"""The tables of a site: CSV files of one line a row, each a small model with the rules of its row.

The first line names the columns, in any order; lines that begin with # are remarks, and an empty
cell is none. What a column means is said once, in the model. Every mistake is collected, not
raised.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Self, TypeVar

from pydantic import BeforeValidator

from siteproof.sites.key_types import Model
from siteproof.sites.lint import Around, belongs_to
from siteproof.sites.schema import shapes
from siteproof.sites.schema.yamlfile import Document, Stop, clip, text_of
from siteproof.sites.stated import Fact, FactSection

R = TypeVar("R", bound="Row")
MAX_BYTES = 50_000_000  # some hundred thousand lines


def several(cell: object) -> list[str]:
    """What a cell lists, with ; between."""
    return [name for part in str(cell).split(";") if (name := part.strip())]


Names = Annotated[list[str], BeforeValidator(several)]


class Row(Model):
    """A line of a table. FILE: its name in the site's folder. WHAT: what its rows are, for people.

    COLUMN: a column without which it is no such table, though its cells may be empty. KEY: the
    columns by which rows differ.
    """

    FILE: ClassVar[str]
    WHAT: ClassVar[str]
    COLUMN: ClassVar[str]
    KEY: ClassVar[Sequence[str]]

    system: str
    """The site's name."""

    @property
    def identity(self) -> str:
        """What no two rows of a table share."""
        found = (getattr(self, column) for column in self.KEY)
        return repr([sorted(one.items()) if isinstance(one, dict) else one for one in found])

    def lint(self, document: Document, line: int, around: Around, others: Iterable[Self]) -> None:
        """Note what the site does not have. others: all rows of the table."""


def read(path: Path, model: type[R]) -> tuple[Document, dict[int, R]]:
    """The rows without a mistake by their line, and the file with its mistakes."""
    document = Document(path)
    found: dict[int, R] = {}
    lines: dict[str, int] = {}
    for line, cells in _rows(document, model):
        before = document.count
        row = shapes.validate(document, (line,), model, cells)
        if row is None or document.count > before:
            continue
        other = lines.setdefault(row.identity, line)
        if other != line:
            document.add((line,), f"the same as line {other}", hint="Remove one of them")
        found[line] = row
    return document, found


def _rows(document: Document, model: type[Row]) -> Iterator[tuple[int, dict[str, str]]]:
    """The line and the filled cells of each row, by column."""
    columns: list[str] = []
    try:
        for line, cells in _lines(document):
            if not columns:
                columns = _columns(document, line, cells, model)
            elif len(cells) > len(columns):
                what = f"{len(cells)} cells under {len(columns)} columns"
                document.add((), what, hint='Put a cell with a comma into "quotes"', line=line)
            else:
                document.place((line,), line)
                yield line, {c: text for c, text in zip(columns, cells, strict=False) if text}
    except Stop:
        return
    if not columns:
        document.add((), "no line with the names of the columns", model.model_fields)


def _lines(document: Document) -> Iterator[tuple[int, list[str]]]:
    """Where each row begins, and its cells without the blanks around them. Raises Stop."""
    reader = csv.reader(io.StringIO(text_of(document, MAX_BYTES), newline=""), strict=True)
    line = 1
    try:
        for found in reader:
            here, line = line, reader.line_num + 1
            cells = [" ".join(cell.split()) for cell in found]
            if any(cells) and not cells[0].startswith("#"):
                yield here, cells
    except csv.Error as error:
        document.add((), f"bad CSV: {clip(error)}", line=line)
        raise Stop from None


def _columns(document: Document, line: int, cells: list[str], model: type[Row]) -> list[str]:
    """The columns of the first row. Raises Stop where they are not what they must be."""
    fields = model.model_fields
    for name, times in Counter(cells).items():
        if name not in fields:
            what = f"unknown column '{clip(name)}'{shapes.near(document, (), name, fields)}"
            document.add((), what, fields, line=line)
        elif times > 1:
            document.add((), f"column '{name}' twice", "each column once", line=line)
    for name, field in fields.items():
        if (field.is_required() or name == model.COLUMN) and name not in cells:
            document.add((), f"no column '{name}'", fields, line=line)
    if document.mistakes:
        raise Stop
    return cells


def of_site(
    folder: Path, site: str, model: type[R], around: Around
) -> tuple[list[Document], list[R]]:
    """The rows of a table that a site may have, and its file, as it is part of the site."""
    if not (folder / model.FILE).exists():
        return [], []
    document, rows = read(folder / model.FILE, model)
    for line, row in rows.items():  # of a copied file the first row alone is named
        if not belongs_to(document, (line, "system"), model.WHAT, row.system, site):
            break
    for line, row in rows.items():
        row.lint(document, line, around, rows.values())
    return [document], list(rows.values())


# Sections of the facts of a host table, by the metric that counts the hosts that miss one.
SECTIONS = {
    "wrong_names": "host table: name",
    "wrong_addresses": "host table: address",
    "wrong_systems": "host table: system",
    "wrong_interfaces": "host table: interface",
    "inconsistent": "host table: consistent",
}


class HostRow(Row):
    """A host of the table; an empty cell states nothing."""

    FILE, WHAT, COLUMN, KEY = "hosts.csv", "hosts", "name", ("node",)

    node: str
    """The node, as in the inventory."""
    name: str = ""
    """Its full name; the node may use the first parts alone."""
    address: str = ""
    """An address that one of its interfaces has."""
    os: str = ""
    """Its operating system, a glob: CentOS*5*."""
    interface: str = ""
    """An interface of the node, by name: eth0."""
    driver: str = ""
    """The driver of this interface, a glob: tg3."""
    speed: str = ""
    """The rate of this interface: 1000 Mb/s."""
    source: str
    """The document, and the table in it."""

    def lint(self, document: Document, line: int, around: Around, others: Iterable[Self]) -> None:
        """Note a host that the inventory does not have."""
        nodes = around.inventory
        if nodes is not None and self.node not in nodes:
            document.add((line, "node"), f"'{clip(self.node)}' is not in any role", clip(nodes))


def facts(row: HostRow) -> dict[str, FactSection]:
    """A section for each thing that the table states of a host."""
    nic = f"nic.{row.interface or '*'}"
    parts = row.name.split(".")
    names = [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
    stated = (
        (row.name, "wrong_names", "host.name", Fact(one_of=names)),
        (row.address, "wrong_addresses", "address.*", Fact(exact=row.address, count=1)),
        (row.os, "wrong_systems", "os.release", Fact(pattern=[row.os])),
        (row.driver, "wrong_interfaces", f"{nic}.driver", Fact(pattern=[row.driver])),
        (row.speed, "wrong_interfaces", f"{nic}.speed", Fact(exact=row.speed)),
        (row.name or row.address, "inconsistent", "dns.consistent", Fact(exact="yes")),
    )
    given = [(metric, {field: fact}) for cell, metric, field, fact in stated if cell]
    found: dict[str, dict[str, Fact]] = {}
    for metric, field in given:
        found[SECTIONS[metric]] = found.get(SECTIONS[metric], {}) | field
    return {name: FactSection(source=row.source, fields=each) for name, each in found.items()}
