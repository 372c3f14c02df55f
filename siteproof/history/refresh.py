"""Bring a store up to date: what is new, has changed or has gone since it was last looked at."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from stat import S_ISDIR, S_IWOTH

import duckdb

from siteproof import files
from siteproof.errors import UserError
from siteproof.history import store, tables, views
from siteproof.history.store import Index, Part

Told = Callable[[int, int], None]
Stamp = tuple[int, int]  # size, time of change in ns
BATCH = 64_000_000  # bytes of files that become one part; it takes about six times the memory
WASTE = 100_000  # rows of files that are gone or have changed, from which on a store is rewritten


class Refresh:
    """A store and its index, on disk or, where that cannot be, in memory.

    notes: what the user should be told of the store. folder: None where it is in memory only.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, perflogs: Path) -> None:
        self.connection, self.perflogs = connection, perflogs
        self.notes: list[str] = []
        self.folder = store.folder_of(perflogs)
        self.is_kept = True
        self._read_only = ""
        self.index = self._load()
        self._before = list(self.index.parts)

    def _load(self) -> Index:
        if whose := _strange(self.folder):
            self._alone(f"refused: {whose}")
            return Index()
        try:
            found = store.load(self.folder)
            for part in found.parts if found else ():
                for table in part.sizes:
                    self._look_at(part, table)
        except store.Broken as error:
            self.notes.append(f"{self.folder}: made anew, because {error}")
            return Index()
        return found or Index()

    def _look_at(self, part: Part, table: str) -> None:
        """Read a file's footer, so that a broken one is found before it is asked."""
        try:
            self.connection.execute(
                f"SELECT {views.names(table)} FROM {self.relation(part, table)} LIMIT 0"
            )
        except duckdb.Error:
            name = store.file_name(part.name, table)
            raise store.Broken(f"{name} is no Parquet file of ours") from None

    def relation(self, part: Part, table: str) -> str:
        """What SQL calls a part's table."""
        if not part.sizes:
            return f'"{part.name}.{table}"'
        path = self.folder / store.file_name(part.name, table)
        return f"read_parquet({store.quoted(path)})"

    def forget(self, systems: Sequence[str]) -> None:
        """Read all files of some systems or of all again."""
        if not systems:
            self.index.parts = []
        for name in [name for name in self.index.files if is_of(name, systems)]:
            del self.index.files[name]
            self.index.refused.pop(name, None)

    def run(self, systems: Sequence[str], told: Told | None) -> None:
        """Read what has changed in some systems or in all. Raises UserError, OSError."""
        there = dict(_scan(self.perflogs, systems))
        known = {name: held for name, held in self.index.files.items() if is_of(name, systems)}
        gone = [name for name in known if name not in there]
        new = [name for name, stamp in there.items() if known.get(name, ())[:2] != stamp]
        if not (new or gone):
            return
        for name in (*gone, *new):
            self.index.files.pop(name, None)
            self.index.refused.pop(name, None)
        self._make_folder()
        for done, batch in _batches(new, there):
            self._read(batch, there)
            if told:
                told(done, len(new))
        self._merge()
        if self.is_kept:
            self._save([part for part in self._before if part not in self.index.parts])

    def _read(self, names: Sequence[str], there: dict[str, Stamp]) -> None:
        from siteproof.history import ingest  # sites and schemas, which a mere question needs not

        files = []
        for name in names:
            self.index.turn += 1
            files.append(ingest.Listed(self.perflogs / name, name, self.index.turn))
            self.index.files[name] = (*there[name], self.index.turn)
        found, refused = ingest.read(self.connection, files)
        self.index.refused |= refused
        queries = {table: f"SELECT * FROM new_{table}" for table in views.KEPT}
        self._add(queries | {"samples": found})

    def _add(self, queries: dict[str, str]) -> None:
        """One more part, on disk if that can be."""
        if self.is_kept:
            try:
                self.index.parts.append(store.write(self.connection, self.folder, queries))
                return
            except OSError as error:
                self._in_memory(error)
        name = f"memory {len(self.index.parts)}"
        for table, query in queries.items():
            self.connection.execute(f'CREATE TEMP TABLE "{name}.{table}" AS {query}')
        found = self.connection.execute(f'SELECT count(*) FROM "{name}.samples"').fetchall()
        self.index.parts.append(Part(name, found[0][0], {}))

    def _make_folder(self) -> None:
        try:
            if not self.is_kept:
                return
            self.folder.mkdir(0o775, parents=True, exist_ok=True)
            if not os.access(self.folder, os.W_OK | os.X_OK):
                raise PermissionError(13, "Permission denied", str(self.folder))
        except OSError as error:
            self._in_memory(error)

    def _in_memory(self, error: OSError) -> None:
        self._alone(error.strerror or "", error.filename)

    def _alone(self, why: str, where: object = None) -> None:
        self.is_kept = False
        self.notes.append(
            f"{where or self.folder}: {why}: the history is made in memory, "
            "each time anew. Allowed: SITEPROOF_CACHE names a folder that can be written."
        )

    def _merge(self) -> None:
        """Few parts: small ones become one, and all do if much of them is out of date."""
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
        """SQL for the runs of files that still are as they were read."""
        relations = [self.relation(part, "runs") for part in self.index.parts]
        if not relations:
            return f"SELECT {views.names('runs')} FROM new_runs"
        return store.live("runs", relations, turns)

    def turns(self, name: str, systems: Sequence[str]) -> None:
        """A table of the turns that count, of some systems or of all."""
        tables.make(
            self.connection,
            name,
            {"turn": "UBIGINT"},
            {
                "turn": [
                    turn for file, (_, _, turn) in self.index.files.items() if is_of(file, systems)
                ]
            },
        )

    def _save(self, retired: Iterable[Part]) -> None:
        try:
            store.save(self.folder, self.index)
            store.clean(self.folder, self.index, retired)
        except OSError as error:
            self._in_memory(error)


def is_of(name: str, systems: Sequence[str]) -> bool:
    """Whether a file below perflogs is of some systems; of none means of any."""
    return not systems or name.partition("/")[0] in systems


def _scan(perflogs: Path, systems: Sequence[str]) -> Iterator[tuple[str, Stamp]]:
    """Every file that holds rows, by its name below perflogs. Raises UserError."""
    try:
        root = perflogs.stat() if perflogs.exists() else None
        for system in _folders(perflogs):
            if systems and system not in systems:
                continue
            for part in _folders(perflogs / system):
                if part == views.IMPORTED:
                    yield from _foreign(perflogs, system, root)
                else:
                    yield from _own(perflogs / system / part, f"{system}/{part}", root)
    except OSError as error:
        raise UserError(error.filename or perflogs, f"cannot be read: {error.strerror}") from None


def _folders(path: Path) -> list[str]:
    try:
        with os.scandir(path) as found:
            return sorted(e.name for e in found if e.is_dir() and not e.name.startswith("."))
    except FileNotFoundError:
        return []


def _own(folder: Path, name: str, root: os.stat_result | None) -> Iterator[tuple[str, Stamp]]:
    if folder.is_symlink():
        yield name, _stamp(folder.lstat, root)  # its reader refuses it
        return
    with os.scandir(folder) as found:
        entries = sorted(
            (e for e in found if e.name.endswith(".jsonl") and not e.name.startswith(".")),
            key=lambda entry: entry.name,
        )
    for entry in entries:
        yield f"{name}/{entry.name}", _stamp(partial(entry.stat, follow_symlinks=False), root)


def _foreign(
    perflogs: Path, system: str, root: os.stat_result | None
) -> Iterator[tuple[str, Stamp]]:
    from siteproof.history.foreign import formats

    for path in formats.files(perflogs, system):
        size, moment = _stamp(path.lstat, root)
        zone = _stamp(formats.zone_file(path).lstat, root)  # another zone makes other rows
        yield str(path.relative_to(perflogs)), (size + zone[0], moment + zone[1])


def _stamp(stat: Callable[[], os.stat_result], root: os.stat_result | None) -> Stamp:
    """What changes when a file is to be read again: its content, or whether its owner is trusted.

    root: perflogs.
    """
    try:
        found = stat()
    except OSError:
        return 0, 0  # whoever reads it will say why it cannot be read
    # The inode's time: a mended permission changes it, and a copy cannot bring along an older one.
    strange = root is not None and not files.trusts(found.st_uid, root)
    return found.st_size, -found.st_ctime_ns if strange else found.st_ctime_ns


def _batches(names: Sequence[str], there: dict[str, Stamp]) -> Iterator[tuple[int, list[str]]]:
    """Names in portions, each with how many there are up to its end."""
    batch: list[str] = []
    size = 0
    for done, name in enumerate(names, start=1):
        batch.append(name)
        size += there[name][0]
        if size >= BATCH or done == len(names):
            yield done, batch
            batch, size = [], 0


def _strange(folder: Path) -> str:
    """Who else could change what a folder of ours holds, in words; usually nobody.

    A folder that is not there is nobody's.
    """
    try:
        found = folder.lstat()
    except OSError:
        return ""
    if not S_ISDIR(found.st_mode):
        return "it is no folder"
    if not files.trusts(found.st_uid, found, {0, os.geteuid()}):
        return f"it belongs to {files.name_of(found.st_uid)}"
    return "everybody may write to it" if found.st_mode & S_IWOTH else ""
