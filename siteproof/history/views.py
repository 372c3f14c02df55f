"""The views that a user may query: `samples`, one row a value, and `runs`, one row a file.

Each column has its sentence here; `siteproof history --columns` shows them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """A column of a view. kind: its type in SQL. says: what it holds, in one sentence."""

    name: str
    kind: str
    says: str


_HEADER = (
    Column("system", "VARCHAR", "The system that was measured."),
    Column("partition", "VARCHAR", "Its partition; 'published' for published figures."),
    Column("environment", "VARCHAR", "The programming environment."),
    Column("session", "VARCHAR", "The session, whose name begins with its start in UTC."),
    Column("campaign", "VARCHAR", "The campaign that the session belongs to; empty if none."),
    Column("mode", "VARCHAR", "quick, maintenance, acceptance, published, or imported."),
    Column("check_name", "VARCHAR", "The check, such as Stream."),
    Column("job", "VARCHAR", "The job's number in the scheduler."),
    Column("time", "TIMESTAMP", "When the job ended, in UTC."),
    Column("file", "VARCHAR", "The file below perflogs that holds the row."),
    Column("source", "VARCHAR",
           "siteproof, published (figures of others), or reframe (logs of plain ReFrame)."),
)
SAMPLES = (
    *_HEADER,
    Column("node", "VARCHAR", "The node, or the sender of a pair; empty for links and systems."),
    Column("metric", "VARCHAR",
           "Check and figure, such as Stream.triad; Stream.* where a failure speaks of all."),
    Column("value", "DOUBLE", "The value in the tool's unit; NULL for a text or a failure."),
    Column("digits", "VARCHAR", "The value as logged, or the text; NULL for a failure."),
    Column("unit", "VARCHAR", "The tool's unit; empty for a failure."),
    Column("base", "DOUBLE",
           "The value in the base unit of its kind: bytes/s, bytes, s, FLOPS, Hz, 1 of a share."),
    Column("kind", "VARCHAR", "What the unit measures: rate, size, time, flops, share, text …"),
    Column("status", "VARCHAR", "ok, or why there is no value: timeout, checksum, node_lost …"),
    Column("why", "VARCHAR", "The reason of a failure in words."),
    Column("trial", "INTEGER", "The repetition within the job, from 0."),
    Column("dims", "VARCHAR", "What the value belongs to beyond its node, as JSON: size, peer …"),
    Column("conditions", "VARCHAR",
           "Under which conditions it was measured, those of the job and of the node, as JSON."),
    Column("series", "UBIGINT",
           "Equal for values that may be compared, whichever node or day they are of."),
)
RUNS = (
    *_HEADER,
    Column("expected", "VARCHAR", "The nodes that the job had to measure, as a node set."),
    Column("samples", "INTEGER", "How many rows of `samples` the file has."),
    Column("conditions", "VARCHAR", "The conditions that all samples of the job share, as JSON."),
    Column("provenance", "VARCHAR",
           "Revision of the suite, kernel, software lock, tools and user, as JSON."),
)
VIEWS = {"samples": SAMPLES, "runs": RUNS}


def definition(columns: tuple[Column, ...]) -> str:
    """The columns as CREATE TABLE wants them."""
    return ", ".join(f'"{c.name}" {c.kind}' for c in columns)
