"""The files to be imported, and what each holds."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from siteproof.errors import UserError
from siteproof.history.foreign import figures, formats, source
from siteproof.history.foreign.import_options import DEFAULT, Options
from siteproof.units import count

_PERIOD = 900  # s; the second within it does not depend on the time zone


@dataclass(frozen=True)
class Content:
    """What a file holds. figures: how many, with failed ones. first_day, last_day: in UTC.

    keys: one for each value, by which the same value is recognised in another file: metric, value
    and job; without a job the second within a quarter of an hour.
    """

    file: figures.File
    figures: int = 0
    first_day: str = ""
    last_day: str = ""
    series: frozenset[int] = frozenset()
    keys: frozenset[int] = frozenset()

    @property
    def refused(self) -> list[str]:
        """The lines that cannot be read, with the reasons."""
        return self.file.refused_lines()


@dataclass
class Candidate:
    """A file to be imported. name: below the folder of imported files."""

    path: Path
    name: str
    content: Content = field(init=False)


def find(paths: Sequence[Path], given: Options) -> tuple[list[Candidate], list[UserError]]:
    """The files of ReFrame, and why others are skipped. Raises UserError.

    A file keeps its name, and one within a folder its name below that. Links within folders are
    skipped, such as ReFrame's latest.json: the files that they lead to are found by themselves.
    """
    found: dict[str, Candidate] = {}
    skipped: list[UserError] = []
    for path in paths:
        for file in _in_folder(path, given, skipped) if path.is_dir() else [_named(path, given)]:
            known = found.setdefault(file.name, file)
            if not same(known.path, file.path):
                raise UserError(
                    file.path,
                    f"another {file.name} is to be imported, too",
                    hint="Import one of them at a time, from a folder above",
                )
    return list(found.values()), skipped


def _named(path: Path, given: Options) -> Candidate:
    if not formats.kind(path, given):
        raise UserError(path, *formats.NEITHER)
    return Candidate(path, path.name)


def _in_folder(folder: Path, given: Options, skipped: list[UserError]) -> Iterator[Candidate]:
    others = 0
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        is_hidden = any(part.startswith(".") for part in name.parts)
        if is_hidden or path.is_symlink() or not path.is_file():
            continue
        try:
            is_of_reframe = bool(formats.kind(path, given))
        except UserError as error:
            skipped.append(error)
            continue
        if is_of_reframe:
            yield Candidate(path, str(name))
        else:
            others += 1
    if others:
        what, allowed = formats.NEITHER
        skipped.append(UserError(folder, f"skipped {count(others, 'other file')}: {what}", allowed))


def read(path: Path, system: str, given: Options = DEFAULT) -> Content:
    """What a file holds. Raises UserError if it cannot be read."""
    file = figures.File(path, path.name, site=system, options=given)
    total, series, keys, days = 0, set[int](), set[int](), set[str]()
    for run, samples, _ in formats.rows_of(file):
        days.add(f"{run['time']:%Y-%m-%d}")
        total += len(samples)
        series |= {sample["series"] for sample in samples}
        moment = run["job"] or run["time"].replace(microsecond=0).timestamp() % _PERIOD
        keys |= {hash((s["metric"], s["value"], moment)) for s in samples if s["digits"]}
    first, last = min(days, default=""), max(days, default="")
    return Content(file, total, first, last, frozenset(series), frozenset(keys))


def digest(path: Path) -> str:
    """A hash of the content. Raises OSError, UserError."""
    with source.stream(path) as stream:
        return hashlib.file_digest(stream, hashlib.blake2b).hexdigest()


def same(one: Path, other: Path) -> bool:
    """Whether two files have the same content. Raises OSError, UserError."""
    if one == other:
        return True
    return one.stat().st_size == other.stat().st_size and digest(one) == digest(other)
