"""How long ago a job was measured: by its clock, as far as its session's place confirms it.

A session's place does not depend on clocks. So a session cannot be older than the begin of one with
an earlier place, and cannot be of the future. If a clock shows such a time, the true time is only
known to be between two bounds, and each question uses the less favourable bound.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from siteproof.record.samples import PUBLISHED, Header

SLACK = timedelta(hours=1)  # by which two good clocks and a long job may disagree


class Ages:
    """Ages of the jobs of a system at one moment. headers: of all its jobs. now: that moment."""

    def __init__(self, headers: Iterable[Header], now: datetime) -> None:
        self.now = now
        begins: dict[int, datetime] = {}
        for header in headers:
            if (
                not (header.mode == PUBLISHED or header.is_unread)
                and (moment := _began(header)) <= now + SLACK
            ):
                begins[header.place] = min(moment, begins.get(header.place, moment))
        self._places = sorted(begins)
        self._latest: list[datetime] = []  # begin of any session up to this place
        for place in self._places:
            earlier = self._latest[-1:] or [begins[place]]
            self._latest.append(max(begins[place], *earlier))

    def measured(self, header: Header) -> datetime | None:
        """The earliest time when it can have been measured; None if no clock confirms one."""
        if header.is_unread:
            return None
        own, floor = moment_of(header), self._floor(header)
        if own > self.now + SLACK:
            return floor
        return max(own, floor) if floor else own

    def age(self, header: Header, *, youngest: bool = False) -> timedelta | None:
        """How long ago that was at most; None if it is not known.

        youngest: at least, instead; 0 if the clock was wrong.
        """
        moment = self.measured(header)
        if youngest and (moment is None or abs(moment - moment_of(header)) > SLACK):
            return timedelta(0)
        return None if moment is None else max(timedelta(0), self.now - moment)

    def at_newest(self, headers: Iterable[Header]) -> Ages:
        """Ages at the end of the newest of some sessions, as an old campaign is judged."""
        own = [header for header in headers if header.mode != PUBLISHED]
        if not own:
            return self
        newest = max(own, key=lambda header: header.order).session
        ends = [self.measured(header) for header in own if header.session == newest]
        return self._at(max((end for end in ends if end), default=self.now))

    def _at(self, now: datetime) -> Ages:
        found = Ages((), now)
        found._places, found._latest = self._places, self._latest
        return found

    def _floor(self, header: Header) -> datetime | None:
        """The latest begin of a session with an earlier place; None of one without a place."""
        before = bisect_left(self._places, header.place) if header.place else 0
        return self._latest[before - 1] if before else None


def moment_of(header: Header) -> datetime:
    """The time of the job, by its clock."""
    moment = datetime.fromisoformat(header.time)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _began(header: Header) -> datetime:
    """When the session began, by its name; if it has no time, when the job ended."""
    if header.began is None:
        return moment_of(header)
    return min(datetime.fromtimestamp(header.began, UTC), moment_of(header))
