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
from fractions import Fraction
from typing import NamedTuple

from siteproof import units
from siteproof.answers.attempts import SERVICE
from siteproof.record.samples import INTERRUPTED, TOOL_MISSING, Sample
from siteproof.sites import Site

CHECK, RATE = "Service", "Service.rate"
UNIT = "MB/s"
SENDER, RECEIVER, STEP = "sender", "receiver", "step"  # dimensions
FILES, LARGE = "files", "1"  # dimension: rates of many small files have no grades
UNTRIED = (INTERRUPTED, TOOL_MISSING)  # statuses of what is neither a transfer nor its failure
OUT, IN = ("put", "put_many"), ("get", "get_many")  # steps that move files
NO_TRANSFER = ("clean",)  # a step that fails when all files have been moved


class Moved(NamedTuple):
    """A sample of an attempt, and the pairs of ends to which it belongs."""

    sample: Sample
    pairs: tuple[Pair, ...]

    def attempts(self) -> Iterator[Attempt]:
        """The attempt of each pair, in MB/s."""
        one, value = self.sample, None
        if one.status == "ok":
            value = units.convert(one.number, one.unit, UNIT)
        when = datetime.fromisoformat(one.header.time)
        for pair in self.pairs:
            yield Attempt(pair, when, value, one.status)


def attempts(site: Site, samples: Iterable[Sample]) -> Iterator[Attempt]:
    """Each attempt of each pair, in MB/s."""
    for one in moved(site, samples):
        yield from one.attempts()


def moved(site: Site, samples: Iterable[Sample]) -> Iterator[Moved]:
    """The attempts among the samples of the check Service, of services that move files.

    A failure before any file was moved, such as of the login, belongs to both directions.
    """
    for sample in samples:
        entry = site.system.services.get(sample.conditions.get(SERVICE, ""))
        if not entry or not entry.transfers or sample.status in UNTRIED:
            continue
        here, there = entry.here or site.name, entry.there or sample.conditions[SERVICE]
        if sample.status == "ok":
            if sample.metric == RATE and sample.dims.get(FILES) == LARGE:
                ends = sample.dims.get(SENDER, here), sample.dims.get(RECEIVER, there)
                yield Moved(sample, (ends,))
        elif (step := sample.dims.get(STEP, "")) not in NO_TRANSFER:
            out, back = ((here, there),), ((there, here),)
            yield Moved(sample, out if step in OUT else back if step in IN else out + back)


# The legend: below 25, 25 to 50, above 50 MB/s; that 25 and 50 are in the middle is our reading.
LOW, HIGH = 25, 50
# Its four categories, the first that occurred on a day is shown; every other status is `gen`.
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


def rate_class(value: Fraction) -> str:
    """The legend's class of a rate in MB/s, in words."""
    if value < LOW:
        return f"below {LOW} MB/s"
    return f"{LOW} to {HIGH} MB/s" if value <= HIGH else f"above {HIGH} MB/s"


def _cell(trials: list[Attempt]) -> Cell:
    good = [t.value for t in trials if t.value is not None]
    failed = Counter(category(t.status) for t in trials if t.value is None)
    errors = {name: failed[name] for name in (*CATEGORIES.values(), GENERIC) if failed[name]}
    if not good:
        return Cell(None, None, None, len(trials), errors)
    average = sum(good, Fraction(0)) / len(good)
    return Cell(max(good), min(good), average, len(trials), errors)
