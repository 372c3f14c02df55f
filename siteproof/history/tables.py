"""Tables of DuckDB from columns of Python, and the tables of the new rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import duckdb
import numpy as np
from numpy.typing import DTypeLike

from siteproof.history import views
from siteproof.history.rows import Context

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
