"""timeline.csv: the milestones of an acceptance, each with its day and what shows it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Self

from pydantic import AfterValidator, Field

from siteproof.sites.lint import Around, reference
from siteproof.sites.published_csv import Days, period, said_period
from siteproof.sites.schema.yamlfile import Document
from siteproof.sites.site_tables import Names, Row


def _date(text: str) -> str:
    return said_period(text) if text else text


class Milestone(Row):
    """A day, or days, on which something was reached."""

    FILE, WHAT, COLUMN, KEY = "timeline.csv", "milestones", "date", ("milestone",)

    milestone: str = Field(description="What was reached; each milestone once in the file.")
    date: Annotated[str, AfterValidator(_date)] = Field(
        "", description="When: 2016-04-21, 2016-04, or 2016-04-06/2016-04-20; empty: not known."
    )
    needs: Names = Field(
        [], description="Milestones of the file that must come first, with ; between several."
    )
    source: str = Field(description="What shows it: the document, and the paragraph in it.")
    note: str = Field("", description="What a reader must know, such as a contradiction.")

    @property
    def days(self) -> Days | None:
        """First and last day; None without a date."""
        return period(self.date) if self.date else None

    def lint(self, document: Document, line: int, around: Around, others: Iterable[Self]) -> None:
        """Note a milestone that it needs and that the file does not have."""
        names = [other.milestone for other in others]
        for name in self.needs:
            reference(document, (line, "needs"), name, "milestone", names)
