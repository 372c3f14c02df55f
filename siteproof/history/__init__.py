"""Performance history: everything below perflogs, to be asked in SQL.

    with history.open_history(perflogs) as h:
        h.sql("SELECT time, value FROM samples WHERE node = ? ORDER BY time", ["node017"])

`siteproof history --columns` says what the views hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from siteproof import samples
from siteproof.errors import UserError
from siteproof.history import rows, views

Told = Callable[[int, int], None]


class History:
    """The views `samples` and `runs`. refused: `FILE:LINE: why` of what was left out."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, refused: Sequence[str]) -> None:
        self._connection = connection
        self.refused = list(refused)

    def sql(self, query: str, parameters: object = ()) -> list[tuple[Any, ...]]:
        """The rows that a query yields."""
        return self._connection.execute(query, parameters).fetchall()

    def columns(self, query: str, parameters: object = ()) -> dict[str, np.ndarray]:
        """The same by columns; a masked array where there are NULLs."""
        return self._connection.execute(query, parameters).fetchnumpy()


@contextmanager
def open_history(
    perflogs: Path, systems: Sequence[str] = (), *, refresh: bool = True, told: Told | None = None
) -> Iterator[History]:
    """The history of some systems or of all, brought up to date first."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    try:
        refused: list[str] = []
        runs: list[dict[str, Any]] = []
        kept: list[dict[str, Any]] = []
        for system in systems or sorted(p.name for p in perflogs.iterdir() if p.is_dir()):
            for path in samples.files(perflogs, system):
                try:
                    found = samples.read(path)
                except UserError as error:
                    refused.append(str(error))
                    continue
                if found:
                    file = str(path.relative_to(perflogs))
                    runs.append(rows.run_row(found[0].header, file, len(found)))
                    kept += [rows.sample_row(sample, file) for sample in found]
        for name, held in (("samples", kept), ("runs", runs)):
            connection.execute(f"CREATE TABLE {name} ({views.definition(views.VIEWS[name])})")
            if held:
                names = [c.name for c in views.VIEWS[name]]
                connection.register("incoming", _arrays(rows.columns(held, names)))
                connection.execute(f"INSERT INTO {name} SELECT * FROM incoming")
                connection.unregister("incoming")
        yield History(connection, refused)
    finally:
        connection.close()


def _arrays(columns: dict[str, list[Any]]) -> dict[str, np.ndarray]:
    kinds = {"series": np.uint64, "time": "datetime64[us]", "trial": np.int32, "samples": np.int32}
    return {name: np.array(held, dtype=kinds.get(name, object)) for name, held in columns.items()}
