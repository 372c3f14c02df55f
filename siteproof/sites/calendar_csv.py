"""timeline.csv, windows.csv and steps: milestones, planned maintenance, procedures carried out.

A milestone has a day, or days, and what shows it; a window who announced it and when, and times
with their offset from UTC or the name of their zone, so that daylight saving leaves no doubt.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from functools import cached_property
from typing import Annotated, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, model_validator

from siteproof.errors import Mistake
from siteproof.record.samples import YEARS
from siteproof.sites.key_types import readable
from siteproof.sites.lint import Around, node_set, reference
from siteproof.sites.schema.yamlfile import Document
from siteproof.sites.site_tables import Names, Row
from siteproof.units import count

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
