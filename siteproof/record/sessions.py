"""The sessions of a system: what each job was at once, its samples when they are asked for.

After years there are millions of samples, and a verdict speaks of some thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from siteproof.errors import UserError, UserErrors
from siteproof.record import samples
from siteproof.record.samples import Header, Sample

Read = TypeVar("Read")


class Sessions:
    """All jobs of a system below perflogs, in the order of their sessions.

    A file that cannot be read stops what speaks of its session, and what it could be the newest
    of; years later it is left out, and told in `left_out`.
    """

    def __init__(self, perflogs: Path, system: str) -> None:
        self.perflogs, self.system = perflogs, system
        self._read: dict[Path, list[Sample]] = {}
        self._broken: dict[Path, UserError] = {}

    @cached_property
    def _files(self) -> list[tuple[Path, Header]]:
        found = self._of_each(samples.files(self.perflogs, self.system), samples.read_header)
        newest = max((_session(path) for path, _ in found), default="")
        _stop_at(error for path, error in self._broken.items() if _session(path) >= newest)
        return found

    @property
    def headers(self) -> list[Header]:
        """What the samples of each job share. Raises UserErrors naming each broken file."""
        return [header for _, header in self._files]

    @property
    def left_out(self) -> list[str]:
        """The files that were left out, each with the reason."""
        return [str(error) for error in self._broken.values()]

    def of(self, wanted: Callable[[Header], bool], *, needed: bool = True) -> list[Sample]:
        """The samples of some jobs, the oldest session first.

        needed: they are what is asked for, so that a broken file among their sessions is no
        matter of leaving it out. Raises UserErrors, then, naming each.
        """
        paths = [path for path, header in self._files if wanted(header)]
        self._read |= self._of_each(
            (p for p in paths if p not in self._read and p not in self._broken), samples.read
        )
        if needed and self._broken:
            asked = {_session(path) for path in paths}
            _stop_at(error for path, error in self._broken.items() if _session(path) in asked)
        return [sample for path in paths for sample in self._read.get(path, ())]

    def of_job(self, job: Header) -> list[Sample]:
        """The samples of one of `headers`."""
        return self.of(lambda header: header is job)

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
