"""Batches of ReFrame's lines as rows of the store's tables: joined by DuckDB, not row by row."""

from __future__ import annotations

import duckdb
import numpy as np

from siteproof.history import tables
from siteproof.history.reframe_types import SOURCE, Batch

_HEAD = {name: "VARCHAR" for name in (
    "system", "partition", "environment", "campaign", "mode", "check_name", "source", "file")}
_TEMPLATE = {
    "node": "VARCHAR", "metric": "VARCHAR", "unit": "VARCHAR", "factor": "DOUBLE",
    "kind": "VARCHAR", "status": "VARCHAR", "why": "VARCHAR", "dims": "VARCHAR",
    "context": "UBIGINT", "series": "UBIGINT"}
_RUNS = f"""
INSERT INTO new_runs BY NAME
SELECT $run + i.number AS run, h.* EXCLUDE (number), i.job,
       strftime(make_timestamp(i.began), '%Y%m%dT%H%M%SZ-{SOURCE}') AS session,
       make_timestamp(i.time) AS time, '' AS expected, coalesce(c.samples, 0)::INTEGER AS samples,
       '{{}}' AS conditions, '{{}}' AS provenance
FROM foreign_lines i JOIN foreign_heads h ON h.number = i.head
LEFT JOIN (SELECT line, count(*) AS samples FROM foreign_figures GROUP BY line) c
ON c.line = i.number"""
_SAMPLES = """
INSERT INTO new_samples BY NAME
SELECT $run + f.line AS run, t.* EXCLUDE (number, conditions, factor),
       CASE WHEN NOT isnan(f.value) THEN t.factor END AS factor,
       CASE WHEN NOT isnan(f.value) THEN f.value END AS value,
       CASE WHEN NOT isnan(f.value) THEN f.digits END AS digits, f.trial
FROM foreign_figures f JOIN foreign_templates t ON t.number = f.template"""
_CONTEXTS = """
INSERT INTO new_contexts BY NAME SELECT DISTINCT context, conditions FROM foreign_templates"""


def add(connection: duckdb.DuckDBPyConnection, batch: Batch, run: int) -> int:
    """Add a batch to new_runs, new_samples and new_contexts; how many runs it has.

    run: the number of the first of them.
    """
    for name, held, kinds in (
            ("heads", batch.heads, _HEAD),
            ("templates", batch.templates, {**_TEMPLATE, "conditions": "VARCHAR"})):
        numbered = [{**row, "number": i} for i, row in enumerate(held)]
        kinds = {**kinds, "number": "UBIGINT"}
        tables.make(connection, f"foreign_{name}", kinds, tables.columns(numbered, kinds))
    count = len(batch.lines["number"])
    connection.register("foreign_lines", {**batch.lines, "number": np.arange(count)})
    connection.register("foreign_figures", batch.figures)
    try:
        connection.execute(_RUNS, {"run": run})
        connection.execute(_SAMPLES, {"run": run})
        connection.execute(_CONTEXTS)
    finally:
        connection.unregister("foreign_lines")
        connection.unregister("foreign_figures")
    return count
