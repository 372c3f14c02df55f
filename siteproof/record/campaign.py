"""Which samples are meant: a campaign, a period, or the newest session.

A campaign is a group of sessions that follow each other: a name that is used again after more than
GAP names another one. The name alone means the newest; NAME@DAY means the one of that day.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, timedelta

from siteproof.errors import UserError
from siteproof.record.ages import Ages
from siteproof.record.samples import PUBLISHED, Header

_AGO = re.compile(r"(\d+)\s*([mhdw])")
GAP = timedelta(days=30)  # a longer pause ends a campaign
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


Wanted = Callable[[Header], bool]


def since(text: str, now: datetime, option: str = "--since") -> datetime:
    """Read "7d", "12h" or an ISO date or time (UTC where no zone is given), as a time in UTC.

    Raises UserError.
    """
    try:
        if match := _AGO.fullmatch(text.strip()):
            return now - timedelta(**{_UNITS[match[2]]: int(match[1])})
        moment = datetime.fromisoformat(text.strip())
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise UserError(
            option,
            f"'{text}' is not a valid time",
            "90m, 12h, 7d, 4w, 2026-11-21, 2026-11-21T18:00",
        ) from None


def choose(
    headers: Iterable[Header],
    *,
    campaign: str = "",
    start: datetime | None = None,
    answers: Wanted = lambda _header: True,
) -> tuple[Wanted, str]:
    """Whether a job is in question, as a function, and in words which are.

    Without a campaign and a start: the newest session in which some job could answer, with its
    campaign if it has one. Where there is no such session, what others have published, which
    shows what they missed. Raises UserError for a campaign that has no sample.
    """
    headers = list(headers)
    if campaign:
        return _named(headers, campaign, start)
    if start is not None:
        return lambda h: _since(h, start), _told(start)
    newest_first = sorted(headers, key=lambda header: header.order, reverse=True)
    newest = next((h for h in newest_first if answers(h)), None)
    if newest is None and any(header.mode == PUBLISHED for header in newest_first):
        return lambda h: h.mode == PUBLISHED, "what others have published; no session yet"
    if newest is None:
        return lambda _: False, "no session yet that could answer a criterion"
    sessions = with_campaign(headers, [newest.session])
    if newest.campaign:
        return lambda h: h.session in sessions, f"campaign {newest.campaign}"
    return lambda h: h.session == newest.session, f"session {newest.session}"


def _named(headers: Sequence[Header], name: str, start: datetime | None) -> tuple[Wanted, str]:
    if start is not None and any(header.campaign == name for header in headers):
        return lambda h: h.campaign == name and _since(h, start), f"campaign {name}, {_told(start)}"
    found = parts(headers, name)
    if not found:
        asked, (name, _, day) = name, name.rpartition("@")
        found = parts(headers, name) if name else []
        if found:
            mine = _of_day(found, name, day)
            wanted = {header.session for header in mine}
            words = f"campaign {name}@{day}" + (f", {_told(start)}" if start else "")
            return lambda h: h.session in wanted and _since(h, start), words
        known = sorted({header.campaign for header in headers} - {""}) or "no campaign yet"
        raise UserError("--campaign", f"no sample of '{asked}'", known)
    sessions = {header.session for header in found[-1]}
    older = ", ".join(map(address, found[:-1]))
    note = f"; not the older one of that name: {older}" if older else ""
    return lambda h: h.session in sessions, f"campaign {name}{note}"


def parts(headers: Sequence[Header], name: str) -> list[list[Header]]:
    """The campaigns of a name, the oldest first: sessions with no longer pause than GAP."""
    return _cut(headers, [h for h in headers if name and h.campaign == name])


def all_parts(headers: Sequence[Header]) -> list[list[Header]]:
    """The campaigns of each name."""
    by_name: dict[str, list[Header]] = {}
    for header in headers:
        if header.campaign:
            by_name.setdefault(header.campaign, []).append(header)
    return [part for mine in by_name.values() for part in _cut(headers, mine)]


def _cut(headers: Sequence[Header], mine: Sequence[Header]) -> list[list[Header]]:
    """The jobs of one name, where a pause is too long. headers: of all jobs, for their ages."""
    found: list[list[Header]] = []
    last: datetime | None = None
    ages = Ages(headers if mine else (), datetime.now(UTC))
    for header in sorted(mine, key=lambda header: header.order):
        moment = ages.measured(header) or last
        if not found or last and moment and moment - last > GAP:
            found.append([])
        found[-1].append(header)
        last = max(filter(None, (last, moment)), default=None)
    return found


def with_campaign(headers: Sequence[Header], sessions: Iterable[str]) -> set[str]:
    """Some sessions, with all others of their campaigns."""
    found = set(sessions)
    for name in {header.campaign for header in headers if header.session in found} - {""}:
        for part in parts(headers, name):
            members = {header.session for header in part}
            if members & found:
                found |= members
    return found


def address(part: Sequence[Header]) -> str:
    """By which name one of several campaigns of a name is asked for."""
    return f"{part[0].campaign}@{part[0].time[:10]}"


def _of_day(found: Sequence[list[Header]], name: str, day: str) -> list[Header]:
    """The campaign of a name that was going on at a day. Raises UserError."""
    try:
        asked = date.fromisoformat(day).isoformat()
    except ValueError:
        asked = ""
    for part in found:
        days = sorted(header.time[:10] for header in part)
        if asked and days[0] <= asked <= days[-1]:
            return part
    what = f"no campaign '{name}' at '{day}'"
    raise UserError("--campaign", what, [address(part) for part in found])


def _told(start: datetime) -> str:
    return f"since {start.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _since(header: Header, start: datetime | None) -> bool:
    return start is None or datetime.fromisoformat(header.time) >= start
