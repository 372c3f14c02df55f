"""Whether an answer is too old: by its criterion's `max_age`, or by what was updated since."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from siteproof.judge.gravity import BROKEN, Verdict
from siteproof.record.samples import PUBLISHED

if TYPE_CHECKING:
    from collections.abc import Collection

    from siteproof.record.ages import Ages
    from siteproof.record.samples import Sample
    from siteproof.record.updates import Updates
    from siteproof.sites import Criterion

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
_UNITS = ((DAY, "day", "d"), (HOUR, "hour", "h"), (timedelta(minutes=1), "minute", "min"))
SOME = 2  # units of which one word is enough: 47 hours, but 2 days


@dataclass(frozen=True)
class Freshness:
    """What decides whether an answer still counts."""

    ages: Ages
    updates: Updates | None = None

    def age(self, sample: Sample) -> timedelta | None:
        """How long ago it was measured, at most; None of what is published or of no known time."""
        return None if published(sample) else self.ages.age(sample.header)

    def too_old(
        self, criterion: Criterion, sample: Sample, verdict: Verdict, nodes: Collection[str] = ()
    ) -> str:
        """Why an answer does not count any more; empty if it does.

        verdict: the one that it gives. nodes: those whose updates matter. Where the clock was wrong
        a promise that is kept takes the longest age that it may have, one that is broken the
        shortest.
        """
        limit = criterion.oldest
        if limit is None or published(sample):
            return ""
        bad = verdict in BROKEN
        age = self.ages.age(sample.header, youngest=bad)
        why = ""
        if age is None:
            why = f"answered at an unknown time: the clock said {sample.header.time[:16]}"
        elif age > limit:
            why = f"answered {lasting(age, limit)} ago, at most {lasting(limit)}"
        elif self.updates and (update := self.updates.after(sample.header, nodes)):
            why = f"answered {lasting(age)} ago, before {update}"
        return f"{why}; {verdict} then" if why and verdict is not Verdict.PASS else why


def published(sample: Sample) -> bool:
    """Whether others have published it, which has no age here."""
    return sample.header.mode == PUBLISHED or PUBLISHED in sample.own_conditions


def lasting(span: timedelta, unlike: timedelta | None = None) -> str:
    """`30 days`, `5 hours`; where that would read as the other span, in a smaller unit."""
    told = [_count(span // unit, word) for unit, word, _ in _UNITS if span >= SOME * unit]
    told.append(_count(span // _UNITS[-1][0], _UNITS[-1][1]))
    other = lasting(unlike) if unlike else ""
    return next((text for text in told if text != other), told[-1])


def short(span: timedelta) -> str:
    """`30 d`, `5 h`, `12 min`."""
    for unit, _, sign in _UNITS:
        if span >= SOME * unit:
            return f"{span // unit} {sign}"
    return f"{span // _UNITS[-1][0]} {_UNITS[-1][2]}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" + ("" if number == 1 else "s")
