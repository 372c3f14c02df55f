"""The tables of a site: CSV files of one line a row, each a small model with the rules of its row.

The first line names the columns, in any order; lines that begin with # are remarks. What a column
means is said once, in the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Self, TypeVar

from ClusterShell.NodeSet import NodeSet
from pydantic import BeforeValidator, Field

from siteproof.schema import csvfile, shapes
from siteproof.schema.yamlfile import Document
from siteproof.sites.catalogue import Metric
from siteproof.sites.key_types import Model
from siteproof.sites.lint import belongs_to
from siteproof.sites.system import System

R = TypeVar("R", bound="Row")


def several(cell: object) -> list[str]:
    """What a cell lists, with ; between."""
    return [name for part in str(cell).split(";") if (name := part.strip())]


Names = Annotated[list[str], BeforeValidator(several)]


@dataclass(frozen=True)
class Known:
    """What a row of a site's table may name; None: not known, as system.yaml has a mistake."""

    system: System | None
    inventory: NodeSet | None
    catalogue: Mapping[str, Metric]


class Row(Model):
    """A line of a table. FILE: its name in the site's folder. WHAT: what its rows are, for people.

    COLUMN: a column without which it is no such table, though its cells may be empty.
    """

    FILE: ClassVar[str]
    WHAT: ClassVar[str]
    COLUMN: ClassVar[str]

    system: str = Field(description="The site's name.")

    @property
    def identity(self) -> object:
        """What no two rows of a table share."""
        return repr(self)

    def lint(self, document: Document, line: int, known: Known, others: Iterable[Self]) -> None:
        """Note what the site does not have. others: all rows of the table."""


def read(path: Path, model: type[R]) -> tuple[Document, dict[int, R]]:
    """The rows without a mistake by their line, and the file with its mistakes."""
    document = Document(path)
    fields = model.model_fields
    required = [name for name, field in fields.items() if field.is_required()]
    found: dict[int, R] = {}
    lines: dict[object, int] = {}
    for line, cells in csvfile.rows(document, list(fields), [*required, model.COLUMN]):
        before = document.count
        row = shapes.validate(document, (line,), model, cells)
        if row is None or document.count > before:
            continue
        other = lines.setdefault(row.identity, line)
        if other != line:
            document.add((line,), f"the same as line {other}", hint="Remove one of them")
        found[line] = row
    return document, found


def of_site(
    folder: Path, site: str, model: type[R], known: Known
) -> tuple[list[Document], list[R]]:
    """The rows of a table that a site may have, and its file, as it is part of the site."""
    if not (folder / model.FILE).exists():
        return [], []
    document, rows = read(folder / model.FILE, model)
    for line, row in rows.items():  # of a copied file the first row alone is named
        if not belongs_to(document, (line, "system"), model.WHAT, row.system, site):
            break
    for line, row in rows.items():
        row.lint(document, line, known, rows.values())
    return [document], list(rows.values())
