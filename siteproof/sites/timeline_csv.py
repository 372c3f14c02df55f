"""timeline.csv: the milestones of an acceptance, each with its day and what shows it.

The first line names the columns, in any order; lines that begin with # are remarks. What a column
means is said once, in `Milestone`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from siteproof.schema import csvfile
from siteproof.schema.yamlfile import Document
from siteproof.sites.lint import reference
from siteproof.sites.published_csv import Days, period, said_period
from siteproof.sites.system import Model

NAME = "timeline.csv"


def _date(text: str) -> str:
    return said_period(text) if text else text


def _names(cell: object) -> list[str]:
    return [name for part in str(cell).split(";") if (name := part.strip())]


class Milestone(Model):
    """A day, or days, on which something was reached."""

    system: str = Field(description="The site's name.")
    milestone: str = Field(description="What was reached; each milestone once in the file.")
    date: Annotated[str, AfterValidator(_date)] = Field(
        "", description="When: 2016-04-21, 2016-04, or 2016-04-06/2016-04-20; empty: not known."
    )
    needs: Annotated[list[str], BeforeValidator(_names)] = Field(
        [], description="Milestones of the file that must come first, with ; between several."
    )
    source: str = Field(description="What shows it: the document, and the paragraph in it.")
    note: str = Field("", description="What a reader must know, such as a contradiction.")

    @property
    def days(self) -> Days | None:
        """First and last day; None without a date."""
        return period(self.date) if self.date else None


def read(path: Path) -> tuple[Document, dict[int, Milestone]]:
    """The milestones by their line, and the file with its mistakes."""
    document = Document(path)
    found: dict[int, Milestone] = {}
    lines: dict[str, int] = {}
    for line, row in csvfile.validated(document, Milestone, "date"):
        other = lines.setdefault(row.milestone, line)
        if other != line:
            what = f"'{row.milestone}' is also in line {other}"
            document.add((line,), what, hint="Remove one of them")
        found[line] = row
    for line, row in found.items():
        for name in row.needs:
            reference(document, (line, "needs"), name, "milestone", list(lines))
    return document, found
