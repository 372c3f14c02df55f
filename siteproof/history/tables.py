"""Rows of history from samples that `samples.read` has accepted, and the tables that hold them.

The store keeps a row of `samples` narrow: what all of a job's rows share is in `runs`, and the
conditions, of which there are few, in `contexts`. The views put them together again.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import DTypeLike

from siteproof import units
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
