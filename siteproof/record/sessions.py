"""The sessions of a system: the headers of all jobs, and the samples of those that are needed.

After years there are millions of samples, and a verdict needs some thousand of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from siteproof import files
from siteproof.errors import UserError, UserErrors
from siteproof.record import clocks, samples, session_numbers, set_aside
from siteproof.record.finding import Finding
from siteproof.record.samples import Header, Order, Sample
from siteproof.record.set_aside import SetAside

Read = TypeVar("Read")


class Sessions:
    """All jobs of a system below perflogs, in the order of their sessions.

    A file that cannot be read is an error for everything that needs its session, and for
    everything else if it may be of the newest session. Otherwise it is left out, and `left_out`
    names it. What no trusted user can have written (a link, a device, a file of another user) is
    always left out, as nobody else may stop an answer.
    """

    def __init__(self, perflogs: Path, system: str) -> None:
        self.perflogs, self.system = perflogs, system
        self._read: dict[Path, list[Sample]] = {}
        self._broken: dict[Path, UserError] = {}
        self._written: list[Header] = []
        self._leapt: dict[Path, Header] = {}
        self._claimed: dict[Path, Order] = {}  # in the header of a file that is in the wrong place

    @cached_property
    def _files(self) -> list[tuple[Path, Header]]:
        read = self._of_each(samples.files(self.perflogs, self.system), samples.read_header)
        found = list(self._of_their_names(read))
        self._written = [header for _, header in found]
        found = self._without_leaps(found)
        begin: dict[str, Order] = {}
        for _, header in found:
            begin[header.session] = min(header.order, begin.get(header.session, header.order))
        _stop_at(self._maybe_newest(begin))
        return sorted(found, key=lambda one: (begin[one[1].session], one[0].name))

    def _without_leaps(self, found: list[tuple[Path, Header]]) -> list[tuple[Path, Header]]:
        """A number that is far too high does not count."""
        beyond = set(session_numbers.highest(header.place for _, header in found)[1])
        self._leapt = {p: replace(h, place=0) for p, h in found if h.place in beyond}
        return [(path, self._leapt.get(path, header)) for path, header in found]

    def _of_their_names(self, read: Iterable[tuple[Path, Header]]) -> Iterator[tuple[Path, Header]]:
        """Those whose header fits their path; the others are broken."""
        for path, header in read:
            try:
                samples.must_lie_at(path, header)
                yield path, header
            except UserError as error:
                self._broken[path] = error
                if header.system == self.system:
                    self._claimed[path] = header.order

    def _maybe_newest(self, begin: Mapping[str, Order]) -> Iterator[UserError]:
        """The errors of broken files that may be of the newest session."""
        if not self._broken:
            return
        places = session_numbers.known(self.perflogs, self.system)
        newest = max(begin.values(), default=(0, "", ""))
        for path, error in self._ours():
            name = _session(path)
            known, place = begin.get(name), places.get(name, 0)
            if known is not None:
                is_older = known < newest
            elif place or (newest[0] and places):
                is_older = place < newest[0]
            else:
                is_older = name < newest[2]
            if not is_older or self._claimed.get(path, newest) > newest:
                yield error

    @property
    def headers(self) -> list[Header]:
        """The header of each job. Raises UserErrors naming each broken file."""
        return [header for _, header in self._files]

    @property
    def left_out(self) -> list[UserError]:
        """The files that were left out, each with the reason."""
        return list(self._broken.values())

    @property
    def clock_findings(self) -> list[Finding]:
        """What is wrong with the clocks and numbers of the sessions."""
        return clocks.findings(self._written) if self._files else []

    @property
    def refused(self) -> bool:
        """Whether a file was left out that may be a result."""
        return any(isinstance(error, files.Refused) for error in self._broken.values())

    @property
    def open_to_all(self) -> list[Path]:
        """The folders of the system's samples to which everybody may write."""
        return files.open_to_all(self.perflogs, self.system)

    @cached_property
    def set_aside(self) -> list[SetAside]:
        """The stage directories that could not be collected, each with the reason."""
        return set_aside.of_system(self.perflogs, self.system)

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
        read = self._read if nodes is None else self._read.copy()  # what is not whole is not kept
        for path, found in self._of_each(unread, lambda path: samples.read(path, nodes)):
            read[path] = self._without_number(path, found)
        if needed:
            sessions = {_session(path) for path in paths}
            _stop_at(error for path, error in self._ours() if _session(path) in sessions)
        return [sample for path in paths for sample in read.get(path, ())]

    def _without_number(self, path: Path, found: list[Sample]) -> list[Sample]:
        """The samples of a file, whose number may not count."""
        header = self._leapt.get(path)
        return [replace(sample, header=header) for sample in found] if header else found

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
        """The broken files that a trusted user may have written."""
        for path, error in self._broken.items():
            if not isinstance(error, files.Refused):
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


def _session(path: Path) -> str:
    return path.name.partition(".")[0]


def _stop_at(errors: Iterable[UserError]) -> None:
    if broken := list(errors):
        raise UserErrors(broken)
