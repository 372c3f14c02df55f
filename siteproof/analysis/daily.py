"""A link day by day: the highest, lowest and average rate of each pair, and what went wrong.

As in the daily matrix of the ExTENCI Lustre-WAN project (OSG Storage Forum, 2010-09-21): a failed
transfer stands in the cell instead of the lowest rate, the average is of the successes only, and a
day on which nothing succeeded has none. Trials that print the same figure are trials.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from fractions import Fraction

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
