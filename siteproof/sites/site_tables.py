"""The tables of a site: CSV files of one line a row, each a small model with the rules of its row.

The first line names the columns, in any order; lines that begin with # are remarks, and an empty
cell is none. What a column means is said once, in the model. Every mistake is collected, not
raised.

timeline.csv, windows.csv and steps: milestones, planned maintenance, procedures carried out.

A milestone has a day, or days, and what shows it; a window who announced it and when, and times
with their offset from UTC or the name of their zone, so that daylight saving leaves no doubt.

published.csv: values that a report, a paper or somebody's table states, one a line.

A value stays as it was printed: its digits, its unit, its date, and whether it is a mean, a maximum
or a single value. A bound such as >166 and a range such as 15-20 stay what they are: the form is
kept with the digits. A failure is no value.
"""

from __future__ import annotations

import csv
import io
import re
from calendar import monthrange
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self, TypeVar
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from siteproof import units
from siteproof.errors import Mistake, UserError
from siteproof.record.samples import STATUSES, YEARS
from siteproof.sites.catalogue import Metric
from siteproof.sites.key_types import Model, plausible, readable, shaped
from siteproof.sites.lint import Around, belongs_to, node_set, reference
from siteproof.sites.schema import shapes
from siteproof.sites.schema.yamlfile import Document, Stop, clip, text_of
from siteproof.sites.stated import Fact, FactSection
from siteproof.units import count

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


_DAY = re.compile(r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2}))?)?")
_DATES = "a date such as 2016-08-04, 2016-08 or 2016, or two with / between them"


Days = tuple[date, date]  # first and last


def _ends(text: str) -> Days:
    """First and last day of a date, month or year. Raises ValueError."""
    match = _DAY.fullmatch(text)
    if not match:
        raise ValueError(text)
    year, month, day = (int(part or 0) for part in match.groups())
    last = date(year, month or 12, day or monthrange(year, month or 12)[1])
    return date(year, month or 1, day or 1), last


def period(text: str) -> Days:
    """First and last day of a `date` cell. Raises ValueError."""
    first, _, last = text.partition("/")
    return _ends(first)[0], _ends(last or first)[1]


def said_period(text: str) -> str:
    """The cell itself, if it is a date. Raises pydantic's error for a mistake."""
    try:
        first, last = period(text)
    except ValueError:
        raise Mistake(f"'{text[:40]}' is not a valid date", _DATES) from None
    if first > last or first > datetime.now(UTC).date():
        raise Mistake(f"'{text}' ends before it begins, or lies in the future", _DATES)
    if first.year not in YEARS:
        raise Mistake(f"'{text}' is too early", f"{YEARS[0]} or later")
    return text


class Milestone(Row):
    """A day, or days, on which something was reached."""

    FILE, WHAT, COLUMN, KEY = "timeline.csv", "milestones", "date", ("milestone",)

    milestone: str
    """What was reached; each milestone once in the file."""
    date: Annotated[str, AfterValidator(said_period)] = ""
    """When: 2016-04-21, 2016-04, or 2016-04-06/2016-04-20; empty: not known."""
    needs: Names = []
    """Milestones of the file that must come first, with ; between several."""
    source: str
    """What shows it: the document, and the paragraph in it."""
    note: str = ""
    """What a reader must know, such as a contradiction."""

    @property
    def days(self) -> Days | None:
        """First and last day; None without a date."""
        return period(self.date) if self.date else None

    def lint(self, document: Document, line: int, around: Around, others: Iterable[Self]) -> None:
        """Note a milestone that it needs and that the file does not have."""
        names = [other.milestone for other in others]
        for name in self.needs:
            reference(document, (line, "needs"), name, "milestone", names)


def remarks(milestones: Sequence[Milestone]) -> list[str]:
    """One sentence for each milestone without a day, and each that precedes one that it needs."""
    undated = [f"{one.milestone} has no date" for one in milestones if not one.date]
    return undated + early(milestones)


def early(milestones: Sequence[Milestone]) -> list[str]:
    """One sentence for each milestone that precedes one that it needs."""
    by_name = {one.milestone: one for one in milestones}
    found = []
    for one in milestones:
        for needed in filter(None, map(by_name.get, one.needs)):
            if not one.days or not needed.days or one.days[1] >= needed.days[0]:
                continue
            days = (needed.days[0] - one.days[1]).days
            found.append(
                f"{one.milestone} ({one.date}) precedes {needed.milestone} ({needed.date}), "
                f"which it needs, by {count(days, 'day')}"
            )
    return found


ALL = "all"
_ZONED = re.compile(r"(\S+) ([A-Za-z_]{2,20}(?:/[A-Za-z0-9_+-]{2,30}){0,2})")
_TIMES = (
    "a time with its offset or zone: 2026-11-21T18:00+01:00, 2026-11-21T17:00Z, "
    "2026-11-21T18:00 Europe/Berlin"
)


def seconds(text: str) -> int:
    """A time in seconds since 1970. Raises pydantic's error for a mistake."""
    zoned = _ZONED.fullmatch(text)
    try:
        moment = datetime.fromisoformat(zoned[1] if zoned else text)
    except ValueError:
        raise Mistake(f"'{text[:40]}' is not a valid time", _TIMES) from None
    if zoned:
        moment = _in_zone(text, moment, zoned[2])
    if moment.tzinfo is None:
        raise Mistake(f"'{text[:40]}' has no offset and no zone", _TIMES)
    if moment.year not in YEARS:
        raise Mistake(f"'{text[:40]}' is too early or too late", f"{YEARS[0]} to {YEARS[-1]}")
    return int(moment.timestamp())


def _in_zone(text: str, moment: datetime, name: str) -> datetime:
    """A local time in its zone, if it is there once: clocks skip an hour, or show it twice."""
    if moment.tzinfo is not None:
        raise Mistake(f"'{text[:60]}' has an offset and a zone", _TIMES)
    try:
        zone = ZoneInfo(name)
    except (OSError, ValueError, LookupError):
        raise Mistake(f"'{name}' is not a time zone that this machine knows", _TIMES) from None
    first, second = moment.replace(tzinfo=zone, fold=0), moment.replace(tzinfo=zone, fold=1)
    if first.utcoffset() == second.utcoffset():
        return first
    is_skipped = first.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != moment
    what = "is skipped" if is_skipped else "occurs twice"
    raise Mistake(f"'{text[:60]}' {what} when clocks change", "a time with its offset from UTC")


Time = Annotated[str, readable(seconds)]


class PlannedWindow(Row):
    """A time in which nodes or services may be down, because it was announced before."""

    FILE, WHAT, COLUMN = "windows.csv", "windows", "nodes"
    KEY = ("begin", "end", "nodes", "services", "announced", "by", "why")

    begin: Time
    """When it begins: 2026-11-21T18:00+01:00, 2026-11-21T17:00Z, or 2026-11-21T18:00
    Europe/Berlin."""
    end: Time
    """When it ends, in the same forms."""
    nodes: str = ""
    """The nodes that it covers: all, a role, or a set; empty: none."""
    services: Names = []
    """The services of `probes` that it covers, with ; between several, or all; empty: none."""
    announced: Time
    """When it was announced. A window that was announced after it began is not planned."""
    by: str
    """Who announced it."""
    why: str
    """What for, and where it was announced."""

    @model_validator(mode="after")
    def _some_time_for_something(self) -> PlannedWindow:
        if self.span[0] >= self.span[1]:
            raise Mistake("the window ends before it begins")
        if not (self.nodes or self.services):
            raise Mistake("no nodes and no services", hint="Write 'all' for all of them")
        return self

    @cached_property
    def span(self) -> tuple[int, int]:
        """Begin and end, in seconds since 1970."""
        return seconds(self.begin), seconds(self.end)

    @property
    def planned(self) -> bool:
        """Whether it was announced before it began."""
        return seconds(self.announced) < self.span[0]

    def covers_service(self, name: str) -> bool:
        """Whether a service may be down in it."""
        return name in self.services or ALL in self.services

    def lint(self, document: Document, line: int, around: Around, others: Iterable[Self]) -> None:
        """Note nodes and services that the system does not have."""
        if around.system is None:
            return
        services = {probe.service or name for name, probe in around.system.probes.items()}
        for name in self.services:
            reference(document, (line, "services"), name, "service", [ALL, *sorted(services)])
        if self.nodes and self.nodes not in (ALL, *around.system.nodes):
            allowed = [ALL, *around.system.nodes, "a set of their nodes"]
            node_set(document, (line, "nodes"), self.nodes, around.inventory, allowed)


class Step(Row):
    """A step of a procedure that was carried out, such as an upgrade, a failover or a fault."""

    FILE, WHAT, COLUMN, KEY = "steps.csv", "steps", "step", ("step", "begin")

    step: str
    """What was done, or which fault was injected."""
    begin: Time
    """When it began, in the forms of windows.csv."""
    end: Time
    """When it was done, found or given up, in the same forms."""
    done: Literal["yes", "no"]
    """yes: it succeeded, or the fault was named."""
    note: str = ""
    """What a reader must know."""

    @property
    def hours(self) -> float:
        """How long it took."""
        return (seconds(self.end) - seconds(self.begin)) / 3600

    @model_validator(mode="after")
    def _some_time(self) -> Step:
        if self.hours < 0:
            raise Mistake("the step ends before it begins")
        return self


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
