"""Which files are to be imported, and what each holds."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from siteproof.errors import UserError
from siteproof.history.foreign import formats, source
from siteproof.history.foreign.arrays import Batch

_QUARTER = 900  # seconds: whatever zone a time was taken for, its second within one stays


@dataclass
class Content:
    """What a file holds. figures: with those that failed. first, last: microseconds since 1970.

    keys: one a figure with a value, by which it is known again in another file.
    """

    figures: int = 0
    series: set[int] = field(default_factory=set)
    first: int | None = None
    last: int | None = None
    keys: set[int] = field(default_factory=set)
    refused: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    systems: set[str] = field(default_factory=set)

    def add(self, batch: Batch) -> None:
        """Add a part of the file."""
        self.figures += len(batch)
        templates = np.unique(batch.figures["template"]).tolist()
        self.series |= {batch.templates[i]["series"] for i in templates}
        if len(batch):
            first, last = int(batch.lines["time"].min()), int(batch.lines["time"].max())
            self.first = first if self.first is None else min(first, self.first)
            self.last = last if self.last is None else max(last, self.last)
        self.keys |= _keys(batch)
        self.refused += batch.refused
        self.told += batch.told
        self.systems |= batch.systems

    @property
    def first_day(self) -> str:
        """The day of its first figure, in UTC."""
        return _day(self.first)

    @property
    def last_day(self) -> str:
        """The day of its last figure, in UTC."""
        return _day(self.last)


@dataclass
class File:
    """A file to be imported. name: below the folder of imported files."""

    path: Path
    name: str
    content: Content = field(default_factory=Content)


def _day(moment: int | None) -> str:
    return f"{datetime.fromtimestamp((moment or 0) / 1e6, UTC):%Y-%m-%d}"


def find(paths: Sequence[Path]) -> tuple[list[File], list[str]]:
    """The files of ReFrame in what is given, and what is told of others. Raises UserError.

    A file keeps its name, and one within a folder its name below that. Links within folders are
    left out, as ReFrame's latest.json: they lead to files that are found by themselves.
    """
    found: dict[str, File] = {}
    told: list[str] = []
    for path in paths:
        strangers = 0
        for file in _files(path):
            try:
                is_one = bool(formats.kind(file.path))
            except UserError as error:
                if path.is_file():
                    raise
                told.append(str(error))
                continue
            if not is_one:
                strangers += 1
                continue
            if file.name in found and not _same(found[file.name].path, file.path):
                raise UserError(
                    file.path,
                    f"another {file.name} is to be imported, too",
                    hint="Import one of them at a time, from a folder above",
                )
            found.setdefault(file.name, file)
        if strangers and path.is_file():
            raise UserError(path, "neither a perflog nor a run report of ReFrame")
        if strangers:
            what = "a file that is" if strangers == 1 else f"{strangers} files that are"
            told.append(f"{path}: {what} neither a perflog nor a run report")
    return list(found.values()), told


def _files(path: Path) -> Iterator[File]:
    if not path.is_dir():
        yield File(path, path.name)
        return
    for below in sorted(path.rglob("*")):
        name = below.relative_to(path)
        if (
            below.is_file()
            and not below.is_symlink()
            and not any(part.startswith(".") for part in name.parts)
        ):
            yield File(below, str(name))


def read(path: Path, system: str, zone: str | None) -> Content:
    """What a file holds. Raises UserError."""
    content = Content()
    for batch in formats.batches(path, system=system, zone=zone):
        content.add(batch)
    return content


def digest(path: Path) -> str:
    """What is equal for equal contents only. Raises OSError, UserError."""
    with source.stream(path) as held:
        digest = hashlib.blake2b()
        while part := held.read(1 << 20):
            digest.update(part)
        return digest.hexdigest()


def _same(one: Path, other: Path) -> bool:
    return one.stat().st_size == other.stat().st_size and digest(one) == digest(other)


def _keys(batch: Batch) -> set[int]:
    """Metric, value, and the job, or where it is unknown the second within a quarter of an hour."""
    metrics = [template["metric"] for template in batch.templates]
    seconds = batch.lines["time"] // 1_000_000 % _QUARTER
    jobs = [
        str(job) if job else int(second)
        for job, second in zip(batch.lines["job"].tolist(), seconds, strict=True)
    ]
    columns = (batch.figures[name].tolist() for name in ("line", "template", "value"))
    return {
        hash((metrics[template], jobs[line], value))
        for line, template, value in zip(*columns, strict=True)
        if value == value
    }
