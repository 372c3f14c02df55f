"""Bring a store up to date: files that are new, have changed or were removed.

Files below perflogs into tables: new_runs, new_contexts, new_samples.

The fast reader takes our own files where they are exactly as `samples.write` makes them: in an
eighth of the time, as it works in SQL on columns and not on lines. It has no rules of its own: it
gives the different nodes, metrics and ends of lines, of which there are few, to the reader of the
record. A file with one line that is not exactly as the record would write it again is left to
`samples.read`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from stat import S_ISDIR, S_IWOTH
from typing import TypeVar

import duckdb
import numpy as np

from siteproof import files, units
from siteproof import files as safe
from siteproof.errors import UserError
from siteproof.history import tables, views
from siteproof.history.tables import Index, Part
from siteproof.history.views import IMPORTED, RUN_SHIFT
from siteproof.record import samples
from siteproof.record.samples import STATUSES, Header, Sample

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
        self.folder = tables.folder_of(perflogs)
        self.is_kept = True
        self.index = self._load()
        self._before = list(self.index.parts)

    def _load(self) -> Index:
        try:
            _must_be_own(self.folder)
            found = tables.load(self.folder)
        except tables.Broken as error:
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
        path = self.folder / tables.file_name(part.name, table)
        return f"read_parquet({tables.quoted(path)})"

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
        # imports sites and schemas, which a query needs not

        files = []
        for name in names:
            self.index.turn += 1
            files.append(Listed(self.perflogs / name, name, self.index.turn))
            self.index.files[name] = (*stamps[name], self.index.turn)
        found, refused = read(self.connection, files)
        self.index.refused |= refused
        queries = {table: f"SELECT * FROM new_{table}" for table in views.KEPT}
        ordered = f"SELECT * FROM ({found}) ORDER BY {views.ORDER['samples']}"
        self._add(queries | {"samples": ordered})

    def _add(self, queries: dict[str, str]) -> None:
        """Add a part, on disk if possible."""
        if self.is_kept:
            try:
                self.index.parts.append(tables.write(self.connection, self.folder, queries))
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
        count = tables.to_merge(self.index.parts)
        if sum(p.rows for p in self.index.parts) > 2 * self._live_rows() + WASTE:
            count = len(self.index.parts)
        if count:
            old = self.index.parts[-count:]
            self.turns("live_turns", ())
            queries = {
                table: tables.live(table, [self.relation(p, table) for p in old], "live_turns")
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
        return tables.live("runs", relations, turns)

    def turns(self, name: str, systems: Sequence[str]) -> None:
        """A table of the turns that count, of some systems or of all."""
        files = self.index.files.items()
        turns = [turn for file, (_, _, turn) in files if is_of(file, systems)]
        tables.make(self.connection, name, {"turn": "UBIGINT"}, {"turn": turns})

    def _save(self, retired: Iterable[Part]) -> None:
        try:
            tables.save(self.folder, self.index)
            tables.clean(self.folder, self.index, retired)
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


PLAIN = r"[ !#-\[\]-~]*"  # printable ASCII without escapes
NUMBER = r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,17})?"  # str(Decimal(text)) is the same text
SMALLEST, ZERO = "1e-6", 8  # Decimal prints smaller numbers, and longer zeros, with an exponent
SHORT, MAX_TEXTS = 200, 50_000  # characters of a text that is remembered, and how many texts are
# A line around one text: what the record reads of it, and whether it writes the same again.
_PROBES = {
    "node": '{{"node":"{}","metric":"A.b","status":"generic"}}',
    "metric": '{{"node":"","metric":"{}","status":"generic"}}',
    "tail": '{{"node":"","metric":"A.b","status":"generic"{}',
}
_FAILED = ", ".join(f"'{status}'" for status in STATUSES if status != "ok")
# x: the line, cut at its quotation marks. A line is good if its parts make the same line again.
_PARSED = f"""
CREATE OR REPLACE TEMP TABLE parsed AS
SELECT run, node, metric, TRY_CAST(CASE WHEN kind <> 'text' THEN digits END AS DOUBLE) AS value,
    digits, coalesce(unit, '') AS unit, CASE WHEN kind <> 'text' THEN factor END AS factor,
    coalesce(kind, '') AS kind, status, tail, line = concat(
        '{{"node":"', node, '","metric":"', metric, CASE
            WHEN unit IS NOT NULL THEN concat('","value":"', digits, '","unit":"', unit)
            ELSE concat('","status":"', status) END, '"', tail
    ) AND CASE
        WHEN status <> 'ok' THEN status IN ({_FAILED})
        WHEN kind = 'text' THEN regexp_full_match(digits, '{PLAIN}')
        ELSE coalesce(regexp_full_match(digits, '{NUMBER}') AND (
            abs(value) >= {SMALLEST} OR (value = 0 AND strlen(digits) <= {ZERO})), FALSE)
    END AS good
FROM (
    SELECT run, line, x[4] AS node, x[8] AS metric,
        CASE WHEN x[10] = 'value' THEN x[12] END AS digits,
        CASE WHEN x[10] = 'value' THEN x[16] END AS unit,
        CASE WHEN x[10] = 'value' THEN 'ok' ELSE x[12] END AS status,
        CASE WHEN x[10] = 'value' AND len(x) = 17 THEN x[17]
             ELSE array_to_string(x[(CASE WHEN x[10] = 'value' THEN 17 ELSE 13 END):], '"')
        END AS tail
    FROM (
        SELECT run, line, string_split(line, '"') AS x
        FROM (SELECT run, unnest(string_split(body, chr(10))) AS line FROM incoming)
    )
) LEFT JOIN known_units USING (unit)
"""
NARROW = f"""
SELECT p.run, node, p.metric, value, {tables.DIGITS}, unit, factor, kind, status, why, trial, dims,
    context, xor(xor(h.part, m.part), t.part) AS series
FROM parsed p JOIN metrics m USING (metric) JOIN tails t USING (tail)
JOIN heads h ON h.run = p.run AND h.own = t.own
"""
TAILS = {
    "tail": "VARCHAR",
    "why": "VARCHAR",
    "trial": "INTEGER",
    "dims": "VARCHAR",
    "own": "VARCHAR",
    "part": "UBIGINT",
}
HEADS = {"run": "UBIGINT", "own": "VARCHAR", "context": "UBIGINT", "part": "UBIGINT"}


def plain_body(data: bytes) -> str | None:
    """The lines of a file below its header; None where the fast reader cannot read them."""
    lines = data.partition(b"\n")[2]
    if not data.endswith(b"\n") or b"\\" in lines or not lines.isascii():
        return None
    return lines.decode("ascii")


def prepare(connection: duckdb.DuckDBPyConnection) -> None:
    """The table of all units."""
    known = list(units.UNITS)
    tables.make(
        connection,
        "known_units",
        {"unit": "VARCHAR", "kind": "VARCHAR", "factor": "DOUBLE"},
        {"unit": known, "kind": [*map(units.kind, known)], "factor": [*map(tables.factor, known)]},
    )


def parse(
    connection: duckdb.DuckDBPyConnection, heads: Mapping[int, Header], bodies: Mapping[int, str]
) -> dict[int, int]:
    """The number of rows of each run whose lines are all good; the other runs are not in it.

    The rows are then what `NARROW` selects. bodies: by run, each ends in a line feed.
    """
    counts = {run: 0 for run, text in bodies.items() if not text}
    filled = {run: text[:-1] for run, text in bodies.items() if text}
    connection.register(
        "incoming",
        {
            "run": np.array(list(filled), dtype=np.uint64),
            "body": tables.array(list(filled.values())),
        },
    )
    connection.execute(_PARSED)
    connection.unregister("incoming")
    _remove(connection, "NOT coalesce(good, FALSE)")
    probes = {column: _probe(connection, column) for column in _PROBES}
    for column, found in probes.items():
        if bad := [text for text, sample in found.items() if sample is None]:
            tables.make(connection, "bad", {"text": "VARCHAR"}, {"text": bad})
            _remove(connection, f"{column} IN (SELECT text FROM bad)")
    _join(connection, heads, probes["tail"])
    rows_of_runs = connection.execute("SELECT run, count(*) FROM parsed GROUP BY run").fetchall()
    return counts | dict(rows_of_runs)


def _remove(connection: duckdb.DuckDBPyConnection, condition: str) -> None:
    """Remove all lines of the runs with a line for which the condition holds."""
    connection.execute(
        f"DELETE FROM parsed WHERE run IN (SELECT run FROM parsed WHERE {condition})"
    )


def _probe(connection: duckdb.DuckDBPyConnection, column: str) -> dict[str, Sample | None]:
    """What the record reads of each different text; None: it would not write the same again."""
    texts = connection.execute(f"SELECT DISTINCT {column} FROM parsed").fetchall()
    return {text: _read_probe(column, text) for (text,) in texts}


def _read_probe(column: str, text: str) -> Sample | None:
    if len(text) > SHORT:
        return samples.read_as_written(_PROBES[column].format(text))
    return _read_short(column, text)


@lru_cache(maxsize=MAX_TEXTS)
def _read_short(column: str, text: str) -> Sample | None:
    """The same nodes and metrics are in every file."""
    return samples.read_as_written(_PROBES[column].format(text))


def _join(
    connection: duckdb.DuckDBPyConnection,
    heads: Mapping[int, Header],
    tails: Mapping[str, Sample | None],
) -> None:
    """Prepare what `NARROW` joins to the parsed lines, and add their contexts."""
    metrics = [m for (m,) in connection.execute("SELECT DISTINCT metric FROM parsed").fetchall()]
    tables.make(
        connection,
        "metrics",
        {"metric": "VARCHAR", "part": "UBIGINT"},
        {"metric": metrics, "part": [*map(tables.of_metric, metrics)]},
    )
    ends = [
        {
            "tail": text,
            "why": sample.why,
            "trial": sample.trial,
            "dims": tables.canonical(sample.dims),
            "own": tables.canonical(sample.own_conditions),
            "part": tables.of_dims(sample.dims),
        }
        for text, sample in tails.items()
        if sample
    ]
    tables.make(connection, "tails", TAILS, tables.columns(ends, TAILS))
    used = connection.execute(
        "SELECT DISTINCT run, own FROM parsed JOIN tails USING (tail)"
    ).fetchall()
    contexts = [tables.context(heads[run], json.loads(own)) for run, own in used]
    tables.make(
        connection,
        "heads",
        HEADS,
        {
            "run": [run for run, _ in used],
            "own": [own for _, own in used],
            "context": [c.key for c in contexts],
            "part": [c.part for c in contexts],
        },
    )
    tables.add_contexts(connection, contexts)


Refused = dict[str, list[str]]


@dataclass(frozen=True)
class Listed:
    """A file to be read. file: its name below perflogs. turn: the number of this reading."""

    path: Path
    file: str
    turn: int

    @property
    def run(self) -> int:
        """The number of its first run; our own files have no other."""
        return self.turn << RUN_SHIFT

    @property
    def perflogs(self) -> Path:
        """The folder of all perflogs."""
        return self.path.parents[self.file.count("/")]

    @property
    def is_foreign(self) -> bool:
        """Whether it is a copy of a file of plain ReFrame."""
        return self.file.split("/")[1:2] == [IMPORTED]


def read(connection: duckdb.DuckDBPyConnection, files: Sequence[Listed]) -> tuple[str, Refused]:
    """Fill the tables of the new rows; SQL for all new samples, and what was refused."""
    tables.clear(connection)
    prepare(connection)
    heads: dict[int, Header] = {}
    bodies: dict[int, str] = {}
    own = [listed for listed in files if not listed.is_foreign]
    for listed in own:
        if (parts := _screened(listed)) is not None:
            heads[listed.run], bodies[listed.run] = parts
    counts = parse(connection, heads, bodies)
    tables.add(
        connection,
        "runs",
        [
            tables.run_row(heads[listed.run], listed.file, listed.run, counts[listed.run])
            for listed in own
            if listed.run in counts
        ],
    )
    refused: Refused = {}
    for listed in own:
        if listed.run not in counts:
            _exactly(connection, listed, refused)
    _take_foreign(connection, [listed for listed in files if listed.is_foreign], refused)
    found = f"SELECT {views.names('samples')} FROM ({NARROW})"
    return f"{found} UNION ALL SELECT {views.names('samples')} FROM new_samples", refused


def _screened(listed: Listed) -> tuple[Header, str] | None:
    """Header and other lines of a file that the fast reader may take."""
    try:
        data = safe.read(listed.path, below=listed.perflogs, limit=safe.SAMPLES)
        first, body = data.partition(b"\n")[0], plain_body(data)
        if body is None or b"\r" in first:
            return None
        head = samples.header_of(f"{listed.path}:1", first.decode("utf-8"))
        samples.must_lie_at(listed.path, head)
        tables.run_row(head, listed.file, listed.run, 0)  # its time may not exist in UTC
    except (OSError, UnicodeDecodeError, UserError):
        return None
    return head, body


def _exactly(connection: duckdb.DuckDBPyConnection, listed: Listed, refused: Refused) -> None:
    """Add a file by samples.read, or why it refuses it."""
    try:
        run, found, contexts = tables.of_file(listed.path, listed.file, listed.run)
    except UserError as error:
        refused[listed.file] = [str(error)]
        return
    tables.add(connection, "runs", [run])
    tables.add(connection, "samples", found)
    tables.add_contexts(connection, contexts)


def _take_foreign(
    connection: duckdb.DuckDBPyConnection, files: Sequence[Listed], refused: Refused
) -> None:
    """Add files of plain ReFrame; their broken lines are refused, the others count."""
    if not files:
        return
    from siteproof.history.foreign import (
        figures,  # most stores hold no such file
        formats,
    )
    from siteproof.history.foreign.figures import File

    reader = formats.Reader(connection)
    for listed in files:
        try:
            given = figures.of(listed.path)
            file = File(listed.path, listed.file, listed.turn, listed.file.split("/")[0], given)
            reader.add(file)
        except UserError as error:
            refused[listed.file] = [str(error)]
        else:
            if lines := file.refused_lines():
                refused[listed.file] = lines
    reader.flush()
