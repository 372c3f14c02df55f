"""The selection of samples: a campaign, a period, or the newest session.

A campaign is a group of sessions with a name. If a name is used again after more than GAP, it names
another campaign. The name alone selects the newest; NAME@DAY selects the one of that day.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, timedelta

from siteproof.errors import UserError, hint
from siteproof.record.clocks import Ages
from siteproof.record.samples import PUBLISHED, Header

_AGO = re.compile(r"(\d+)\s*([mhdw])")
GAP = timedelta(days=30)  # a longer pause ends a campaign
NOTHING = "nothing was measured yet"
MEASURE = "Run 'reframe -c checks/ -r' first"
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
    """The jobs that are selected, as a function, and a text that names them.

    Without a campaign and a start: the newest session in which a job could answer, with its
    campaign if it has one. If there is no such session, published values, as they can show that a
    criterion is missed; else the newest session, for the reasons why it answers nothing. Raises
    UserError for a campaign that has no sample.
    """
    headers = list(headers)
    if campaign:
        return _named(headers, campaign, start)
    if start is not None:
        return lambda h: _since(h, start), _since_text(start)
    newest_first = sorted(headers, key=lambda header: header.order, reverse=True)
    newest = next((header for header in newest_first if answers(header)), None)
    if newest is None:
        if any(header.mode == PUBLISHED for header in headers):
            return lambda h: h.mode == PUBLISHED, "published values; no session yet"
        if not newest_first:
            return lambda _: False, "no session yet that could answer a criterion"
        newest = newest_first[0]  # why it does not answer is the reason then
    if newest.campaign:
        sessions = with_campaign(headers, [newest.session])
        return lambda h: h.session in sessions, f"campaign {newest.campaign}"
    return lambda h: h.session == newest.session, f"session {newest.session}"


def _named(headers: Sequence[Header], name: str, start: datetime | None) -> tuple[Wanted, str]:
    since_start = f", {_since_text(start)}" if start else ""
    found = parts(headers, name)
    if found and start:  # a period may select from several campaigns of the name
        return lambda h: h.campaign == name and _since(h, start), f"campaign {name}{since_start}"
    if found:
        sessions = {header.session for header in found[-1]}
        older = ", ".join(map(address, found[:-1]))
        note = f"; not the older one of that name: {older}" if older else ""
        return lambda h: h.session in sessions, f"campaign {name}{note}"
    plain, _, day = name.rpartition("@")
    found = parts(headers, plain)
    if not found:
        known = sorted({header.campaign for header in headers} - {""})
        what = f"no sample of '{name}'{hint(plain or name, known)}"
        raise UserError("--campaign", what, known or "no campaign yet")
    wanted = {header.session for header in _of_day(found, plain, day)}
    return (
        lambda h: h.session in wanted and _since(h, start),
        f"campaign {plain}@{day}{since_start}",
    )


def parts(headers: Sequence[Header], name: str) -> list[list[Header]]:
    """The campaigns of a name, the oldest first."""
    return [part for part in all_parts(headers) if part[0].campaign == name]


def all_parts(headers: Sequence[Header]) -> list[list[Header]]:
    """The campaigns of all names: sessions of a name without a pause longer than GAP."""
    found: list[list[Header]] = []
    newest: dict[str, list[Header]] = {}
    last: dict[str, datetime] = {}
    ages = Ages(headers, datetime.now(UTC))
    named = [header for header in headers if header.campaign]
    for header in sorted(named, key=lambda header: header.order):
        name, moment = header.campaign, ages.measured(header)
        is_far = moment is not None and name in last and moment - last[name] > GAP
        if is_far or name not in newest:
            newest[name] = []
            found.append(newest[name])
        newest[name].append(header)
        if moment is not None:
            last[name] = max(moment, last.get(name, moment))
    return found


def with_campaign(headers: Sequence[Header], sessions: Iterable[str]) -> set[str]:
    """Some sessions, with all other sessions of their campaigns."""
    found = set(sessions)
    for part in all_parts(headers):
        members = {header.session for header in part}
        if members & found:
            found |= members
    return found


def address(part: Sequence[Header]) -> str:
    """The name that selects one of several campaigns with the same name."""
    return f"{part[0].campaign}@{part[0].time[:10]}"


def _of_day(found: Sequence[list[Header]], name: str, day: str) -> list[Header]:
    """The campaign of a name with measurements before and after a day. Raises UserError."""
    try:
        wanted = date.fromisoformat(day).isoformat()
    except ValueError:
        wanted = ""
    for part in found:
        days = [header.time[:10] for header in part]
        if min(days) <= wanted <= max(days):
            return part
    what = f"no campaign '{name}' on '{day}'"
    raise UserError("--campaign", what, [address(part) for part in found])


def _since_text(start: datetime) -> str:
    return f"since {start.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _since(header: Header, start: datetime | None) -> bool:
    return start is None or datetime.fromisoformat(header.time) >= start
