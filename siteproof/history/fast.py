"""The fast way in, in SQL, for sample files just as `samples.write` makes them.

A line passes when it is, character for character, what a sample's line may be; a file passes when
all of its lines do. Of every other file the fast way says nothing: it goes to `samples.read`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import duckdb
import numpy as np

from siteproof import nodesets, units
from siteproof.history import rows, tables
from siteproof.record.samples import STATUSES, Header

_TEXT = r'"[ !#-\[\]-~]*"'  # printable ASCII without escapes: nothing that json.loads would change
_OBJECT = rf"\{{(?:{_TEXT}:{_TEXT}(?:,{_TEXT}:{_TEXT})*)?\}}"
PLAIN = r"[ !#-\[\]-~]*"
NUMBER = r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,17})?"  # which a Decimal prints as it read them
SMALLEST, ZERO = "1e-6", 8  # smaller ones, and zeros of more characters, it prints otherwise
TAIL = re.compile(  # what may follow the unit or the status
    rf'(?:,"why":{_TEXT})?(?:,"trial":-?[1-9][0-9]{{0,8}})?'
    rf'(?:,"dims":{_OBJECT})?(?:,"conditions":{_OBJECT})?\}}'
)
_FAILED = ", ".join(f"'{status}'" for status in STATUSES if status != "ok")
# x: the line cut at its quotation marks. A line is as it should be if it can be put together again.
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
    """The lines of a file below its header, if the fast way may look at them."""
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
    """How many rows each run has whose lines all pass; a run that is missing did not pass.

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
    found = connection.execute(
        "SELECT run, count(*), bool_and(coalesce(good, FALSE)) FROM parsed GROUP BY run"
    ).fetchall()
    _forget(connection, [run for run, _, good in found if not good])
    _forget(connection, _strange(connection))
    contexts = _join(connection, heads)
    tables.add(
        connection,
        "contexts",
        [{"context": key, "conditions": text} for key, text in contexts.items()],
    )
    left = {run for (run,) in connection.execute("SELECT DISTINCT run FROM parsed").fetchall()}
    return counts | {run: count for run, count, _ in found if run in left}


def _forget(connection: duckdb.DuckDBPyConnection, runs: list[int]) -> None:
    if runs:
        tables.make(connection, "bad", {"run": "UBIGINT"}, {"run": runs})
        connection.execute("DELETE FROM parsed WHERE run IN (SELECT run FROM bad)")


def _strange(connection: duckdb.DuckDBPyConnection) -> list[int]:
    """The runs with a name or a tail that is not as it should be; there are few different ones."""
    looks: dict[str, Callable[[str], object]] = {
        "node": nodesets.is_name,
        "metric": re.compile(PLAIN).fullmatch,
        "tail": TAIL.fullmatch,
    }
    runs: list[int] = []
    for column, fits in looks.items():
        texts = connection.execute(f"SELECT DISTINCT {column} FROM parsed").fetchall()
        if bad := [text for (text,) in texts if not fits(text)]:
            tables.make(connection, "strange", {"text": "VARCHAR"}, {"text": bad})
            runs += [
                run
                for (run,) in connection.execute(
                    f"SELECT DISTINCT run FROM parsed WHERE {column} IN (SELECT text FROM strange)"
                ).fetchall()
            ]
    return runs


def _join(connection: duckdb.DuckDBPyConnection, heads: Mapping[int, Header]) -> dict[int, str]:
    """Prepare what gives the parsed lines their series and contexts; the contexts by their key."""
    found = connection.execute("SELECT DISTINCT metric FROM parsed").fetchall()
    metrics = [metric for (metric,) in found]
    tables.make(
        connection,
        "metrics",
        {"metric": "VARCHAR", "part": "UBIGINT"},
        {"metric": metrics, "part": [*map(rows.of_metric, metrics)]},
    )
    ends = connection.execute("SELECT DISTINCT tail FROM parsed").fetchall()
    tables.make(
        connection, "tails", TAILS, tables.columns([_tail(text) for (text,) in ends], TAILS)
    )
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
    return {c.key: c.conditions for c in contexts}


def _tail(text: str) -> dict[str, Any]:
    """What follows value or status in a line, read."""
    held = json.loads("{" + text.removeprefix(","))
    dims = held.get("dims", {})
    return {
        "tail": text,
        "why": held.get("why", ""),
        "trial": held.get("trial", 0),
        "dims": rows.canonical(dims),
        "own": rows.canonical(held.get("conditions", {})),
        "part": rows.of_dims(dims),
    }
