"""Which files are to be imported, and what each holds."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from siteproof.errors import UserError
from siteproof.history import connect, tables
from siteproof.history.foreign import formats, source
from siteproof.history.views import RUN_SHIFT

_SPANS = f"""
SELECT run >> {RUN_SHIFT}, sum(samples)::BIGINT, strftime(min(time), '%Y-%m-%d'),
    strftime(max(time), '%Y-%m-%d')
FROM new_runs GROUP BY 1"""
_SERIES = f"SELECT DISTINCT run >> {RUN_SHIFT}, series FROM new_samples"
# Metric, value, and the job, or where it is unknown the second within a quarter of an hour: that
# stays, whatever zone a time was taken for.
_KEYS = f"""
SELECT DISTINCT run >> {RUN_SHIFT}, hash(metric, value, CASE WHEN job <> '' THEN job
    ELSE (floor(epoch(time)) % 900)::VARCHAR END)
FROM new_samples JOIN new_runs USING (run) WHERE value IS NOT NULL"""


@dataclass(frozen=True)
class Content:
    """What a file holds. figures: how many, with those that failed. first_day, last_day: in UTC.

    keys: one a figure with a value, by which it is known again in another file.
    """

    figures: int = 0
    first_day: str = ""
    last_day: str = ""
    series: Set[int] = frozenset()
    keys: Set[int] = frozenset()
    refused: Sequence[str] = ()
    notes: Sequence[str] = ()
    systems: Set[str] = frozenset()


@dataclass
class File:
    """A file to be imported. name: below the folder of imported files."""

    path: Path
    name: str
    content: Content = field(default_factory=Content)


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


def read(paths: Sequence[Path], system: str, zone: str | None) -> dict[Path, Content | UserError]:
    """What files hold, or why they cannot be read."""
    found: dict[Path, Content | UserError] = {}
    with connect() as connection:
        tables.clear(connection)
        reader = formats.Reader(connection)
        for turn, path in enumerate(paths):
            try:
                reader.read(path, turn, site=system, zone=zone)
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
        count, first, last = spans.get(turn, (0, "", ""))
        found[path] = Content(
            count,
            first,
            last,
            series.get(turn, set()),
            keys.get(turn, set()),
            file.refused_lines(),
            file.notes(),
            file.systems,
        )
    return found


def _sets(connection: duckdb.DuckDBPyConnection, query: str) -> dict[int, set[int]]:
    """Numbers by the file's turn."""
    found: dict[int, set[int]] = {}
    for turn, number in connection.execute(query).fetchall():
        found.setdefault(turn, set()).add(number)
    return found


def digest(path: Path) -> str:
    """What is equal for equal contents only. Raises OSError, UserError."""
    with source.stream(path) as held:
        digest = hashlib.blake2b()
        while part := held.read(1 << 20):
            digest.update(part)
        return digest.hexdigest()


def _same(one: Path, other: Path) -> bool:
    return one.stat().st_size == other.stat().st_size and digest(one) == digest(other)
