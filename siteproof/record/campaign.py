"""Which samples a verdict speaks of: a campaign, a period, or the newest session."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta

from siteproof.errors import UserError
from siteproof.record.samples import PUBLISHED, Header

_AGO = re.compile(r"(\d+)\s*([mhdw])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def since(text: str, now: datetime) -> datetime:
    """Read "7d", "12h" or an ISO date or time (UTC where no zone is given). Raises UserError."""
    try:
        if match := _AGO.fullmatch(text.strip()):
            return now - timedelta(**{_UNITS[match[2]]: int(match[1])})
        moment = datetime.fromisoformat(text.strip())
    except (ValueError, OverflowError):
        raise UserError(
            "--since", f"'{text}' is no time", "90m, 12h, 7d, 4w, 2026-11-21, 2026-11-21T18:00"
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def choose(
    headers: Iterable[Header],
    *,
    campaign: str = "",
    start: datetime | None = None,
    answers: Callable[[Header], bool] = lambda _header: True,
) -> tuple[Callable[[Header], bool], str]:
    """Whether a job is in question, as a function, and in words which are.

    Without a campaign and a start: the newest session in which some job could answer some
    criterion, with all sessions of its campaign if it has one. A quick run after an acceptance
    therefore changes nothing. Where there is no such session, what others have published, which
    shows what they missed. Raises UserError for a campaign that has no sample.
    """
    if campaign:
        names = {header.campaign for header in headers}
        if campaign not in names:
            known = sorted(names - {""}) or "no campaign yet"
            raise UserError("--campaign", f"no sample of '{campaign}'", known)
        words = f"campaign {campaign}" + (f", {_told(start)}" if start else "")
        return lambda h: h.campaign == campaign and _since(h, start), words
    if start is not None:
        return lambda h: _since(h, start), _told(start)
    newest_first = sorted(headers, key=lambda header: header.order, reverse=True)
    newest = next((h for h in newest_first if answers(h)), None)
    if newest is None and any(header.mode == PUBLISHED for header in newest_first):
        return lambda h: h.mode == PUBLISHED, "what others have published; no session yet"
    if newest is None:
        return lambda _: False, "no session yet that could answer a criterion"
    if newest.campaign:
        return lambda h: h.campaign == newest.campaign, f"campaign {newest.campaign}"
    return lambda h: h.session == newest.session, f"session {newest.session}"


def _told(start: datetime) -> str:
    return f"since {start.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _since(header: Header, start: datetime | None) -> bool:
    return start is None or datetime.fromisoformat(header.time) >= start
