"""Bring a store up to date: files that are new, have changed or were removed."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from stat import S_ISDIR, S_IWOTH
from typing import TypeVar

import duckdb

from siteproof import files
from siteproof.errors import UserError
from siteproof.history import store, tables, views
from siteproof.history.store import Index, Part
from siteproof.record import samples

Entry = TypeVar("Entry")
Progress = Callable[[int, int], None]
Stamp = tuple[int, int]  # size, time of change in ns
BATCH = 40_000_000  # bytes of files that become one part, with about six times the memory
WASTE = 100_000  # rows of removed or changed files; a store with more is rewritten


class Refresh:
    """A store and its index: on disk, or in memory if it cannot be written.

    notes: warnings for the user about the store. is_kept: whether it is on disk.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, perflogs: Path) -> None:
        self.connection, self.perflogs = connection, perflogs
        self.notes: list[str] = []
        self.folder = store.folder_of(perflogs)
        self.is_kept = True
        self.index = self._load()
        self._before = list(self.index.parts)

    def _load(self) -> Index:
        try:
            _must_be_own(self.folder)
            found = store.load(self.folder)
        except store.Broken as error:
            return self._new(str(error))
        except UserError as error:
            self._use_memory(error.what)
            return Index()
        return found or Index()

    def _new(self, why: str) -> Index:
        self.notes.append(f"{self.folder}: made again, because {why}")
        return Index()

    def begin_again(self, error: duckdb.Error) -> None:
        """Forget everything, as a part cannot be read."""
        tables.drop(self.connection, " ")
        self.index = self._new(str(error).splitlines()[0])

    def relation(self, part: Part, table: str) -> str:
        """A part's table in SQL."""
        if not part.digests:
            return f'"{part.name}.{table}"'
        path = self.folder / store.file_name(part.name, table)
        return f"read_parquet({store.quoted(path)})"

    def forget(self, systems: Sequence[str]) -> None:
        """Make `run` read all files of some systems, or of all, again."""
        if not systems:
            self.index.parts = []
        for name in [name for name in self.index.files if is_of(name, systems)]:
            self._forget(name)

    def run(
        self, systems: Sequence[str], progress: Progress | None, only: Collection[str] | None = None
    ) -> None:
        """Read what has changed in some systems or in all. Raises UserError, OSError.

        only: the files in question, if not all.
        """
        stamps = _in_question(dict(_scan(self.perflogs, systems)), systems, only)
        known = _in_question(self.index.files, systems, only)
        removed = [name for name in known if name not in stamps]
        files = self.index.files
        changed = {n: stamp for n, stamp in stamps.items() if files.get(n, ())[:2] != stamp}
        if not (changed or removed):
            return
        for name in removed:
            self._forget(name)
        self._take(changed, progress)

    def _forget(self, name: str) -> None:
        self.index.files.pop(name, None)
        self.index.refused.pop(name, None)

    def _take(self, changed: Mapping[str, Stamp], progress: Progress | None) -> None:
        for name in changed:
            self._forget(name)
        for done, batch in _batches(changed):
            self._read(batch, changed)
            if progress:
                progress(done, len(changed))
        self._merge()
        if self.is_kept:
            self._save([part for part in self._before if part not in self.index.parts])

    def _read(self, names: Sequence[str], stamps: Mapping[str, Stamp]) -> None:
        from siteproof.history import ingest  # imports sites and schemas, which a query needs not

        files = []
        for name in names:
            self.index.turn += 1
            files.append(ingest.Listed(self.perflogs / name, name, self.index.turn))
            self.index.files[name] = (*stamps[name], self.index.turn)
        found, refused = ingest.read(self.connection, files)
        self.index.refused |= refused
        queries = {table: f"SELECT * FROM new_{table}" for table in views.KEPT}
        ordered = f"SELECT * FROM ({found}) ORDER BY {views.ORDER['samples']}"
        self._add(queries | {"samples": ordered})

    def _add(self, queries: dict[str, str]) -> None:
        """Add a part, on disk if possible."""
        if self.is_kept:
            try:
                self.index.parts.append(store.write(self.connection, self.folder, queries))
                return
            except OSError as error:
                self._use_memory(error.strerror)
        name = f"memory {len(self.index.parts)}"
        for table, query in queries.items():
            self.connection.execute(f'CREATE TEMP TABLE "{name}.{table}" AS {query}')
        found = self.connection.execute(f'SELECT count(*) FROM "{name}.samples"').fetchall()
        self.index.parts.append(Part(name, found[0][0], {}))

    def _use_memory(self, why: str | None) -> None:
        self.is_kept = False
        self.notes.append(
            f"{self.folder}: {why}: the history is made in memory, "
            "each time again. Allowed: SITEPROOF_CACHE names a folder that can be written."
        )

    def _merge(self) -> None:
        """Merge small parts into one, or all of them if much of them is out of date."""
        if not self.is_kept:
            return
        count = store.to_merge(self.index.parts)
        if sum(p.rows for p in self.index.parts) > 2 * self._live_rows() + WASTE:
            count = len(self.index.parts)
        if count:
            old = self.index.parts[-count:]
            self.turns("live_turns", ())
            queries = {
                table: store.live(table, [self.relation(p, table) for p in old], "live_turns")
                for table in views.KEPT
            }
            del self.index.parts[-count:]
            self._add(queries)

    def _live_rows(self) -> int:
        self.turns("live_turns", ())
        found = self.connection.execute(
            f"SELECT coalesce(sum(samples), 0) FROM ({self.runs('live_turns')})"
        ).fetchall()
        return int(found[0][0])

    def runs(self, turns: str) -> str:
        """SQL for the runs of files that have not changed since they were read."""
        relations = [self.relation(part, "runs") for part in self.index.parts]
        if not relations:
            return f"SELECT {views.names('runs')} FROM new_runs"
        return store.live("runs", relations, turns)

    def turns(self, name: str, systems: Sequence[str]) -> None:
        """A table of the turns that count, of some systems or of all."""
        files = self.index.files.items()
        turns = [turn for file, (_, _, turn) in files if is_of(file, systems)]
        tables.make(self.connection, name, {"turn": "UBIGINT"}, {"turn": turns})

    def _save(self, retired: Iterable[Part]) -> None:
        try:
            store.save(self.folder, self.index)
            store.clean(self.folder, self.index, retired)
        except OSError as error:
            self._use_memory(error.strerror)


def _in_question(
    files: Mapping[str, Entry], systems: Sequence[str], only: Collection[str] | None
) -> dict[str, Entry]:
    return {
        name: entry
        for name, entry in files.items()
        if is_of(name, systems) and (only is None or name in only)
    }


def is_of(name: str, systems: Sequence[str]) -> bool:
    """Whether a file below perflogs belongs to one of the systems; without systems, to any."""
    return not systems or name.partition("/")[0] in systems


def _scan(perflogs: Path, systems: Sequence[str]) -> Iterator[tuple[str, Stamp]]:
    """Every file that holds rows, by its name below perflogs. Raises UserError."""
    above = len(str(perflogs)) + 1
    try:
        root = perflogs.stat() if perflogs.exists() else None
        for system in _folders(perflogs):
            if systems and system not in systems:
                continue
            for path in samples.files(perflogs, system):
                yield str(path)[above:], _stamp(path, root)
            if (perflogs / system / views.IMPORTED).is_dir():
                yield from _foreign(perflogs, system, root)
    except OSError as error:
        raise UserError(error.filename or perflogs, f"cannot be read: {error.strerror}") from None


def _folders(path: Path) -> list[str]:
    try:
        with os.scandir(path) as found:
            kept = (e for e in found if e.is_dir() and not e.name.startswith("."))
            return sorted(e.name for e in kept if files.has_plain_name(Path(e)))
    except FileNotFoundError:
        return []


def _foreign(
    perflogs: Path, system: str, root: os.stat_result | None
) -> Iterator[tuple[str, Stamp]]:
    from siteproof.history.foreign import figures, formats

    for path in formats.imported(perflogs, system):
        size, moment = _stamp(path, root)
        # The rows depend on the options, too.
        given = _stamp(figures.file_of(path), root)
        yield str(path.relative_to(perflogs)), (size + given[0], moment + given[1])


def _stamp(path: Path, root: os.stat_result | None) -> Stamp:
    """Size and time; another stamp if the file is to be read again. root: perflogs.

    It also changes when the owner of the file becomes trusted, or is no longer trusted.
    """
    try:
        found = path.lstat()
    except OSError:
        return 0, 0  # reading it gives the reason
    # The inode's time: a change of permissions changes it, and `cp -p` does not restore it.
    strange = root is not None and not files.trusts(found.st_uid, root)
    return found.st_size, -found.st_ctime_ns if strange else found.st_ctime_ns


def _batches(stamps: Mapping[str, Stamp]) -> Iterator[tuple[int, list[str]]]:
    """Names in batches, each with the number of names up to its end."""
    batch: list[str] = []
    size = 0
    for done, (name, stamp) in enumerate(stamps.items(), start=1):
        batch.append(name)
        size += stamp[0]
        if size >= BATCH or done == len(stamps):
            yield done, batch
            batch, size = [], 0


def _must_be_own(folder: Path) -> None:
    """Raises UserError if another user could change the files of a folder that is there."""
    try:
        found = folder.lstat()
    except OSError:
        return
    if not S_ISDIR(found.st_mode):
        raise UserError(folder, "refused: it is not a folder")
    if not files.trusts(found.st_uid, found, {0, os.geteuid()}):
        raise UserError(folder, f"refused: it belongs to {files.name_of(found.st_uid)}")
    if found.st_mode & S_IWOTH:
        raise UserError(folder, "refused: everybody may write to it")
