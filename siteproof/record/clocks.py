"""Clocks and session numbers that cannot be right. They do not change the order of sessions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from siteproof import nodesets
from siteproof.record.finding import Finding, note
from siteproof.record.samples import PUBLISHED, Header
from siteproof.record.session_numbers import highest

BOUND = 60  # seconds that two clocks may differ
NODES = "clocks"  # provenance: the nodes whose clocks are off, each with by how much
LONGEST = 12  # digits of such a time
_BY_NUMBER = "its number, and not its clock, gives its place in the order of sessions"
MAX_FINDINGS = 5  # of a kind; the others are counted
MAX_LISTED = 3  # sessions of a number, and numbers of a session, that are named


@dataclass(frozen=True)
class Span:
    """When a session measured, by its clocks: UTC, as text."""

    session: str
    first: str
    last: str


def findings(headers: Iterable[Header], now: datetime | None = None) -> list[Finding]:
    """What is wrong with the clocks and numbers of a system's sessions."""
    own = [header for header in headers if header.mode != PUBLISHED]
    spans = _spans(own)
    limit = _text((now or datetime.now(UTC)) + timedelta(seconds=BOUND))
    return [
        *_limited(
            note(
                f"session {{session}} ended at {{ended}}, later than now; {_BY_NUMBER}",
                session=span.session,
                ended=span.last,
            )
            for span in spans
            if span.last > limit
        ),
        *_limited(_before_an_older(spans, limit)),
        *_limited(_numbers(own)),
        *_limited(_nodes(own)),
    ]


def read(text: str) -> int | None:
    """A time that a node reported, in seconds since 1970; None: it is not valid."""
    is_valid = text.isascii() and text.isdigit() and len(text) <= LONGEST
    return int(text) if is_valid else None


def of_nodes(accounts: Iterable[tuple[str, Mapping[str, str]]], started: float, now: float) -> str:
    """The nodes that began before their job did, or ended after now, by more than the bound.

    accounts: what each node reported. started, now: by the login node's clock.
    The text becomes the job's provenance; empty if all clocks agree.
    """
    slow: dict[str, float] = {}
    fast: dict[str, float] = {}
    for node, account in accounts:
        begin, end = (read(account.get(key, "")) for key in ("start", "end"))
        if begin is not None and begin < started - BOUND:
            slow[node] = max(started - begin, slow.get(node, 0))
        if end is not None and end > now + BOUND:
            fast[node] = max(end - now, fast.get(node, 0))
    # Perflogs of all versions have these two words.
    texts = [_off(slow, "behind"), _off(fast, "ahead")]
    return "; ".join(filter(None, texts))


def _off(seconds: Mapping[str, float], side: str) -> str:
    if not seconds:
        return ""
    up_to = "up to " if len(seconds) > 1 else ""
    return f"{nodesets.of(seconds)} {up_to}{max(seconds.values()):.0f} s {side}"


def _spans(headers: Sequence[Header]) -> list[Span]:
    """The sessions in their order."""
    by_session: dict[str, list[Header]] = {}
    for header in sorted(headers, key=lambda header: header.order):
        by_session.setdefault(header.session, []).append(header)
    spans = []
    for session, jobs in by_session.items():
        first, last = min(job.time for job in jobs), max(job.time for job in jobs)
        began = jobs[0].began
        if began is not None:
            first = min(first, _text(datetime.fromtimestamp(began, UTC)))
        spans.append(Span(session, first, last))
    return spans


def _before_an_older(spans: Sequence[Span], limit: str) -> Iterator[Finding]:
    """A session that ended before an older one began, beyond the bound."""
    latest: Span | None = None
    for span in spans:
        if latest and _seconds(span.last) + BOUND < _seconds(latest.first):
            yield note(
                "session {session} ended at {ended}, before the older session {older_session} "
                f"began at {{began}}; {_BY_NUMBER}",
                session=span.session,
                ended=span.last,
                older_session=latest.session,
                began=latest.first,
            )
        if span.last <= limit and (latest is None or span.first > latest.first):
            latest = span


def _numbers(headers: Sequence[Header]) -> Iterator[Finding]:
    """Numbers that two sessions have, sessions with two numbers, and numbers far too high."""
    sessions: dict[int, set[str]] = {}
    numbers: dict[str, set[int]] = {}
    for header in headers:
        if header.place:
            sessions.setdefault(header.place, set()).add(header.session)
            numbers.setdefault(header.session, set()).add(header.place)
    for number, names in sorted(sessions.items()):
        if len(names) > 1:
            text = (
                "sessions {sessions} have the same number {number}; they are ordered by their times"
            )
            yield note(text, number=number, sessions=_listed(names))
    for name, of_session in sorted(numbers.items()):
        if len(of_session) > 1:
            text = "session {session} has the numbers {numbers}"
            yield note(text, session=name, numbers=_listed(of_session))
    last, beyond = highest(sessions)
    for number in beyond:
        text = (
            "session {session} has the number {number}, far above {last}, the highest before it; "
            "the number does not count"
        )
        yield note(text, session=min(sessions[number]), number=number, last=last)


def _listed(items: Collection[str] | Collection[int]) -> str:
    return ", ".join(map(str, sorted(items)[:MAX_LISTED]))


def _nodes(headers: Sequence[Header]) -> Iterator[Finding]:
    for header in headers:
        if nodes := header.provenance.get(NODES):
            text = (
                "in session {session} clocks of nodes differ from the login node's by more than "
                f"{BOUND} s: {{nodes}}"
            )
            yield note(text, check=header.check, session=header.session, nodes=nodes)


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _text(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds")


def _limited(found: Iterable[Finding]) -> list[Finding]:
    """The last of them, and how many more there are."""
    every = list(found)
    last = every[-MAX_FINDINGS:]
    if len(every) > len(last):
        last.append(note("{count} more like this", count=len(every) - len(last)))
    return last
