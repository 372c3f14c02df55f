"""published.csv: values that a report, a paper or somebody's table states, one a line.

A value stays as it was printed: its digits, its unit, its date, and whether it is a mean, a maximum
or a single value. A bound such as >166 and a range such as 15-20 stay what they are: the form is
kept with the digits. A failure is no value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from siteproof import units
from siteproof.errors import Mistake, UserError
from siteproof.record.samples import STATUSES
from siteproof.sites.calendar_csv import said_period
from siteproof.sites.catalogue import Metric
from siteproof.sites.key_types import plausible, shaped
from siteproof.sites.lint import Around, reference
from siteproof.sites.schema.yamlfile import Document
from siteproof.sites.site_tables import Row, several

STATED = "stated"  # the condition for it; exact values have none
MORE, LESS, ABOUT = "more than", "less than", "about"
LOW, HIGH = "low end of a range", "high end of a range"
FORMS = "digits, such as 113.1, or >166, <25, ~60, 15-20"
_NUMBER = r"[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?"
_SIGNED = re.compile(rf"(?P<sign>[<>~])?\s*(?P<digits>[+-]?{_NUMBER})")
_BEHIND = re.compile(rf"(?P<digits>{_NUMBER})\s*<")  # 166<: there is more beyond it
_RANGE = re.compile(rf"({_NUMBER})\s*-\s*({_NUMBER})")
_WORDS = {">": MORE, "<": LESS, "~": ABOUT, None: ""}
_SIGNS = {MORE: "> ", LESS: "< ", ABOUT: "~ ", LOW: "from ", HIGH: "to "}


def parts(text: str) -> list[tuple[str, str]]:
    """The digits, and what they are of the value; empty: itself. Raises ValueError."""
    if match := _SIGNED.fullmatch(text):
        return [(match["digits"], _WORDS[match["sign"]])]
    if match := _BEHIND.fullmatch(text):
        return [(match["digits"], MORE)]
    if match := _RANGE.fullmatch(text):
        return [(match[1], LOW), (match[2], HIGH)]
    raise ValueError(text)


def sign(stated: str) -> str:
    """What stands before the digits of a sample for people; empty for an exact value."""
    return _SIGNS.get(stated, "")


PROGRAM = "program"  # a condition of every value
ROLE, NETWORK = "role", "network"  # which nodes it covers; lan or wan, where a source has both
OF_ALL = (PROGRAM, ROLE, NETWORK)
Campaign = Annotated[str, shaped(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}", "letters, digits, ._-")]


def _pairs(cell: object) -> dict[str, str]:
    """`direct=yes; tasks=1` as a mapping."""
    found: dict[str, str] = {}
    for part in several(cell):
        key, equals, text = (piece.strip() for piece in part.partition("="))
        if not (key and equals and text) or key in found:
            raise Mistake(
                f"'{part[:40]}' is not a condition, or is given twice",
                "key=value, with ; between several",
            )
        found[key] = text
    return found


class Published(Row):
    """One value that others have measured."""

    FILE, WHAT, COLUMN = "published.csv", "published values", "value"
    KEY = (
        *("system", "date", "campaign", "metric", "statistic", "node", "peer", "trial"),
        "conditions",
    )

    date: Annotated[str, AfterValidator(said_period)]
    """When it was measured, as the source states it: 2016-08-04, 2016-08, 2016-08-04/2016-08-05."""
    campaign: Campaign = ""
    """A name that groups values, for 'siteproof compare'. Of two campaigns with the same date, the
    one further down in the file is the later one."""
    metric: str
    """A metric of the catalogue."""
    value: str = ""
    """The value, with the digits that the source prints; also >166, <25, ~60 and 15-20. Of a
    failure what is printed instead, such as N/A."""
    unit: str
    """The unit that the source prints, of the metric's kind."""
    statistic: Literal["mean", "median", "maximum", "minimum", "one value", "rank", "landmark"]
    """Which statistic of the measured values this is; rank: one of several that are printed sorted;
    landmark: a point of a curve that is not printed."""
    status: Literal[STATUSES] = Field(  # type: ignore[valid-type]
        "ok", description="Why there is no value, where the source states it; parse: it was lost."
    )
    trial: Annotated[int, Field(ge=1, le=10**6)] | None = None
    """The number of the repetition, from 1 on, if there are several."""
    node: str = ""
    """The node that it belongs to; empty: to no single node."""
    peer: str = ""
    """The receiving node; `node` is the sending one."""
    conditions: Annotated[dict[str, str], BeforeValidator(_pairs)] = {}
    """What was requested, as far as the source states it: key=value; key=value."""
    source: str
    """The document, and the paragraph or table in it."""
    note: str = ""
    """What a reader must know, such as a contradiction."""

    @model_validator(mode="after")
    def _a_value_of_its_ends(self) -> Published:
        if self.status == "ok" and not self.value:
            raise Mistake("no value", hint="Give the value, or a status other than ok")
        if self.peer and (self.peer == self.node or not self.node):
            raise Mistake(f"peer '{self.peer[:40]}' is not another node than the sender")
        return self

    def lint(self, document: Document, line: int, around: Around, others: Iterable[Self]) -> None:
        """Note what is not in the catalogue, or not in the inventory."""
        reference(document, (line, "metric"), self.metric, "metric", list(around.metrics))
        if metric := around.metrics.get(self.metric):
            _figure(document, line, self, metric)
            _conditions(document, line, self, metric)
        for key, name in (("node", self.node), ("peer", self.peer)):
            if around.inventory is not None and name and name not in around.inventory:
                document.add((line, key), f"unknown node '{name}'", str(around.inventory))


def _figure(document: Document, line: int, row: Published, metric: Metric) -> None:
    if row.unit not in units.UNITS or units.kind(row.unit) != units.kind(metric.unit):
        known = [u for u in units.UNITS if units.kind(u) == units.kind(metric.unit)]
        document.add((line, "unit"), f"'{row.unit}' is not a unit of {row.metric}", known)
        return
    if units.kind(row.unit) == "text" or row.status != "ok":
        return
    try:
        for digits, _ in parts(row.value):
            plausible(f"{digits} {row.unit}")
    except (UserError, ValueError):
        document.add((line, "value"), f"'{row.value}' is not a value", FORMS)


def _conditions(document: Document, line: int, row: Published, metric: Metric) -> None:
    known = [*OF_ALL, *metric.conditions]
    for key in row.conditions:
        reference(document, (line, "conditions"), key, "condition", known)
    if program := row.conditions.get(PROGRAM):
        programs = [*metric.programs, *metric.formerly]
        reference(document, (line, "conditions"), program, "program", programs)
