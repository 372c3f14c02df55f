"""The fast reader, in SQL, of sample files that are exactly as `samples.write` makes them.

It takes an eighth of the time of `samples.read` and `rows`, as it works on columns and not on
lines. It has no rules of its own: it gives the different nodes, metrics and ends of lines, of which
there are few, to the reader of the record. A file with one line that is not exactly as the record
would write it again is left to `samples.read`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache

import duckdb
import numpy as np

from siteproof import units
from siteproof.history import rows, tables
from siteproof.record import samples
from siteproof.record.samples import STATUSES, Header, Sample

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


def body(data: bytes) -> str | None:
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
        {"unit": known, "kind": [*map(units.kind, known)], "factor": [*map(rows.factor, known)]},
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
        {"metric": metrics, "part": [*map(rows.of_metric, metrics)]},
    )
    ends = [
        {
            "tail": text,
            "why": sample.why,
            "trial": sample.trial,
            "dims": rows.canonical(sample.dims),
            "own": rows.canonical(sample.own_conditions),
            "part": rows.of_dims(sample.dims),
        }
        for text, sample in tails.items()
        if sample
    ]
    tables.make(connection, "tails", TAILS, tables.columns(ends, TAILS))
    used = connection.execute(
        "SELECT DISTINCT run, own FROM parsed JOIN tails USING (tail)"
    ).fetchall()
    contexts = [rows.context(heads[run], json.loads(own)) for run, own in used]
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
