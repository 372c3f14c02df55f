"""Clocks and session numbers that cannot be right, and how long ago a job was measured.

Neither changes the order of sessions: a session's place does not depend on clocks. So a session
cannot be older than the begin of one with an earlier place, and cannot be of the future. If a clock
shows such a time, the true time is only known to be between two bounds, and each question uses the
less favourable bound.

The order of sessions: each takes a number when it begins to measure, independent of clocks.

`perflogs/<system>/.sessions/NNNNNN` holds the name of the session that has the number.
"""

from __future__ import annotations

import errno
import secrets
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from siteproof import files, locks, nodesets
from siteproof.errors import UserError
from siteproof.record import samples
from siteproof.record.finding import Finding, note
from siteproof.record.pair_units import grouped
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
        found = Ages((), max((end for end in ends if end), default=self.now))
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
    ordered = sorted(headers, key=lambda header: header.order)
    by_session = grouped((header.session, header) for header in ordered)
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
            listed = ", ".join(sorted(names)[:MAX_LISTED])
            yield note(text, number=number, sessions=listed)
    for name, of_session in sorted(numbers.items()):
        if len(of_session) > 1:
            listed = ", ".join(map(str, sorted(of_session)[:MAX_LISTED]))
            yield note("session {session} has the numbers {numbers}", session=name, numbers=listed)
    last, beyond = highest(sessions)
    for number in beyond:
        text = (
            "session {session} has the number {number}, far above {last}, the highest before it; "
            "the number does not count"
        )
        yield note(text, session=min(sessions[number]), number=number, last=last)


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


FOLDER = ".sessions"
LEAP = 10_000  # so many sessions in a row cannot all have lost their numbers and samples
LONGEST_NAME = 200  # bytes of a session's name


class TooHigh(NamedTuple):
    """A file of a number that is far above the last session's, and does not count."""

    file: Path
    last: int


def new_name(now: datetime) -> str:
    """A session's name: unique, and in the order of time even within a second."""
    return f"{now:%Y%m%dT%H%M%SZ}-{now.microsecond:05x}{secrets.token_hex(1)}"


def take(
    perflogs: Path, system: str, session: str, *, continued: bool = False
) -> tuple[int, TooHigh | None]:
    """The next number, or the one that a continued session has; and the first that is too high.

    Raises UserError where none can be taken.
    """
    folder = perflogs / system / FOLDER
    if folder.parent.is_symlink():  # whoever makes a link must not choose where we write
        raise UserError(folder.parent, "no number for this session: it is a link", "a folder")
    try:
        locks.make_folder(folder)
        taken = locks.numbers(folder)
        if continued and session in (has := _of_sessions(folder, taken)):
            return has[session], None
        last, beyond = highest([*taken, *_of_samples(perflogs, system)])
        too_high = TooHigh(folder / locks.name_of(beyond[0]), last) if beyond else None
        for number in range(last + 1, samples.LAST_PLACE):
            if _create(folder / locks.name_of(number), session):
                return number, too_high
    except OSError as error:
        raise UserError(
            folder,
            f"no number for this session: {error.strerror}",
            hint="Give write access to all who run checks",
        ) from None
    raise UserError(folder, "no number is left for a session", f"1 to {samples.LAST_PLACE - 1}")


def _create(path: Path, session: str) -> bool:
    """On a full disk the file is left empty: there may be space later, when samples are written."""
    try:
        return locks.create(path, f"{session}\n".encode())
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        return locks.create(path, b"")


def highest(numbers: Iterable[int]) -> tuple[int, list[int]]:
    """The last number before a gap that is too large, and the numbers after the gap."""
    last, found = 0, sorted(set(numbers))
    for at, number in enumerate(found):
        if number - last > LEAP:
            return last, found[at:]
        last = number
    return last, []


def known(perflogs: Path, system: str) -> dict[str, int]:
    """The number of each session of a system, as far as the files in their folder record it."""
    folder = perflogs / system / FOLDER
    try:
        return _of_sessions(folder, locks.numbers(folder))
    except OSError:
        return {}


def _of_sessions(folder: Path, numbers: Iterable[int]) -> dict[str, int]:
    """The number of each session; files that cannot be read are skipped."""
    found: dict[str, int] = {}
    for number in sorted(numbers, reverse=True):
        path = folder / locks.name_of(number)
        try:
            text = files.read_text(path, below=folder.parents[1], limit=LONGEST_NAME)
        except (UserError, FileNotFoundError):
            continue
        found[text.removesuffix("\n")] = number
    return found


def _of_samples(perflogs: Path, system: str) -> Iterable[int]:
    """The numbers in samples, as files of numbers may be lost. One file of a session is enough."""
    first = {path.name.partition(".")[0]: path for path in samples.files(perflogs, system)}
    for path in first.values():
        try:
            yield samples.read_header(path).place
        except UserError:
            continue  # reported when its samples are read
