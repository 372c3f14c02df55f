"""The views that a user may query: `samples`, one row a value, and `runs`, one row a file.

Each column is described here; `siteproof history --columns` prints it, and `--help` the examples.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """A column of a view. kind: its type in SQL. meaning: one sentence.

    sql: its value in the store's tables r (runs), s (samples) and c (contexts), if that is not a
    column of the same name. is_json: whether its text is JSON.
    """

    name: str
    kind: str
    meaning: str
    sql: str = ""
    is_json: bool = False


_HEADER = (
    Column("system", "VARCHAR", "The system that was measured."),
    Column("partition", "VARCHAR", "Its partition; 'published' for published values."),
    Column("environment", "VARCHAR", "The programming environment."),
    Column("session", "VARCHAR", "The session, whose name begins with its start in UTC."),
    Column("campaign", "VARCHAR", "The campaign that the session belongs to; empty if none."),
    Column("mode", "VARCHAR", "quick, maintenance, acceptance, published, or imported."),
    Column("check_name", "VARCHAR", "The check, such as Stream."),
    Column("job", "VARCHAR", "The job's number in the scheduler."),
    Column("time", "TIMESTAMP", "When the job ended, in UTC."),
    Column("file", "VARCHAR", "The file below perflogs that holds the row."),
    Column(
        "source",
        "VARCHAR",
        "siteproof, published (values from a report), or reframe (logs of plain ReFrame).",
    ),
    Column(
        "place",
        "INTEGER",
        "The session's number in the order of sessions; 0 if it has none, and is older.",
    ),
)
SAMPLES = (
    *_HEADER,
    Column("node", "VARCHAR", "The node, or the sender of a pair; empty for links and systems."),
    Column(
        "metric",
        "VARCHAR",
        "Check and metric, such as Stream.triad; Stream.* if a failure concerns all of a check.",
    ),
    Column("value", "DOUBLE", "The value in the tool's unit; NULL for a text or a failure."),
    Column(
        "digits",
        "VARCHAR",
        "The value as logged, or the text; NULL for a failure.",
        "CASE WHEN s.status = 'ok' THEN coalesce(s.digits, s.value::VARCHAR) END",
    ),
    Column("unit", "VARCHAR", "The tool's unit; empty for a failure."),
    Column(
        "base",
        "DOUBLE",
        "The value in the base unit of its kind: bytes/s, bytes, s, FLOPS, Hz, 1 of a share.",
        "s.value * s.factor",
    ),
    Column("kind", "VARCHAR", "What the unit measures: rate, size, time, flops, share, text …"),
    Column("status", "VARCHAR", "ok, or why there is no value: timeout, checksum, node_lost …"),
    Column("why", "VARCHAR", "The reason of a failure in words."),
    Column("trial", "INTEGER", "The repetition within the job, from 0."),
    Column(
        "dims",
        "VARCHAR",
        "What the value belongs to beyond its node, as JSON: size, peer …",
        is_json=True,
    ),
    Column(
        "conditions",
        "VARCHAR",
        "Under which conditions it was measured, those of the job and of the node, as JSON.",
        "c.conditions",
        is_json=True,
    ),
    Column(
        "series",
        "UBIGINT",
        "Equal for values that may be compared, whichever node or day they are of.",
    ),
)
RUNS = (
    *_HEADER,
    Column("expected", "VARCHAR", "The nodes that the job had to measure, as a node set."),
    Column("samples", "INTEGER", "How many rows of `samples` the file has."),
    Column(
        "conditions",
        "VARCHAR",
        "The conditions that all samples of the job share, as JSON.",
        is_json=True,
    ),
    Column(
        "provenance",
        "VARCHAR",
        "Revision of the suite, kernel, software lock, tools and user, as JSON.",
        is_json=True,
    ),
)
VIEWS = {"samples": SAMPLES, "runs": RUNS}
# What the store keeps. digits: NULL where the value's own text is the same.
KEPT = {
    "runs": {"run": "UBIGINT", **{c.name: c.kind for c in RUNS}},
    "contexts": {"context": "UBIGINT", "conditions": "VARCHAR"},
    "samples": {
        "run": "UBIGINT",
        "node": "VARCHAR",
        "metric": "VARCHAR",
        "value": "DOUBLE",
        "digits": "VARCHAR",
        "unit": "VARCHAR",
        "factor": "DOUBLE",
        "kind": "VARCHAR",
        "status": "VARCHAR",
        "why": "VARCHAR",
        "trial": "INTEGER",
        "dims": "VARCHAR",
        "context": "UBIGINT",
        "series": "UBIGINT",
    },
}
IMPORTED = "imported"  # the folder of a system's foreign files
RUN_SHIFT = 32  # a run's number is that of its file's turn, and one within the file
ORDER = {"samples": "metric, node, run", "runs": "run", "contexts": "context"}


def names(table: str) -> str:
    """The columns of a kept table, as a list for SELECT."""
    return ", ".join(f'"{name}"' for name in KEPT[table])


def create(samples: Iterable[str], contexts: Iterable[str]) -> Sequence[str]:
    """SQL that makes the views from a table `live_runs` and these relations.

    `stored` and `contexts` are for the analyses that read millions of rows: `stored` has rows of
    runs that do not count, too, until it is joined to `live_runs`.
    """
    columns = ", ".join(f"{sql(column)} AS {_quoted(column.name)}" for column in SAMPLES)
    runs = ", ".join(_quoted(c.name) for c in RUNS)
    return (
        f"CREATE OR REPLACE TEMP VIEW stored AS {_union('samples', samples)}",
        "CREATE OR REPLACE TEMP VIEW contexts AS "
        "SELECT context, any_value(conditions) AS conditions "
        f"FROM ({_union('contexts', contexts)}) GROUP BY context",
        f"CREATE OR REPLACE TEMP VIEW samples AS SELECT {columns} FROM stored s "
        "JOIN live_runs r USING (run) LEFT JOIN contexts c USING (context)",
        f"CREATE OR REPLACE TEMP VIEW runs AS SELECT {runs} FROM live_runs",
    )


def sql(column: Column) -> str:
    """A column of the view `samples` in the store's tables."""
    table = "r" if column in _HEADER else "s"
    return column.sql or f"{table}.{_quoted(column.name)}"


def _union(table: str, relations: Iterable[str]) -> str:
    return " UNION ALL ".join(f"SELECT {names(table)} FROM {r}" for r in relations)


def _quoted(name: str) -> str:
    return f'"{name}"'


@dataclass(frozen=True)
class Question:
    """An example. sql: a statement as a person would type it."""

    title: str
    sql: str


NODE, SINCE = "n017", "2026-11-01"  # what the examples name
HISTORY = Question(
    "one node's history",
    f"""\
SELECT time, metric, value, unit, status FROM samples
WHERE node = '{NODE}' ORDER BY metric, series, time""",
)
TODAY = Question(
    "the fleet's newest values against its past, node by node, worst first",
    """\
WITH newest AS (SELECT series, max(time)::DATE AS day FROM samples GROUP BY series)
SELECT metric, node, median(base) FILTER (time::DATE = day) AS today,
  median(base) FILTER (time::DATE < day) AS past, round(today / past - 1, 4) AS change
FROM samples JOIN newest USING (series) WHERE status = 'ok' AND node <> ''
GROUP BY series, metric, node HAVING change IS NOT NULL ORDER BY abs(change) DESC""",
)
CHANGED = Question(
    "what has changed since a day by more than 2 % and 3 robust sd",
    f"""\
WITH moved AS (SELECT metric, node, median(base) FILTER (time < '{SINCE}') AS before,
    mad(base) FILTER (time < '{SINCE}') AS mad, median(base) FILTER (time >= '{SINCE}') AS after
  FROM samples WHERE status = 'ok' GROUP BY series, metric, node)
SELECT metric, node, before, after, round(after / before - 1, 4) AS change FROM moved
WHERE abs(after - before) > greatest(0.02 * abs(before), 3 * 1.4826 * mad)
ORDER BY abs(change) DESC""",
)
KERNEL = Question(
    "when the kernel changed",
    """\
SELECT system, provenance ->> 'kernel' AS kernel, min(time) AS first, max(time) AS last
FROM runs GROUP BY ALL ORDER BY first""",
)
QUESTIONS = (HISTORY, TODAY, CHANGED, KERNEL)
