"""Rows of history from samples that `samples.read` has accepted, and the tables that hold them.

The store keeps a row of `samples` narrow: what all of a job's rows share is in `runs`, and the
conditions, of which there are few, in `contexts`. The views put them together again.

The store: Parquet parts that are derived from perflogs, and an index of the parts that count.

A part is three files. They are written under temporary names and renamed, and then the index is.
So a writer that is killed leaves either the old index or the new one. Two writers do not disturb
each other: the index that is renamed last counts, and it is complete.
A later writer removes files that no index has named for an hour.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import duckdb
import numpy as np
from numpy.typing import DTypeLike

from siteproof import files, units
from siteproof.errors import UserError
from siteproof.history import views
from siteproof.record import samples, series
from siteproof.record.samples import PUBLISHED, Header, Sample
from siteproof.record.series import CONTRACTUAL

IMPORTED = "imported"  # the mode of every sample that plain ReFrame has measured
SOURCES = {PUBLISHED: PUBLISHED, IMPORTED: "reframe"}  # by mode; of all others: siteproof


@dataclass(frozen=True)
class Context:
    """The conditions of some rows.

    conditions: all of them, as JSON. key: a hash of that. part: the part of a series' number that
    they give it, with the system and the environment.
    """

    conditions: str
    key: int
    part: int


def canonical(texts: Mapping[str, str]) -> str:
    """An object as JSON: equal objects give the same text."""
    return json.dumps(dict(texts), sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def hashed(*words: str) -> int:
    """A number of 64 bits, the same on every machine."""
    digest = hashlib.blake2b("\0".join(words).encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(digest.digest(), "little")


def run_row(head: Header, file: str, run: int, count: int) -> dict[str, Any]:
    """What all rows of a file share. Raises UserError for a time that does not exist in UTC."""
    return {
        "run": run,
        "system": head.system,
        "partition": head.partition,
        "environment": head.environment,
        "session": head.session,
        "campaign": head.campaign,
        "mode": head.mode,
        "check_name": head.check,
        "job": head.job,
        "time": _utc(head.time, file),
        "file": file,
        "source": SOURCES.get(head.mode, "siteproof"),
        "place": head.place,
        "expected": head.expected,
        "samples": count,
        "conditions": canonical(head.conditions),
        "provenance": canonical(head.provenance),
    }


def _utc(text: str, where: str) -> datetime:
    try:
        return datetime.fromisoformat(text).astimezone(UTC).replace(tzinfo=None)
    except OverflowError:
        raise UserError(where, f"'{text}' is before the first or after the last year") from None


def of_file(
    path: Path, file: str, run: int
) -> tuple[dict[str, Any], list[dict[str, Any]], list[Context]]:
    """The run, the narrow rows and their contexts of a file. Raises UserError with its line."""
    found = samples.read(path)
    head = found[0].header if found else samples.read_header(path)
    samples.must_lie_at(path, head)
    contexts: dict[str, Context] = {}
    rows = []
    for sample in found:
        own = canonical(sample.own_conditions)
        if own not in contexts:
            contexts[own] = context(head, sample.own_conditions)
        rows.append(row(sample, run, contexts[own]))
    return run_row(head, file, run, len(rows)), rows, list(contexts.values())


def row(sample: Sample, run: int, context: Context) -> dict[str, Any]:
    """The narrow row of a sample."""
    is_ok, number = sample.status == "ok", sample.value
    value = float(number) if isinstance(number, Decimal) else None
    return {
        "run": run,
        "node": sample.node,
        "metric": sample.metric,
        "value": value,
        "digits": str(number) if is_ok else None,
        "unit": sample.unit if is_ok else "",
        "factor": None if value is None else factor(sample.unit),
        "kind": units.kind(sample.unit) if is_ok and sample.unit in units.UNITS else "",
        "status": sample.status,
        "why": sample.why,
        "trial": sample.trial,
        "dims": canonical(sample.dims),
        "context": context.key,
        "series": context.part ^ of_metric(sample.metric) ^ of_dims(sample.dims),
    }


@functools.cache
def factor(unit: str) -> float:
    """The size of a unit in the base unit of its kind; 1 of an unknown one, of a plain test."""
    return float(units.UNITS[unit][1]) if unit in units.UNITS else 1.0


def of_metric(metric: str) -> int:
    """The part of a series' number that the metric gives it."""
    return hashed("metric", metric)


def of_dims(dims: Mapping[str, str]) -> int:
    """The part that the dimensions give it, without those within a job."""
    kept = {k: v for k, v in dims.items() if k not in series.OF_A_JOB}
    return hashed("dims", canonical(kept))


def context(head: Header, own: Mapping[str, str]) -> Context:
    """The context of a job's rows with these conditions of their own."""
    sample = Sample(head, "", "", own_conditions=own)
    conditions, decide = canonical(sample.conditions), series.conditions(sample)
    if decide["mode"] in CONTRACTUAL:
        decide["mode"] = CONTRACTUAL[0]
    part = hashed("context", head.system, head.environment, canonical(decide))
    return Context(conditions, hashed("conditions", conditions), part)


NUMPY: dict[str, DTypeLike] = {
    "UBIGINT": np.uint64,
    "INTEGER": np.int32,
    "TIMESTAMP": "datetime64[us]",
}
# Digits are kept only where DuckDB would print the value in another way.
DIGITS = "CASE WHEN digits IS DISTINCT FROM value::DOUBLE::VARCHAR THEN digits END AS digits"


def make(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    kinds: Mapping[str, str],
    data: Mapping[str, Sequence[Any]],
) -> None:
    """A temporary table of these columns; it replaces one of the same name."""
    selected = ", ".join(f'"{column}"::{kind} AS "{column}"' for column, kind in kinds.items())
    connection.register("incoming", arrays(data, kinds))
    connection.execute(f'CREATE OR REPLACE TEMP TABLE "{name}" AS SELECT {selected} FROM incoming')
    connection.unregister("incoming")


def clear(connection: duckdb.DuckDBPyConnection) -> None:
    """Empty tables new_runs, new_contexts and new_samples with the store's columns."""
    connection.execute(
        "; ".join(
            f'CREATE OR REPLACE TEMP TABLE "new_{table}" '
            f"({', '.join(f'{name} {kind}' for name, kind in kinds.items())})"
            for table, kinds in views.KEPT.items()
        )
    )


def drop(connection: duckdb.DuckDBPyConnection, kept: str) -> None:
    """Remove all tables except those whose names begin with `kept`."""
    names = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
    for name in (name for (name,) in names if not name.startswith(kept)):
        connection.execute(f'DROP TABLE "{name}"')


def add_contexts(connection: duckdb.DuckDBPyConnection, contexts: Iterable[Context]) -> None:
    """Add contexts to the table of the new ones, each once."""
    conditions = {context.key: context.conditions for context in contexts}
    add(connection, "contexts", [{"context": k, "conditions": v} for k, v in conditions.items()])


def add(
    connection: duckdb.DuckDBPyConnection, table: str, rows: Sequence[Mapping[str, Any]]
) -> None:
    """Add rows to the table of the new ones."""
    if not rows:
        return
    kinds = views.KEPT[table]
    selected = views.names(table).replace('"digits"', DIGITS)
    connection.register("incoming", arrays(columns(rows, kinds), kinds))
    connection.execute(f"INSERT INTO new_{table} SELECT {selected} FROM incoming")
    connection.unregister("incoming")


def columns(
    rows: Sequence[Mapping[str, Any]], names: Mapping[str, str]
) -> dict[str, Sequence[Any]]:
    """Rows turned into columns."""
    return {name: [row[name] for row in rows] for name in names}


def arrays(data: Mapping[str, Sequence[Any]], kinds: Mapping[str, str]) -> dict[str, np.ndarray]:
    """Columns as DuckDB reads them. None becomes NULL in a column of texts or DOUBLE."""
    return {
        name: np.asarray(column, dtype=NUMPY[kinds[name]])
        if kinds[name] in NUMPY
        else array(column)
        for name, column in data.items()
    }


def array(values: Sequence[Any]) -> np.ndarray:
    """A column of Python's objects; np.array would make a list of lists two-dimensional."""
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


INDEX = "index.json"
LEFTOVER = 3600.0  # seconds after which nobody still reads or writes a file that no index names
# Further files that determine the rows of the store.
DECIDE = ("record/samples.py", "record/series.py", "units.py")
CLOSED = 500_000  # rows; a part with as many is not merged with later ones
FEWER = 3  # parts are merged unless the newer has this many times fewer rows
PORTION = 1 << 20  # bytes
LARGEST = 1 << 40  # bytes of a part or of the index
_PART = re.compile(r"[0-9a-f]+-[0-9a-f]+")
_FORMAT = "FORMAT parquet, COMPRESSION zstd"


@dataclass(frozen=True)
class Part:
    """Rows of some files. digests: of its files, by table; empty if it is kept in memory."""

    name: str
    rows: int
    digests: Mapping[str, str]


@dataclass
class Index:
    """What the store holds. files: size, time of change in ns, and turn of each file.

    turn: the number of the last reading. refused: by file.
    """

    turn: int = 0
    parts: list[Part] = field(default_factory=list)
    files: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    refused: dict[str, list[str]] = field(default_factory=dict)


class Broken(Exception):
    """Why a store cannot be used. It is then made again."""


def folder_of(perflogs: Path) -> Path:
    """The folder of the store of these perflogs."""
    digest = hashlib.blake2b(os.fsencode(perflogs.resolve()), digest_size=8).hexdigest()
    return files.cache_folder() / f"history-{digest}"


@cache
def version() -> str:
    """A hash of the code that makes the rows: a store of other code is made again."""
    digest, here = hashlib.blake2b(digest_size=8), Path(__file__).parent
    for path in [*sorted(here.rglob("*.py")), *(here.parent / name for name in DECIDE)]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def load(folder: Path) -> Index | None:
    """The index of a store; None if there is no store yet. Raises Broken."""
    if not folder.is_dir():
        return None
    try:
        record = files.read_json(folder / INDEX, below=folder, limit=LARGEST)
        if record["version"] != version():
            raise Broken("another version of Siteproof made it")
        known = {name: (size, at, turn) for name, (size, at, turn) in record["files"].items()}
        parts = [Part(**part) for part in record["parts"]]
        index = Index(int(record["turn"]), parts, known, record["refused"])
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UserError as error:
        raise Broken(f"its index is {error.what}") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Broken(f"its index cannot be read ({type(error).__name__})") from None
    for part in index.parts:
        if not _PART.fullmatch(part.name):
            raise Broken("its index has a name that no part has")
        for table, digest in part.digests.items():
            _check(folder, file_name(part.name, table), digest)
    return index


def _check(folder: Path, name: str, digest: str) -> None:
    """DuckDB opens it by its name, so nobody else may have written it or be able to replace it.

    The whole file is read: a query would find damage within it late, or never.
    """
    try:
        with (
            files.opened(folder / name, below=folder, limit=LARGEST) as handle,
            os.fdopen(handle, "rb", closefd=False) as stream,
        ):
            found = hashlib.file_digest(stream, _digest).hexdigest()
    except OSError:
        raise Broken(f"{name} is missing") from None
    except UserError as error:
        raise Broken(f"{name} is {error.what}") from None
    if found != digest:
        raise Broken(f"{name} is not as it was written")


def _digest() -> hashlib.blake2b:
    return hashlib.blake2b(digest_size=16)


def file_name(part: str, table: str) -> str:
    """The file of a part's table."""
    return f"{part}.{table}.parquet"


def save(folder: Path, index: Index) -> None:
    """Write the index. Raises OSError."""
    parts = [asdict(part) for part in index.parts]
    record = {"version": version(), **vars(index), "parts": parts}
    data = json.dumps(record, separators=(",", ":")).encode()
    files.write(folder / INDEX, data, below=folder)


def write(connection: duckdb.DuckDBPyConnection, folder: Path, queries: Mapping[str, str]) -> Part:
    """Write the rows of the queries as a part that the index does not name yet.

    The folder is made, too.
    Raises OSError if it cannot be written, duckdb.Error if the queries fail.
    """
    name, count = f"{time.time_ns():x}-{secrets.token_hex(4)}", 0
    digests: dict[str, str] = {}
    folder.mkdir(0o775, parents=True, exist_ok=True)
    for table, query in queries.items():
        target = folder / file_name(name, table)
        draft = target.with_name(f".{target.name}.tmp")
        with draft.open("xb") as stream:
            rows, digests[table] = copy(connection, query, stream, _FORMAT)
        count = rows if table == "samples" else count
        draft.rename(target)
    return Part(name, count, digests)


def copy(
    connection: duckdb.DuckDBPyConnection, query: str, stream: BinaryIO, kind: str
) -> tuple[int, str]:
    """Write the rows of a query to an open file, down to the disk: how many, and the digest.

    DuckDB writes into a pipe, as it locks a file that it writes, and some file systems have no
    locks. kind: the options of COPY. Raises OSError if the file cannot be written, else
    duckdb.Error.
    """
    source, sink = os.pipe()
    with ThreadPoolExecutor(1) as pool:
        drained = pool.submit(_drain, source, stream)
        try:
            done = connection.execute(
                f"COPY ({query}) TO '/proc/self/fd/{sink}' ({kind}, USE_TMP_FILE false)"
            ).fetchall()
        except duckdb.IOException:
            os.close(sink)
            sink = -1
            drained.result()  # a full disk is the reason, not the pipe that it has closed
            raise
        finally:
            if sink >= 0:
                os.close(sink)
    return int(done[0][0]), drained.result()


def _drain(source: int, stream: BinaryIO) -> str:
    digest = _digest()
    with os.fdopen(source, "rb", buffering=0) as pipe:
        while portion := pipe.read(PORTION):
            digest.update(portion)
            stream.write(portion)
    stream.flush()
    os.fsync(stream.fileno())
    return digest.hexdigest()


def clean(folder: Path, index: Index, retired: Iterable[Part]) -> None:
    """Remove files that the index has not named for an hour. retired: parts of the index before.

    The hour is counted by the clock of the file system, which has just dated the index: a host
    whose own clock is wrong removes nothing that others still read or write.
    """
    named = {INDEX} | {file_name(part.name, t) for part in index.parts for t in part.digests}
    for part in retired:
        for table in part.digests:
            with suppress(OSError):
                os.utime(folder / file_name(part.name, table))
    now = (folder / INDEX).stat().st_mtime
    for path in folder.iterdir():
        with suppress(OSError):  # another writer has removed it, or it belongs to another user
            if path.name not in named and now - path.stat().st_mtime > LEFTOVER:
                path.unlink()


def quoted(text: object) -> str:
    """A text as a literal of SQL."""
    return "'" + str(text).replace("'", "''") + "'"


def to_merge(parts: list[Part]) -> int:
    """How many of the last parts should become one; 0: none. A large store then has few parts."""
    count, total = 0, 0
    for part in reversed(parts):
        if part.rows >= CLOSED or (count and part.rows > FEWER * total):
            break
        count, total = count + 1, total + part.rows
    return count if count > 1 else 0


def live(table: str, relations: Iterable[str], turns: str) -> str:
    """SQL for the rows of a table whose files have not changed since they were read."""
    found = " UNION ALL ".join(f"SELECT {views.names(table)} FROM {r}" for r in relations)
    if table == "contexts":
        return f"SELECT DISTINCT {views.names(table)} FROM ({found})"
    return (
        f"SELECT * FROM ({found}) WHERE (run >> {views.RUN_SHIFT}) IN "
        f"(SELECT turn FROM {turns}) ORDER BY {views.ORDER[table]}"
    )
