"""Batches of ReFrame's lines as rows of the store's tables: joined by DuckDB, not row by row."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import numpy as np

from siteproof.history import tables
from siteproof.history.foreign.arrays import SOURCE, Batch, jobs

_HEAD = {
    name: "VARCHAR"
    for name in (
        "system",
        "partition",
        "environment",
        "campaign",
        "mode",
        "check_name",
        "source",
        "file",
    )
}
_TEMPLATE = {
    "metric": "VARCHAR",
    "unit": "VARCHAR",
    "factor": "DOUBLE",
    "kind": "VARCHAR",
    "status": "VARCHAR",
    "why": "VARCHAR",
    "dims": "VARCHAR",
    "context": "UBIGINT",
    "series": "UBIGINT",
}
_RUNS = f"""
INSERT INTO new_runs BY NAME
SELECT i.run, h.* EXCLUDE (number), i.job::VARCHAR AS job,
       strftime(make_timestamp(i.began), '%Y%m%dT%H%M%SZ-{SOURCE}') AS session,
       make_timestamp(i.time) AS time, '' AS expected, 0 AS place,
       coalesce(c.samples, 0)::INTEGER AS samples,
       '{{}}' AS conditions, '{{}}' AS provenance
FROM foreign_lines i JOIN foreign_heads h ON h.number = i.head
LEFT JOIN (SELECT run, count(*) AS samples FROM foreign_figures GROUP BY run) c
ON c.run = i.run"""
_SAMPLES = """
INSERT INTO new_samples BY NAME
SELECT f.run, n.node, t.* EXCLUDE (number, conditions, factor),
       CASE WHEN NOT isnan(f.value) THEN t.factor END AS factor,
       CASE WHEN NOT isnan(f.value) THEN f.value END AS value,
       CASE WHEN NOT isnan(f.value) THEN f.digits END AS digits, f.trial
FROM foreign_figures f JOIN foreign_templates t ON t.number = f.template
JOIN foreign_nodes n ON n.number = f.node"""
_CONTEXTS = """
INSERT INTO new_contexts BY NAME SELECT DISTINCT context, conditions FROM foreign_templates"""


def add_all(connection: duckdb.DuckDBPyConnection, batches: Sequence[tuple[Batch, int]]) -> None:
    """Add batches, each with the number of its first run; many at once take little longer."""
    if not batches:
        return
    for name, held, kinds in (
        (
            "nodes",
            [{"node": node} for batch, _ in batches for node in batch.nodes],
            {"node": "VARCHAR"},
        ),
        ("heads", [head for batch, _ in batches for head in batch.heads], _HEAD),
        (
            "templates",
            [t for batch, _ in batches for t in batch.templates],
            {**_TEMPLATE, "conditions": "VARCHAR"},
        ),
    ):
        numbered = [{**row, "number": i} for i, row in enumerate(held)]
        kinds = {**kinds, "number": "UBIGINT"}
        tables.make(connection, f"foreign_{name}", kinds, tables.columns(numbered, kinds))
    lines, figures = _together(batches)
    connection.register("foreign_lines", lines)
    connection.register("foreign_figures", figures)
    try:
        for command in (_RUNS, _SAMPLES, _CONTEXTS):
            connection.execute(command)
    finally:
        connection.unregister("foreign_lines")
        connection.unregister("foreign_figures")


def _together(
    batches: Sequence[tuple[Batch, int]],
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Lines and figures of all batches, each with its run, numbered through."""
    lines, figures = [], []
    heads = templates = nodes = 0
    for batch, run in batches:
        count = len(batch.lines["number"])
        lines.append(
            {
                **batch.lines,
                "head": batch.lines["head"] + heads,
                "run": np.arange(count, dtype=np.uint64) + np.uint64(run),
            }
        )
        figures.append(
            {
                **batch.figures,
                "template": batch.figures["template"] + templates,
                "node": batch.lines["node"][batch.figures["line"]] + nodes,
                "run": batch.figures["line"].astype(np.uint64) + np.uint64(run),
            }
        )
        heads, templates = heads + len(batch.heads), templates + len(batch.templates)
        nodes += len(batch.nodes)
    numbers = jobs([part["job"] for part in lines])
    return _stacked(lines) | {"job": numbers}, _stacked(figures)


def _stacked(parts: Sequence[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
