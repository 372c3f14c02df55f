"""Clocks that cannot be right, told in words: the order of sessions does not hang on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from siteproof import nodesets
from siteproof.record.samples import PUBLISHED, Header
from siteproof.record.session_numbers import highest

BOUND = 60  # seconds that two clocks may differ
NODES = "clocks"  # provenance: the nodes whose clocks are off, each with by how much
LONGEST = 12  # digits of such a time
SHOWN = 5  # of a kind; the others are counted
BY_PLACE = "judged by its place in the order of sessions"


@dataclass(frozen=True)
class Span:
    """When a session measured, by its clocks: UTC, as text. order: of its last job."""

    session: str
    place: int
    first: str
    last: str


def told(headers: Iterable[Header], now: datetime | None = None) -> list[str]:
    """What is wrong with the clocks and numbers of a system's sessions, a sentence each."""
    own = [header for header in headers if header.mode != PUBLISHED]
    spans = _spans(own)
    limit = _text((now or datetime.now(UTC)) + timedelta(seconds=BOUND))
    return [
        *_few(_later_than_now(spans, limit)),
        *_few(_before_an_older(spans, limit)),
        *_few(_numbers(own)),
        *_few(_nodes(own)),
    ]


def read(text: str) -> int | None:
    """A time of a node's own account, in seconds since 1970; None: it is none."""
    is_one = text.isascii() and text.isdigit() and len(text) <= LONGEST
    return int(text) if is_one else None


def of_nodes(accounts: Iterable[tuple[str, Mapping[str, str]]], started: float, now: float) -> str:
    """Which nodes began before their job did, or ended after now, by more than the bound.

    accounts: each node's own. started, now: by the login node's clock.
    """
    behind: dict[str, float] = {}
    ahead: dict[str, float] = {}
    for node, account in accounts:
        begin, end = (read(account.get(key, "")) for key in ("start", "end"))
        if begin is not None and begin < started - BOUND:
            behind[node] = max(started - begin, behind.get(node, 0))
        if end is not None and end > now + BOUND:
            ahead[node] = max(end - now, ahead.get(node, 0))
    return "; ".join(
        f"{nodesets.of(held)} {'up to ' if len(held) > 1 else ''}{max(held.values()):.0f} s {word}"
        for held, word in ((behind, "behind"), (ahead, "ahead"))
        if held
    )


def _spans(headers: Sequence[Header]) -> list[Span]:
    """The sessions in their order."""
    held: dict[str, list[Header]] = {}
    for header in headers:
        held.setdefault(header.session, []).append(header)
    found = []
    for session, mine in held.items():
        first, last = (end(header.time for header in mine) for end in (min, max))
        place = min(header.place for header in mine)
        began = mine[0].began
        if began is not None:
            first = min(first, _text(datetime.fromtimestamp(began, UTC)))
        found.append((min(header.order for header in mine), Span(session, place, first, last)))
    return [span for _, span in sorted(found, key=lambda one: one[0])]


def _later_than_now(spans: Sequence[Span], limit: str) -> Iterator[str]:
    for span in spans:
        if span.last > limit:
            yield f"session {span.session} ended at {span.last}, later than now: {BY_PLACE}"


def _before_an_older(spans: Sequence[Span], limit: str) -> Iterator[str]:
    """A session that ended before an older one began, beyond the bound."""
    latest: Span | None = None
    for span in spans:
        if latest and _shifted(span.last) < latest.first:
            yield (
                f"session {span.session} ended at {span.last}, before the older session "
                f"{latest.session} began at {latest.first}: {BY_PLACE}"
            )
        if span.last <= limit and (latest is None or span.first > latest.first):
            latest = span


def _numbers(headers: Sequence[Header]) -> Iterator[str]:
    """Numbers that two sessions have, sessions with two numbers, and leaps."""
    sessions: dict[int, set[str]] = {}
    places: dict[str, set[int]] = {}
    for header in headers:
        if header.place:
            sessions.setdefault(header.place, set()).add(header.session)
            places.setdefault(header.session, set()).add(header.place)
    for place, names in sorted(sessions.items()):
        if len(names) > 1:
            yield (
                f"the number {place} is that of sessions {', '.join(sorted(names)[:3])}: "
                "ordered by their times"
            )
    for name, held in sorted(places.items()):
        if len(held) > 1:
            yield f"session {name} has the numbers {', '.join(map(str, sorted(held)[:3]))}"
    last, beyond = highest(sessions)
    for place in beyond:
        yield (
            f"session {min(sessions[place])} has the number {place}, far beyond {last}, "
            "the last before it: it does not count"
        )


def _nodes(headers: Sequence[Header]) -> Iterator[str]:
    for header in headers:
        if off := header.provenance.get(NODES):
            yield (
                f"clocks of nodes that differ from the login node's by more than {BOUND} s "
                f"(session {header.session}, {header.check}): {off}"
            )


def _shifted(text: str) -> str:
    try:
        return _text(datetime.fromisoformat(text) + timedelta(seconds=BOUND))
    except OverflowError:
        return text


def _text(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds")


def _few(lines: Iterable[str]) -> list[str]:
    found = list(lines)
    more = [f"and {len(found) - SHOWN} more of that kind"] if len(found) > SHOWN else []
    return [*found[-SHOWN:], *more]
