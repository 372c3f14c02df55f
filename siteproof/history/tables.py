"""Tables of DuckDB made from columns of Python, and the store's own ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import numpy as np
from numpy.typing import DTypeLike

from siteproof.history import views

NUMPY: dict[str, DTypeLike] = {
    "UBIGINT": np.uint64,
    "INTEGER": np.int32,
    "TIMESTAMP": "datetime64[us]",
}
# The digits are kept where they are not just what the value is printed as.
DIGITS = "CASE WHEN digits IS DISTINCT FROM value::DOUBLE::VARCHAR THEN digits END AS digits"


def make(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    kinds: Mapping[str, str],
    held: Mapping[str, Sequence[Any]],
) -> None:
    """A temporary table of these columns, in place of one of that name."""
    told = ", ".join(f'"{column}"::{kind} AS "{column}"' for column, kind in kinds.items())
    connection.register("incoming", arrays(held, kinds))
    connection.execute(f'CREATE OR REPLACE TEMP TABLE "{name}" AS SELECT {told} FROM incoming')
    connection.unregister("incoming")


def clear(connection: duckdb.DuckDBPyConnection) -> None:
    """Empty tables new_runs, new_contexts and new_samples, of the store's columns."""
    connection.execute(
        "; ".join(
            f'CREATE OR REPLACE TEMP TABLE "new_{table}" '
            f"({', '.join(f'{name} {kind}' for name, kind in kinds.items())})"
            for table, kinds in views.KEPT.items()
        )
    )


def drop(connection: duckdb.DuckDBPyConnection, kept: str) -> None:
    """Remove all tables but those whose names begin with `kept`."""
    names = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
    for name in (name for (name,) in names if not name.startswith(kept)):
        connection.execute(f'DROP TABLE "{name}"')


def add(
    connection: duckdb.DuckDBPyConnection, table: str, rows: Sequence[Mapping[str, Any]]
) -> None:
    """Add rows to the table of the new ones."""
    if rows:
        add_columns(connection, table, columns(rows, views.KEPT[table]))


def add_columns(
    connection: duckdb.DuckDBPyConnection, table: str, held: Mapping[str, Sequence[Any]]
) -> None:
    """The same with columns."""
    told = views.names(table).replace('"digits"', DIGITS)
    connection.register("incoming", arrays(held, views.KEPT[table]))
    connection.execute(f"INSERT INTO new_{table} SELECT {told} FROM incoming")
    connection.unregister("incoming")


def remove(connection: duckdb.DuckDBPyConnection, turn: int) -> None:
    """Take back what was added of a file."""
    for table in ("runs", "samples"):
        connection.execute(f"DELETE FROM new_{table} WHERE run >> {views.RUN_SHIFT} = ?", [turn])


def columns(
    rows: Sequence[Mapping[str, Any]], names: Mapping[str, str]
) -> dict[str, Sequence[Any]]:
    """Rows turned into columns."""
    return {name: [row[name] for row in rows] for name in names}


def arrays(held: Mapping[str, Sequence[Any]], kinds: Mapping[str, str]) -> dict[str, np.ndarray]:
    """Columns as DuckDB takes them. None is a NULL where the kind allows it."""
    return {
        name: np.asarray(column, dtype=NUMPY[kinds[name]])
        if kinds[name] in NUMPY
        else array(column)
        for name, column in held.items()
    }


def array(held: Sequence[Any]) -> np.ndarray:
    """A column of Python's objects; np.array would look into lists."""
    found = np.empty(len(held), dtype=object)
    found[:] = held
    return found
