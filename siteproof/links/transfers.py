"""Transfers day by day: the highest, lowest and average rate of each pair, and what went wrong.

As in the daily matrix of the ExTENCI Lustre-WAN project (OSG Storage Forum, 2010-09-21): a failed
transfer stands in the cell instead of the lowest rate, the average is of the successes only, and a
day on which nothing succeeded has none. Trials that print the same figure are trials.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import StrEnum
from fractions import Fraction
from typing import NamedTuple

from siteproof import units
from siteproof.answers.attempts import SERVICE
from siteproof.record.pair_units import PEER
from siteproof.record.samples import INTERRUPTED, TOOL_MISSING, Sample
from siteproof.sites import Site
from siteproof.sites.key_types import Graded

CHECK, RATE = "Service", "Service.rate"
UNIT = "MB/s"
SENDER, RECEIVER, STEP = "sender", "receiver", "step"  # dimensions
PRINTED = ("Transfer.highest", "Transfer.lowest", "Transfer.average")  # in the order of a cell
UNSAID = ("ok", "parse")
FILES, LARGE = "files", "1"  # dimension: rates of many small files have no grades
UNTRIED = (INTERRUPTED, TOOL_MISSING)  # statuses of what is neither a transfer nor its failure
OUT, IN = ("put", "put_many"), ("get", "get_many")  # steps that move files
NO_TRANSFER = ("clean",)  # a step that fails when all files have been moved


class Grade(StrEnum):
    """What a rate is by the thresholds of its link; empty where the site states none."""

    CRITICAL = "critical"
    WARN = "warn"
    GOOD = "good"
    NONE = ""

    @property
    def sign(self) -> str:
        """What stands after a value, for outputs and readers without colours."""
        return {"critical": "-", "warn": "o", "good": "+"}.get(self.value, "")


@dataclass(frozen=True)
class Grades:
    """The two thresholds of a link or service, in the unit of its values; None is not stated.

    The ExTENCI legend prints below 25, 25 to 50, above 50 MB/s; that 25 and 50 themselves are in
    the middle is our reading.
    """

    warn: Fraction | None = None
    critical: Fraction | None = None
    unit: str = UNIT

    @staticmethod
    def of(stated: Graded, unit: str = UNIT) -> Grades:
        """The thresholds of system.yaml in a unit; none where it is not that of a rate."""
        if units.kind(unit) != "rate":
            return Grades(unit=unit)
        warn, critical = (r.to(unit) if r else None for r in (stated.warn, stated.critical))
        return Grades(warn, critical, unit)

    def grade(self, value: Fraction | float | None) -> Grade:
        """The grade of a value in the same unit."""
        if value is None or self.warn is self.critical is None:
            return Grade.NONE
        if self.critical is not None and value < self.critical:
            return Grade.CRITICAL
        return Grade.WARN if self.warn is not None and value <= self.warn else Grade.GOOD

    def words(self, grade: Grade) -> str:
        """What a grade means: `25 to 50 MB/s`; empty where no value has it."""
        low, high = ("" if v is None else f"{float(v):g}" for v in (self.critical, self.warn))
        texts = {
            Grade.CRITICAL: low and f"below {low}",
            Grade.WARN: high and (f"{low} to {high}" if low else f"up to {high}"),
            Grade.GOOD: f"above {high}" if high else low and f"at least {low}",
        }
        return f"{text} {self.unit}" if (text := texts.get(grade)) else ""

    @property
    def legend(self) -> str:
        """What the signs mean; empty without a threshold."""
        return ", ".join(f"{one.sign} {words}" for one in Grade if (words := self.words(one)))


class Moved(NamedTuple):
    """A sample of an attempt, the pairs of ends to which it belongs, and their thresholds."""

    sample: Sample
    pairs: tuple[Pair, ...]
    grades: Grades


def attempts(site: Site, samples: Iterable[Sample]) -> Iterator[Attempt]:
    """Each attempt of each pair, in MB/s."""
    for one, of_pairs, grades in moved(site, samples):
        when = datetime.fromisoformat(one.header.time)
        for pair in of_pairs:
            yield Attempt(pair, when, _printed(one), one.status, grades)


def moved(site: Site, samples: Iterable[Sample]) -> Iterator[Moved]:
    """The attempts among the samples of the check Service, of services that move files.

    A failure before any file was moved, such as of the login, belongs to both directions.
    """
    for sample in samples:
        entry = site.system.services.get(sample.conditions.get(SERVICE, ""))
        if not entry or not entry.transfers or sample.status in UNTRIED:
            continue
        here, there = entry.here or site.name, entry.there or sample.conditions[SERVICE]
        if ways := _ways(sample, here, there):
            yield Moved(sample, ways, Grades.of(site.system.graded(entry)))


def _ways(sample: Sample, here: str, there: str) -> tuple[Pair, ...]:
    """The pairs of ends of a value or failure; none of what is no transfer of the large file."""
    if sample.status == "ok":
        if sample.metric != RATE or sample.dims.get(FILES) != LARGE:
            return ()
        return ((sample.dims.get(SENDER, here), sample.dims.get(RECEIVER, there)),)
    step, out, back = sample.dims.get(STEP, ""), ((here, there),), ((there, here),)
    if step in NO_TRANSFER:
        return ()
    if step in OUT:
        return out
    return back if step in IN else out + back


# The legend's four categories, the first that occurred on a day is shown; all others are `gen`.
CATEGORIES = {"login": "login", "timeout": "timeout", "checksum": "checksum"}
GENERIC = "gen"
NONE = "N/A"

Pair = tuple[str, str]  # sender, receiver


@dataclass(frozen=True)
class Attempt:
    """One trial of a pair. value: MB/s, or another unit; None where it failed with a status."""

    pair: Pair
    time: datetime
    value: Fraction | None
    status: str = "ok"
    grades: Grades = Grades()


@dataclass(frozen=True)
class Cell:
    """A pair's day. highest, lowest, average: of the successes; None where there was none.

    errors: how often each category occurred, in the order in which they are shown.
    """

    highest: Fraction | None
    lowest: Fraction | None
    average: Fraction | None
    trials: int
    errors: Mapping[str, int]
    grades: Grades = Grades()

    @property
    def grade(self) -> Grade:
        """The grade of the average."""
        return self.grades.grade(self.average)

    @property
    def error(self) -> str:
        """The category that stands for the day; empty if all trials succeeded."""
        return next(iter(self.errors), "")


def daily(attempts: Iterable[Attempt]) -> dict[Pair, dict[date, Cell]]:
    """Each pair's days in UTC, oldest first."""
    found: dict[Pair, dict[date, list[Attempt]]] = {}
    for one in attempts:
        day = one.time.astimezone(UTC).date()
        found.setdefault(one.pair, {}).setdefault(day, []).append(one)
    return {
        pair: {day: _cell(trials) for day, trials in sorted(days.items())}
        for pair, days in found.items()
    }


def category(status: str) -> str:
    """Which of the four categories a failure belongs to."""
    return CATEGORIES.get(status, GENERIC)


def _cell(trials: list[Attempt]) -> Cell:
    good = [t.value for t in trials if t.value is not None]
    failed = Counter(category(t.status) for t in trials if t.value is None)
    errors = {name: failed[name] for name in (*CATEGORIES.values(), GENERIC) if failed[name]}
    if not good:
        return Cell(None, None, None, len(trials), errors, trials[0].grades)
    average = sum(good, Fraction(0)) / len(good)
    return Cell(max(good), min(good), average, len(trials), errors, trials[0].grades)


def published_days(site: Site, samples: Iterable[Sample]) -> dict[Pair, dict[date, Cell]]:
    """The days of each pair of which others have printed the highest, lowest and average rate.

    A text that was lost is neither a value nor a failure.
    """
    found: dict[tuple[Pair, date], dict[str, Sample]] = {}
    for one in samples:
        if one.metric in PRINTED and PEER in one.dims:
            day = datetime.fromisoformat(one.header.time).astimezone(UTC).date()
            found.setdefault(((one.node, one.dims[PEER]), day), {})[one.metric] = one
    grades = Grades.of(site.system.mesh)
    days: dict[Pair, dict[date, Cell]] = {}
    for (pair, day), printed in sorted(found.items()):
        highest, lowest, average = (_printed(printed.get(metric)) for metric in PRINTED)
        failed = Counter(category(s.status) for s in printed.values() if s.status not in UNSAID)
        if failed or average is not None:
            cell = Cell(highest, lowest, average, len(printed), failed, grades)
            days.setdefault(pair, {})[day] = cell
    return days


def _printed(sample: Sample | None) -> Fraction | None:
    if sample is None or sample.status != "ok":
        return None
    return units.convert(sample.number, sample.unit, UNIT)
