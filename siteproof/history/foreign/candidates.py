"""The files to be imported, and what each holds."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from siteproof.errors import UserError
from siteproof.history import connect, tables
from siteproof.history.foreign import formats, source
from siteproof.history.foreign.chosen_lines import Only
from siteproof.history.foreign.figures import Note
from siteproof.history.views import RUN_SHIFT
from siteproof.units import count

_SPANS = f"""
SELECT run >> {RUN_SHIFT}, sum(samples)::BIGINT, strftime(min(time), '%Y-%m-%d'),
    strftime(max(time), '%Y-%m-%d')
FROM new_runs GROUP BY 1"""
_SERIES = f"SELECT DISTINCT run >> {RUN_SHIFT}, series FROM new_samples"
# Metric, value, and the job; without a job the second within a quarter of an hour, which does not
# depend on the time zone.
_KEYS = f"""
SELECT DISTINCT run >> {RUN_SHIFT}, hash(metric, value, CASE WHEN job <> '' THEN job
    ELSE (floor(epoch(time)) % 900)::VARCHAR END)
FROM new_samples JOIN new_runs USING (run) WHERE value IS NOT NULL"""


@dataclass(frozen=True)
class Content:
    """What a file holds. figures: how many, with failed ones. first_day, last_day: in UTC.

    keys: one for each value, by which the same value is recognised in another file. in_samples,
    not_selected: lines that are left out. systems: the names in it; others: those of lines that are
    not selected.
    """

    figures: int = 0
    first_day: str = ""
    last_day: str = ""
    series: Set[int] = frozenset()
    keys: Set[int] = frozenset()
    refused: Sequence[str] = ()
    notes: Sequence[tuple[Note, str]] = ()
    systems: Set[str] = frozenset()
    in_samples: int = 0
    not_selected: int = 0
    others: Set[str] = frozenset()


@dataclass
class File:
    """A file to be imported. name: below the folder of imported files."""

    path: Path
    name: str
    content: Content = field(default_factory=Content)


def find(paths: Sequence[Path]) -> tuple[list[File], list[UserError]]:
    """The files of ReFrame, and why others are skipped. Raises UserError.

    A file keeps its name, and one within a folder its name below that. Links within folders are
    skipped, such as ReFrame's latest.json: the files that they lead to are found by themselves.
    """
    found: dict[str, File] = {}
    skipped: list[UserError] = []
    for path in paths:
        for file in _in_folder(path, skipped) if path.is_dir() else [_named(path)]:
            known = found.setdefault(file.name, file)
            if not same(known.path, file.path):
                raise UserError(
                    file.path,
                    f"another {file.name} is to be imported, too",
                    hint="Import one of them at a time, from a folder above",
                )
    return list(found.values()), skipped


def _named(path: Path) -> File:
    if not formats.kind(path):
        raise UserError(path, "neither a perflog nor a run report of ReFrame")
    return File(path, path.name)


def _in_folder(folder: Path, skipped: list[UserError]) -> Iterator[File]:
    others = 0
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        is_hidden = any(part.startswith(".") for part in name.parts)
        if is_hidden or path.is_symlink() or not path.is_file():
            continue
        try:
            is_of_reframe = bool(formats.kind(path))
        except UserError as error:
            skipped.append(error)
            continue
        if is_of_reframe:
            yield File(path, str(name))
        else:
            others += 1
    if others:
        what = count(others, "other file")
        skipped.append(UserError(folder, f"skipped {what}: no perflog and no run report"))


def read(
    paths: Sequence[Path], system: str, zone: str | None, only: Only | None = None
) -> dict[Path, Content | UserError]:
    """What files hold, or why they cannot be read. zone, only: as of `Reader.read`."""
    found: dict[Path, Content | UserError] = {}
    with connect() as connection:
        tables.clear(connection)
        reader = formats.Reader(connection)
        for turn, path in enumerate(paths):
            try:
                reader.read(path, turn, site=system, zone=zone, only=only)
            except UserError as error:
                found[path] = error
        reader.flush()
        spans = {turn: span for turn, *span in connection.execute(_SPANS).fetchall()}
        series = _sets(connection, _SERIES)
        keys = _sets(connection, _KEYS)
    for turn, path in enumerate(paths):
        if path in found:
            continue
        file = reader.files[turn]
        figures, first, last = spans.get(turn, (0, "", ""))
        found[path] = Content(
            figures,
            first,
            last,
            series.get(turn, set()),
            keys.get(turn, set()),
            file.refused_lines(),
            file.notes(),
            file.systems,
            file.in_samples,
            file.not_selected,
            file.others,
        )
    return found


def _sets(connection: duckdb.DuckDBPyConnection, query: str) -> dict[int, set[int]]:
    """Numbers by the file's turn."""
    found: dict[int, set[int]] = {}
    for turn, number in connection.execute(query).fetchall():
        found.setdefault(turn, set()).add(number)
    return found


def digest(path: Path) -> str:
    """A hash of the content. Raises OSError, UserError."""
    with source.stream(path) as stream:
        digest = hashlib.blake2b()
        while part := stream.read(1 << 20):
            digest.update(part)
        return digest.hexdigest()


def same(one: Path, other: Path) -> bool:
    """Whether two files have the same content. Raises OSError, UserError."""
    if one == other:
        return True
    return one.stat().st_size == other.stat().st_size and digest(one) == digest(other)
