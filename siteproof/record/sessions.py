"""The sessions of a system: the headers of all jobs, and the samples of those that are needed.

After years there are millions of samples, and a verdict needs some thousand of them.

Stage directories that could not be collected: a small file for each, which verdicts read.

The files are in `perflogs/.set-aside/` until the stage directory is collected. If somebody discards
it, the file stays and records that; so it does for a file of samples of which something is lost.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import TypeVar

from siteproof import files
from siteproof.errors import UserError, UserErrors, harmless
from siteproof.record import clocks, samples
from siteproof.record.finding import Finding
from siteproof.record.samples import UNREAD, Header, Order, Sample

Read = TypeVar("Read")
Check = Callable[[list[Sample]], list[Sample]]


class Sessions:
    """All jobs of a system below perflogs, in the order of their sessions.

    A file of which a line cannot be read is an error for everything that needs it. Otherwise it
    is left out, and `left_out` names it. One whose header cannot be read is one of `unread`:
    nobody knows what it would have answered. What no trusted user can have written (a link, a
    device, a file of another user) is always left out, as nobody else may stop an answer.
    checked: what becomes of the samples of each job.
    """

    def __init__(self, perflogs: Path, system: str, checked: Check = list) -> None:
        self.perflogs, self.system, self._checked = perflogs, system, checked
        self._read: dict[Path, list[Sample]] = {}
        self._broken: dict[Path, UserError] = {}
        self._written: list[Header] = []
        self._changed: dict[Path, Header] = {}  # of a file whose header does not count as written
        self._claimed: dict[Path, Header] = {}  # of a file that is in the wrong place

    @cached_property
    def _files(self) -> list[tuple[Path, Header]]:
        read = self._of_each(samples.files(self.perflogs, self.system), samples.read_header)
        found = list(self._of_their_names(read))
        self._written = [header for _, header in found]
        found = self._as_they_count(found)
        begin: dict[str, Order] = {}
        for _, header in found:
            begin[header.session] = min(header.order, begin.get(header.session, header.order))
        return sorted(found, key=lambda one: (begin[one[1].session], one[0].name))

    def _as_they_count(self, found: list[tuple[Path, Header]]) -> list[tuple[Path, Header]]:
        """A number that is far too high does not count, nor what somebody has given up."""
        beyond = set(clocks.highest(header.place for _, header in found)[1])
        for path, header in found:
            if header.place in beyond:
                self._changed[path] = replace(header, place=0)
            if self._discarded(path):
                self._changed[path] = replace(self._changed.get(path, header), expected="")
        return [(path, self._changed.get(path, header)) for path, header in found]

    def _of_their_names(self, read: Iterable[tuple[Path, Header]]) -> Iterator[tuple[Path, Header]]:
        """Those whose header fits their path; the others are broken."""
        for path, header in read:
            try:
                samples.must_lie_at(path, header)
                yield path, header
            except UserError as error:
                self._broken[path] = error
                if header.system == self.system:
                    self._claimed[path] = header

    @cached_property
    def unread(self) -> list[Header]:
        """What is known of the jobs whose files have no header that can be read.

        Session, check and job by the name of the file; its place by its session, or by its name
        among those of other sessions.
        """
        known = {samples.path_of(self.perflogs, header) for header in self.headers}
        found = []
        for path, _ in self._ours():
            if path in known or not _is_named_as_a_job(path):
                continue
            claimed = self._claimed.get(path)
            if claimed is None:
                found.append(self._by_name(path))
            elif samples.path_of(self.perflogs, claimed) not in known:  # it was moved, not copied
                found.append(replace(claimed, provenance={UNREAD: path.name}))
        return found

    def _by_name(self, path: Path) -> Header:
        session, check, job = path.name.removesuffix(".jsonl").split(".", 2)
        before = [header for header in self.headers if header.session <= session]
        last = max(before, key=lambda header: (header.session, header.order), default=None)
        place = self._numbers.get(session, 0)
        moment = datetime.fromtimestamp(samples.began(session) or 0, UTC)
        if last:
            moment = max(moment, datetime.fromisoformat(last.time) + timedelta(seconds=1))
        return Header(
            session,
            self.system,
            path.parent.name,
            "",
            check,
            job,
            moment.isoformat(timespec="seconds"),
            provenance={UNREAD: path.name},
            place=place or (last.place if last else 0),
        )

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return clocks.known(self.perflogs, self.system)

    @property
    def headers(self) -> list[Header]:
        """The header of each job that has one."""
        return [header for _, header in self._files]

    @property
    def left_out(self) -> list[UserError]:
        """The files that were left out, each with the reason."""
        found = []
        for path, error in self._broken.items():
            done = self._discarded(path)
            what = f"{error.what}; discarded by {done.by}: {done.reason}" if done else ""
            found.append(UserError(error.where, what) if done else error)
        return found

    def _discarded(self, path: Path) -> SetAside | None:
        """How somebody gave up what is lost of a file."""
        return self._all_discarded.get(key(path, self.perflogs))

    @cached_property
    def _all_discarded(self) -> dict[str, SetAside]:
        return discarded(self.perflogs)

    @property
    def clock_findings(self) -> list[Finding]:
        """What is wrong with the clocks and numbers of the sessions."""
        return clocks.findings(self._written) if self._files else []

    @property
    def refused(self) -> bool:
        """Whether a file was left out that may be a result, of nobody knows what."""
        return any(
            isinstance(error, files.Refused) or not _is_named_as_a_job(path)
            for path, error in self._broken.items()
            if not self._discarded(path)
        )

    @property
    def open_to_all(self) -> list[Path]:
        """The folders of the system's samples to which everybody may write."""
        return files.open_to_all(self.perflogs, self.system)

    @cached_property
    def set_aside(self) -> list[SetAside]:
        """The stage directories that could not be collected, each with the reason."""
        return of_system(self.perflogs, self.system)

    def of(
        self,
        wanted: Callable[[Header], bool],
        *,
        needed: bool = True,
        nodes: Collection[str] | None = None,
    ) -> list[Sample]:
        """The samples of some jobs, the oldest session first.

        needed: a broken file of one of their sessions is an error, and not left out.
        nodes: whose samples are enough, where that saves reading; there may be others.
        Raises UserErrors, then, naming each.
        """
        return self._samples(list(self.paths(wanted)), nodes, needed=needed)

    def _samples(
        self, paths: Sequence[Path], nodes: Collection[str] | None, *, needed: bool
    ) -> list[Sample]:
        unread = [path for path in paths if path not in self._read and path not in self._broken]
        read = dict(self._of_each(unread, partial(self._read_one, nodes=nodes)))
        for path, found in read.items():
            if nodes is None or any(sample.status == "ok" for sample in found):
                self._read[path] = found  # it is whole
        if needed:
            wanted = set(paths)
            if broken := [error for path, error in self._ours() if path in wanted]:
                raise UserErrors(broken)
        return [s for path in paths for s in self._read.get(path, read.get(path, []))]

    def _read_one(self, path: Path, nodes: Collection[str] | None) -> list[Sample]:
        with_lost = not self._discarded(path)
        found = samples.read(path, nodes, with_lost=with_lost)
        if nodes is not None and any(sample.status == "ok" for sample in found):
            found = samples.read(path, with_lost=with_lost)  # a value is checked among all of a job
        if header := self._changed.get(path):  # as it counts
            found = [replace(sample, header=header) for sample in found]
        return self._checked(found)

    def paths(self, wanted: Callable[[Header], bool]) -> dict[Path, Header]:
        """The files of some jobs, the oldest session first."""
        return {path: header for path, header in self._files if wanted(header)}

    def of_job(self, job: Header, nodes: Collection[str] | None = None) -> list[Sample]:
        """The samples of one of `headers`. nodes: as of `of`."""
        return self._samples([self._paths[id(job)]], nodes, needed=True)

    @cached_property
    def _paths(self) -> dict[int, Path]:
        """The file of each of `headers`, by its identity: equal headers are no rarity."""
        return {id(header): path for path, header in self._files}

    def _ours(self) -> Iterator[tuple[Path, UserError]]:
        """The broken files that a trusted user may have written, and nobody has discarded."""
        for path, error in self._broken.items():
            if not isinstance(error, files.Refused) and not self._discarded(path):
                yield path, error

    def _of_each(
        self, paths: Iterable[Path], read: Callable[[Path], Read]
    ) -> list[tuple[Path, Read]]:
        found = []
        for path in paths:
            try:
                found.append((path, read(path)))
            except UserError as error:
                self._broken[path] = error
        return found


def _is_named_as_a_job(path: Path) -> bool:
    """Whether it is named SESSION.CHECK.JOB.jsonl."""
    return path.name.count(".") > 2 and path.name.isprintable()


FOLDER = ".set-aside"
MAX_FILES = 10_000
LARGEST = 64 * 1024  # bytes
LONGEST = 500  # characters of a reason


@dataclass(frozen=True)
class SetAside:
    """One stage directory, or file of samples, by its path in the data folder.

    system: empty if it is not known. since, discarded: UTC; `discarded` is empty until somebody
    (by) discards it, for a reason.
    """

    stage: str
    system: str
    why: str
    since: str
    discarded: str = ""
    by: str = ""
    reason: str = ""

    def __str__(self) -> str:
        since = f" (since {self.since[:10]})" if self.since else ""
        return harmless(f"{self.stage}: {self.why}{since}")


def key(stage: Path, perflogs: Path) -> str:
    """The name of the file for a path, which does not depend on the data folder."""
    return hashlib.sha256(_inner(stage, perflogs).encode("utf-8", "replace")).hexdigest()[:32]


def note(perflogs: Path, stage: Path, why: UserError, system: str = "") -> None:
    """Set a stage directory aside; no error if that cannot be written, as the caller warns, too."""
    known = _read(perflogs, key(stage, perflogs))
    text = " ".join(why.message.split())
    since = known.since if known else _now()
    new = SetAside(_inner(stage, perflogs), system, harmless(text)[:LONGEST], since)
    if new != known:
        with suppress(OSError, UserError):
            _write(perflogs, stage, new)


def clear(perflogs: Path, stage: Path) -> None:
    """Remove the file of a stage directory that has been collected."""
    with suppress(OSError):
        (perflogs / FOLDER / f"{key(stage, perflogs)}.json").unlink()


def discard(perflogs: Path, path: Path, by: str, reason: str, why: str = "") -> SetAside:
    """Mark a path as discarded; nothing is deleted. Raises OSError and UserError.

    why: what is wrong with it, where that is not recorded yet.
    """
    known = _read(perflogs, key(path, perflogs))
    old = known or SetAside(_inner(path, perflogs), "", harmless(why)[:LONGEST], _now())
    by, reason = harmless(by)[:LONGEST], harmless(reason)[:LONGEST]
    new = replace(old, discarded=_now(), by=by, reason=reason)
    _write(perflogs, path, new)
    return new


def discarded(perflogs: Path) -> dict[str, SetAside]:
    """What was discarded, by its key."""
    return {name: one for name, one in _all(perflogs) if one.discarded}


def of_system(perflogs: Path, system: str) -> list[SetAside]:
    """Those that are not discarded, and are or may be of this system."""
    return [one for _, one in _all(perflogs) if not one.discarded and one.system in ("", system)]


def below(perflogs: Path, folder: Path) -> list[Path]:
    """The stage directories that are set aside at or below a folder."""
    data = perflogs.parent
    stages = [data / one.stage for _, one in _all(perflogs) if not one.discarded]
    return [stage for stage in stages if stage == folder or folder in stage.parents]


def _all(perflogs: Path) -> Iterator[tuple[str, SetAside]]:
    try:
        names = files.names(perflogs / FOLDER, below=perflogs, most=MAX_FILES)
    except FileNotFoundError:
        return
    except UserError as error:  # too many files, or not a folder of a trusted user
        yield (
            "",
            SetAside(f"perflogs/{FOLDER}", "", f"what is set aside is not known: {error.what}", ""),
        )
        return
    for name in names:
        if name.endswith(".json") and not name.startswith("."):
            kept = _read(perflogs, name.removesuffix(".json"))
            if kept:
                yield name.removesuffix(".json"), kept


def _read(perflogs: Path, name: str) -> SetAside | None:
    path = perflogs / FOLDER / f"{name}.json"
    try:
        record = files.read_json(path, below=perflogs, limit=LARGEST)
        texts = all(isinstance(record[known], str) for known in SetAside.__dataclass_fields__)
        return SetAside(**record) if texts else _broken(path)
    except FileNotFoundError:
        return None
    except (UserError, TypeError, KeyError):
        return _broken(path)


def _broken(path: Path) -> SetAside:
    """A file with another content is reported, too."""
    return SetAside(f"perflogs/{FOLDER}/{path.name}", "", "the note itself cannot be read", "")


def _write(perflogs: Path, stage: Path, new: SetAside) -> None:
    path = perflogs / FOLDER / f"{key(stage, perflogs)}.json"
    files.write(path, json.dumps(asdict(new), indent=1).encode(), below=perflogs)


def _inner(stage: Path, perflogs: Path) -> str:
    data = perflogs.parent
    return str(stage.relative_to(data) if stage.is_relative_to(data) else stage)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
