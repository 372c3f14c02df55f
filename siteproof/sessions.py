"""The sessions of a system: what each job was at once, its samples when they are asked for.

After years there are millions of samples, and a verdict speaks of some thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from siteproof import samples
from siteproof.errors import UserError, UserErrors
from siteproof.samples import Header, Sample

Read = TypeVar("Read")


class Sessions:
    """All jobs of a system below perflogs, in the order of their sessions."""

    def __init__(self, perflogs: Path, system: str) -> None:
        self.perflogs, self.system = perflogs, system
        self._read: dict[Path, list[Sample]] = {}

    @cached_property
    def _files(self) -> list[tuple[Path, Header]]:
        return _of_each(samples.files(self.perflogs, self.system), samples.read_header)

    @property
    def headers(self) -> list[Header]:
        """What the samples of each job share. Raises UserErrors naming each broken file."""
        return [header for _, header in self._files]

    def of(self, wanted: Callable[[Header], bool]) -> list[Sample]:
        """The samples of some jobs, the oldest session first. Raises UserErrors."""
        paths = [path for path, header in self._files if wanted(header)]
        self._read |= _of_each((p for p in paths if p not in self._read), samples.read)
        return [sample for path in paths for sample in self._read[path]]

    def of_job(self, job: Header) -> list[Sample]:
        """The samples of one of `headers`."""
        return self.of(lambda header: header is job)


def _of_each(paths: Iterable[Path], read: Callable[[Path], Read]) -> list[tuple[Path, Read]]:
    """What is read from each file. Raises UserErrors naming each broken one."""
    found, broken = [], []
    for path in paths:
        try:
            found.append((path, read(path)))
        except UserError as error:
            broken.append(error)
    if broken:
        raise UserErrors(broken)
    return found
