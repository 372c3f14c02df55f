"""A folder of pages that any web server shows: an index, and a page of each campaign.

A file of the folder has what is known of each page. A page is put in its place under a lock that is
held only meanwhile, and only where nobody has replaced it since its samples were listed. The index
is made from that file under the same lock, so none is older than a page.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from siteproof import files, installed, locks
from siteproof.errors import UserError
from siteproof.record import campaign
from siteproof.record.finding import BROKEN, RANKS, Verdict
from siteproof.record.pair_units import grouped
from siteproof.record.samples import PUBLISHED, YEARS, Header
from siteproof.record.sessions import Sessions
from siteproof.report import brief, html
from siteproof.report.figure import marked
from siteproof.report.sections import (
    Address,
    Drawn,
    Link,
    Report,
    Section,
    Table,
    anchor,
    counted,
    period,
    when,
)
from siteproof.report.summary import Summary
from siteproof.sites import Site
from siteproof.sites.site import own_checks
from siteproof.units import count

INDEX, STATE, LOCK = "index.html", ".siteproof.json", ".siteproof.lock"
NEWEST = "newest"  # the page of the newest session, where that has no campaign
DECISIONS = ("accepted", "trend", "evidence", "repairs")  # folders of what people recorded
YEAR = 365  # days of a strip
BAR = 3  # days of a bar where no other follows, as one day is less than half a pixel
WAIT, LOOK_EVERY = 60.0, 0.1  # seconds, for another operator who puts a page in its place
LEFTOVER = 3600.0  # seconds after which nobody still writes a draft
MAX_FILES = 10**6  # of a folder
LONGEST_NAME = 120  # characters of a file's name; a file system takes 255
MARK = b'<meta name="generator" content="Siteproof">'  # of each page, near its begin
HEAD = 2048  # bytes in which it is
_UNSAFE = re.compile(rb"^\.|[^A-Za-z0-9._-]")
_DRAFT = re.compile(r"\.[0-9a-f]{16}\.tmp")
_RANKS = {str(verdict): rank for verdict, rank in RANKS.items()}
_SOURCES = {".py", ".yaml", ".csv", ".css", ".js", ".j2"}


@dataclass(frozen=True)
class Page:
    """What is known of a page. It was read from a file, so nothing of it is trusted.

    campaign: empty for the newest session without one. day: of its first job. asked: selects it.
    inputs, content: digests of what it is made from, and of the page. first, last: when its jobs
    ended. place: its newest session's. removed: since when it has no samples any more.
    """

    system: str
    campaign: str
    day: str
    asked: str
    inputs: str
    first: str
    last: str
    place: int
    content: str = ""
    mark: str = ""
    counts: str = ""
    nodes: str = ""
    sentence: str = ""
    made: str = ""
    removed: str = ""

    @property
    def file(self) -> str:
        """Its name below the folder, which two campaigns never share."""
        name = f"{_safe(self.campaign)}@{_safe(self.day)}" if self.campaign else NEWEST
        return f"{_safe(self.system)}/{name}.html"

    def of(self, report: Report, text: bytes, now: datetime) -> Page:
        """The same of a page that was made."""
        shown = report.summary
        return replace(
            self,
            content=hashlib.sha256(text).hexdigest(),
            mark=shown.mark,
            counts=shown.counts,
            nodes=shown.nodes,
            sentence=shown.sentence,
            made=now.isoformat(timespec="seconds"),
        )


def _safe(name: str) -> str:
    """A name as the name of a file and a part of an address; two names never become the same."""
    data = name.encode("utf-8", "surrogateescape")
    text = _UNSAFE.sub(lambda found: b"=%02X" % found[0][0], data).decode()
    if len(text) <= LONGEST_NAME:
        return text
    return f"{text[:LONGEST_NAME]}=={hashlib.sha256(data).hexdigest()[:16]}"


# ---- which pages a system has, and what they are made from


def listed(site: Site, sessions: Sequence[Sessions]) -> list[Page]:
    """The pages of a system, the newest first. sessions: its own, or those of its members."""
    paths = {path: head for one in sessions for path, head in one.paths(lambda _: True).items()}
    own = [head for head in paths.values() if head.mode != PUBLISHED]
    newest = max(own, key=lambda head: head.order, default=None)
    shared = _shared(site, sessions)
    parts = [] if site.members else campaign.all_parts(own)
    latest = {part[0].campaign: part for part in parts}
    found = []
    for part in parts:
        name = part[0].campaign
        asked = name if latest[name] is part else campaign.address(part)
        inputs = _digest(shared, asked, _stamps(_of_part(paths, part)))
        found.append(_page(site.name, part, name, asked, inputs))
    if newest is None or site.members or not newest.campaign:
        today = f"{datetime.now(UTC):%Y-%m-%d}"  # what is too old depends on it
        found.append(_page(site.name, own, "", "", _digest(shared, today, _stamps(paths))))
    return sorted(found, key=_age, reverse=True)


def _of_part(paths: Mapping[Path, Header], part: Sequence[Header]) -> list[Path]:
    """The files of a campaign's sessions."""
    inside = {head.session for head in part}
    return [path for path, head in paths.items() if head.session in inside]


def _age(page: Page) -> tuple[int, str]:
    return page.place, page.last


def _page(system: str, jobs: Sequence[Header], name: str, asked: str, inputs: str) -> Page:
    times = sorted(job.time for job in jobs) or [""]
    place = max((job.place for job in jobs), default=0)
    day = jobs[0].time[:10] if jobs else ""
    return Page(system, name, day, asked, inputs, times[0], times[-1], place)


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _stamps(paths: Iterable[Path]) -> list[tuple[str, int, int]]:
    """Name, size and time of change of each file."""
    found, top = [], files.perflogs()
    for path in paths:
        with suppress(OSError):  # it was removed meanwhile
            at = path.lstat()
            found.append((str(path.relative_to(top)), at.st_size, at.st_ctime_ns))
    return sorted(found)


def _shared(site: Site, sessions: Sequence[Sessions]) -> str:
    """A digest of what all pages of a system depend on: criteria, decisions, and Siteproof."""
    each = [site, *site.members.values()]
    today = datetime.now(UTC).date()
    in_force = [key for one in each for key, waiver in one.waivers.items() if waiver.holds(today)]
    folders = [one.folder for one in each]
    folders += [path for one in each for path in own_checks(one.folder, one.system)]
    folders += [Path(__file__).parents[1], installed.SUITE / "checks"]  # which make pages
    decided = (files.perflogs() / one.name / kind for one in each for kind in DECISIONS)
    lost = [str(why) for one in sessions for why in (*one.left_out, *one.set_aside)]
    return _digest(
        [_contents(folder) for folder in folders],
        _stamps(path for folder in decided for path in folder.rglob("*")),
        in_force,
        lost,
    )


def _contents(folder: Path) -> list[str]:
    """The name and the digest of each file below a folder that pages depend on."""
    found = []
    for path in sorted(folder.rglob("*")):
        if path.suffix in _SOURCES and path.is_file():
            digest = hashlib.sha256(files.read_named(path, files.OUTPUT)).hexdigest()
            found.append(f"{path.relative_to(folder)} {digest}")
    return found


# ---- the folder


def refuse_foreign(folder: Path) -> None:
    """Refuse a folder with another index before anything is written in it. Raises UserError."""
    try:
        with files.opened(folder / INDEX, below=folder, limit=files.OUTPUT) as handle:
            if not _is_ours(handle):
                raise _foreign(folder / INDEX)
    except FileNotFoundError:
        return


def read(folder: Path) -> dict[str, Page]:
    """What is known of each page, by its file; nothing where that cannot be understood."""
    try:
        record = files.read_json(folder / STATE, below=folder, limit=files.OUTPUT)
        return {page.file: page for page in map(_checked, record)}
    except files.Unread:
        raise  # the file may be whole
    except (FileNotFoundError, UserError, ValueError, TypeError):
        return {}


def _checked(record: Any) -> Page:
    """Raises ValueError, TypeError."""
    page = Page(**record)
    wrong = [f for f in fields(Page) if type(getattr(page, f.name)).__name__ != f.type]
    if wrong or not page.system:  # without a system its page would not lie in the folder
        raise ValueError("not a page")
    moments = filter(None, (page.first, page.last, page.made, page.removed))
    if any(datetime.fromisoformat(moment).year not in YEARS for moment in moments):
        raise ValueError("not a time")
    return page


def is_current(folder: Path, known: Page | None, wanted: Page) -> bool:
    """Whether a page is there as it was made, from what it would be made from now."""
    if known is None or known.removed or known.inputs != wanted.inputs:
        return False
    text = _text(folder, known.file, files.REPORT)
    return hashlib.sha256(text).hexdigest() == known.content


def _text(folder: Path, name: str, limit: int) -> bytes:
    """What a file of the folder has; nothing where it cannot be read."""
    try:
        return files.read(folder / name, below=folder, limit=limit)
    except (FileNotFoundError, UserError):
        return b""


def put(folder: Path, page: Page, text: bytes, before: Page | None) -> bool:
    """Put a page in its place; false if somebody has since `before` was known.

    Raises UserError for a foreign file in its place, OSError if it cannot be written.
    """
    with _alone(folder):
        known = read(folder)
        if known.get(page.file) != before:
            return False
        _write(folder / page.file, text, folder)
        _save(folder, {**known, page.file: page})
    return True


def settle(folder: Path, system: str, before: Mapping[str, Page], now: Collection[str]) -> None:
    """Name the pages without samples in the index, and make the index if it is not as it should be.

    before: what was known before the samples were listed. now: the files of the pages listed.
    """
    known = read(folder)
    index = _text(folder, INDEX, files.OUTPUT)
    if not _removed(known, system, before, now) and index == _index(known.values()):
        return
    with _alone(folder):
        known = read(folder)
        moment = datetime.now(UTC).isoformat(timespec="seconds")
        for page in _removed(known, system, before, now):
            if page.campaign:
                known[page.file] = replace(page, removed=moment)
            else:  # newer sessions have a campaign, and pages of their own
                del known[page.file]
                with suppress(UserError):  # a file of somebody else stays
                    files.remove(folder / page.file, below=folder, may_remove=_is_ours)
        _save(folder, known)


def _removed(
    known: Mapping[str, Page], system: str, before: Mapping[str, Page], now: Collection[str]
) -> list[Page]:
    """The pages that were known, and have no samples any more."""
    present = [page for page in known.values() if page.system == system and not page.removed]
    return [page for page in present if page.file not in now and before.get(page.file) == page]


def _save(folder: Path, pages: Mapping[str, Page]) -> None:
    record = json.dumps([asdict(page) for page in pages.values()], indent=0)
    files.write(folder / STATE, record.encode(), below=folder)
    _write(folder / INDEX, _index(pages.values()), folder)
    for place in {folder, *((folder / name).parent for name in pages)}:
        with suppress(OSError, UserError):
            _tidy(place, folder)


def _tidy(place: Path, folder: Path) -> None:
    """Remove the drafts of processes that were killed. Raises OSError, UserError."""
    last = (folder / INDEX).stat().st_mtime - LEFTOVER
    for name in filter(_DRAFT.fullmatch, files.names(place, below=folder, most=MAX_FILES)):
        with suppress(OSError, UserError):
            files.remove(
                place / name,
                below=folder,
                may_remove=lambda handle: os.fstat(handle).st_mtime < last,
            )


def _write(path: Path, text: bytes, folder: Path) -> None:
    try:
        files.write(path, text, below=folder, may_replace=_is_ours)
    except UserError as error:
        raise _foreign(path) from error


def _foreign(path: Path) -> UserError:
    hint = "Name another folder, or move it away"
    return UserError(path, "is not of 'siteproof report --site'", hint=hint)


def _is_ours(handle: int) -> bool:
    return MARK in os.pread(handle, HEAD, 0)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One operator at a time. Raises UserError."""
    deadline = time.monotonic() + WAIT
    while True:
        try:
            lock = locks.take(folder / LOCK)
            break
        except locks.Taken:
            if time.monotonic() >= deadline:
                raise
        time.sleep(LOOK_EVERY)
    with lock:
        yield


# ---- the index


def _index(pages: Iterable[Page]) -> bytes:
    """The index; of equal pages it is equal."""
    known = sorted(pages, key=_age, reverse=True)
    systems = dict(sorted(grouped((page.system, page) for page in known).items()))
    newest = [_newest(found) for found in systems.values()]
    changed = max((max(page.made, page.removed) for page in known), default="")
    moment = datetime.fromisoformat(changed) if changed else datetime.fromtimestamp(0, UTC)
    marks = sorted((page.mark for page in newest), key=_rank)
    summary = Summary(
        "The newest verdict of each system",
        f"changed {when(moment)}",
        f"{count(len(systems), 'system')}, {count(len(known), 'page')}",
        "",
        marks[0] if marks else brief.UNDECIDED,
        counted((mark, marks.count(mark)) for mark in dict.fromkeys(marks)),
        answers=[_overview(systems)],
    )
    report = Report("Siteproof", summary, [_section(*one) for one in systems.items()])
    return html.page(report, moment).encode("utf-8", "backslashreplace")


def _rank(mark: str) -> int:
    """Its place in the order of severity; what is no verdict, such as UNDECIDED, comes last."""
    return _RANKS.get(mark, len(_RANKS))


def _newest(pages: Sequence[Page]) -> Page:
    return next((page for page in pages if not page.removed), pages[0])


def _overview(systems: Mapping[str, Sequence[Page]]) -> Table:
    """The newest page of each system, and a strip of a year to the newest day of all."""
    last = max((day for found in systems.values() for day in _days(found)), default=None)
    rows = []
    for system, found in systems.items():
        newest = _newest(found)
        place = Link([(system, f"section-{anchor('system', system)}")])
        strip = _strip(found, last) if last else ""
        rows.append((place, newest.mark, _linked(newest), _measured(newest), strip))
    note = (
        f"The strip of {YEAR} days has a bar for each day to {last} on which a campaign ended: low "
        "for PASS, high for FAIL and ERROR, between them for all else."
    )
    columns = ("system", "verdict", "newest", "measured", f"{YEAR} days")
    return Table(columns, rows, note if last else "", title="Systems")


def _section(system: str, pages: Sequence[Page]) -> Section:
    """A row a page, the newest first."""
    newest = _newest(pages)
    columns = ("campaign", "verdict", "criteria", "nodes", "measured", "made", "remark")
    rows = [
        (
            _linked(page),
            page.mark,
            page.counts,
            page.nodes,
            _measured(page),
            when(page.made) if page.made else "",
            f"no samples any more, noticed {when(page.removed)}" if page.removed else "",
        )
        for page in pages
    ]
    lead = f"{_name(newest)}: {newest.mark}. {newest.sentence}"
    return Section(anchor("system", system), system, lead, [Table(columns, rows)])


def _linked(page: Page) -> Address:
    return Address(page.file, _name(page))


def _name(page: Page) -> str:
    return page.campaign or ("newest session" if page.last else "no session yet")


def _measured(page: Page) -> str:
    return period(list(filter(None, (page.first, page.last))))


def _days(pages: Iterable[Page]) -> dict[date, str]:
    """How each day is drawn on which a campaign ended: as the most severe verdict of it."""
    found: dict[date, str] = {}
    for page in sorted(pages, key=lambda page: -_rank(page.mark)):
        if page.last and not page.removed:
            found[datetime.fromisoformat(page.last).date()] = _look(page.mark)
    return found


def _look(mark: str) -> str:
    if mark == Verdict.PASS:
        return "ok"
    return "bad" if mark in BROKEN else "slow"


def _strip(pages: Sequence[Page], last: date) -> Drawn:
    days = _days(pages)
    looks = []
    for ago in reversed(range(1 - BAR, YEAR + 1 - BAR)):
        near = (last - timedelta(days=ago + n) for n in range(BAR))
        looks.append(next((days[day] for day in near if day in days), ""))
    marks = [page.mark for page in pages]
    words = counted((mark, marks.count(mark)) for mark in _RANKS)
    return Drawn(marked.year(f"{pages[0].system}: {words}", looks), words)
