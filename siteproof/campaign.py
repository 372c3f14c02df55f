"""Which samples a verdict speaks of: a campaign, a period, or the newest session."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from siteproof.errors import UserError
from siteproof.samples import Sample

_AGO = re.compile(r"(\d+)\s*([mhdw])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def since(text: str, now: datetime) -> datetime:
    """Read "7d", "12h" or an ISO date or time (UTC where no zone is given). Raises UserError."""
    try:
        if match := _AGO.fullmatch(text.strip()):
            return now - timedelta(**{_UNITS[match[2]]: int(match[1])})
        moment = datetime.fromisoformat(text.strip())
    except (ValueError, OverflowError):
        raise UserError("--since", f"'{text}' is no time", "90m, 12h, 7d, 4w, 2026-11-21, "
                        "2026-11-21T18:00") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def select(
    samples: Sequence[Sample], *, campaign: str = "", start: datetime | None = None,
    answers: Callable[[Sample], bool] = lambda _sample: True,
) -> tuple[list[Sample], str]:
    """The samples in question, and in words which they are.

    Without a campaign and a start: the newest session in which some sample could answer some
    criterion, with all sessions of its campaign if it has one. A quick run after an acceptance
    therefore changes nothing. Raises UserError for a campaign that has no sample.
    """
    if campaign:
        chosen = [s for s in samples if s.header.campaign == campaign]
        if not chosen:
            names = sorted({s.header.campaign for s in samples if s.header.campaign})
            raise UserError("--campaign", f"no sample of '{campaign}'", names or "no campaign yet")
        return _within(chosen, start), f"campaign {campaign}"
    if start is not None:
        return _within(samples, start), f"since {start:%Y-%m-%d %H:%M} UTC"
    newest_first = sorted(samples, key=_order, reverse=True)
    newest = next((s for s in newest_first if answers(s)), None)
    if newest is None:
        return [], "no session yet that could answer a criterion"
    name = newest.header.campaign
    if name:
        return [s for s in samples if s.header.campaign == name], f"campaign {name}"
    session = newest.header.session
    return [s for s in samples if s.header.session == session], f"session {session}"


def _order(sample: Sample) -> tuple[str, str]:
    return sample.header.time, sample.header.session


def _within(samples: Sequence[Sample], start: datetime | None) -> list[Sample]:
    if start is None:
        return list(samples)
    return [s for s in samples if datetime.fromisoformat(s.header.time) >= start]
