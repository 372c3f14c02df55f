"""Rows that files of ReFrame give, as columns of the view `samples`, without a store."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import duckdb
import numpy as np

from siteproof import history
from siteproof.history import tables, views
from siteproof.history.foreign import formats
from siteproof.history.foreign.figures import File, LeftOut, Options


@dataclass(frozen=True)
class Rows:
    """What a file holds. numbers: of the line of each row."""

    columns: dict[str, np.ndarray]
    numbers: list[int]
    refused: list[str]
    notes: list[str]
    systems: set[str]
    in_samples: int
    not_selected: int
    silent: int
    provenance: dict[str, str]

    def __len__(self) -> int:
        return len(self.numbers)


def rows(path: Path, site: str = "", name: str = "", **keys: object) -> Rows:
    """All rows of a perflog or a run report, in the order of lines and metrics.

    keys: of Options.
    """
    connection = _connection()
    tables.clear(connection)
    reader, file = (
        formats.Reader(connection),
        File(path, name or path.name, site=site, options=Options(**keys)),
    )
    reader.add(file)
    reader.flush()
    names = [column.name for column in views.SAMPLES]
    shown = ", ".join(f"{views.sql(c)} AS {c.name}" for c in views.SAMPLES)
    found = connection.execute(
        f"SELECT {shown}, run FROM new_samples s JOIN new_runs r USING (run) JOIN (SELECT "
        "context, any_value(conditions) AS conditions FROM new_contexts GROUP BY context) c "
        "USING (context) ORDER BY run, s.metric"
    ).fetchall()
    held = {
        name: np.array([row[place] for row in found], dtype=object)
        for place, name in enumerate(names)
    }
    provenance: dict[str, str] = {}
    for (text,) in connection.execute("SELECT DISTINCT provenance FROM new_runs").fetchall():
        provenance |= json.loads(text)
    return Rows(
        held,
        [row[-1] for row in found],
        file.refused_lines(),
        sorted(file.notes),
        file.systems,
        file.left_out[LeftOut.IN_SAMPLES],
        file.left_out[LeftOut.NOT_SELECTED],
        file.left_out[LeftOut.SILENT],
        provenance,
    )


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    """One for all files of a test process, as opening one takes longer than reading a file."""
    made = history.connect()
    made.execute("SET threads = 1")  # so few rows are not worth another thread
    return made


def columns(held: Rows) -> dict[str, np.ndarray]:
    """One array a column."""
    return held.columns
