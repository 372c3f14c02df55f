"""Whether an answer is too old: by its criterion's `max_age`, or by what has changed since."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta

from siteproof.record import finding
from siteproof.record.clocks import Ages
from siteproof.record.comparable_settings import Settings
from siteproof.record.finding import Finding, Kind
from siteproof.record.samples import PUBLISHED, Sample
from siteproof.record.severity import BROKEN, Verdict
from siteproof.record.updates import Updates
from siteproof.sites import Criterion
from siteproof.units import count

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
_UNITS = ((DAY, "day", "d"), (HOUR, "hour", "h"), (timedelta(minutes=1), "minute", "min"))
SOME = 2  # units of which one word is enough: 47 hours, but 2 days


@dataclass(frozen=True)
class Freshness:
    """What decides whether an answer still counts; settings: and with what it is compared."""

    ages: Ages
    updates: Updates | None = None
    settings: Settings | None = None

    def age(self, sample: Sample) -> timedelta | None:
        """How long ago it was measured, at most; None of what is published or of no known time."""
        return None if published(sample) else self.ages.age(sample.header)

    def too_old(
        self, criterion: Criterion, sample: Sample, verdict: Verdict, nodes: Collection[str] = ()
    ) -> Finding | None:
        """Why an answer does not count any more; None if it does.

        verdict: the one that it gives. nodes: those whose changes matter. Where the clock was wrong
        a promise that is kept takes the longest age that it may have, one that is broken the
        shortest.
        """
        if published(sample):
            return None
        limit = criterion.oldest
        answer = None if verdict is Verdict.PASS else str(verdict)
        if self.updates and (other := self.updates.replaced(sample.header, nodes)):
            return finding.of(Kind.REPLACED, {**other._asdict(), "answer": answer})
        if limit is None:
            return None
        age = self.ages.age(sample.header, youngest=verdict in BROKEN)
        if age is None:
            clock = sample.header.time[:16]
            return finding.of(Kind.AGE_UNKNOWN, {"clock": clock, "answer": answer})
        seconds = age.total_seconds()
        if age > limit:
            bounds = {"age": seconds, "limit": limit.total_seconds(), "answer": answer}
            return finding.of(Kind.TOO_OLD, bounds)
        update = self.updates.after(sample.header, nodes) if self.updates else None
        if update:
            changed = {"age": seconds, **update._asdict(), "answer": answer}
            return finding.of(Kind.UPDATED_SINCE, changed)
        return None


def published(sample: Sample) -> bool:
    """Whether others have published it, which has no age here."""
    return sample.header.mode == PUBLISHED or PUBLISHED in sample.own_conditions


def lasting(span: timedelta, other_than: timedelta | None = None) -> str:
    """`30 days`, `5 hours`; in a smaller unit where it would look equal to the other span."""
    for unit, name, _ in _UNITS:
        looks_equal = other_than is not None and span // unit == other_than // unit
        if span >= SOME * unit and not looks_equal:
            return count(span // unit, name)
    return count(span // _UNITS[-1][0], _UNITS[-1][1])


def short(span: timedelta) -> str:
    """`30 d`, `5 h`, `12 min`."""
    for unit, _, sign in _UNITS:
        if span >= SOME * unit:
            return f"{span // unit} {sign}"
    return f"{span // _UNITS[-1][0]} {_UNITS[-1][2]}"
