"""Samples and answers for PostgreSQL: what `psql` reads, in one transaction. Pure functions.

What was measured is data of COPY, and never part of a statement. The columns are those of the views
of the history and of the answer in JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from siteproof.export.documents import Verdicts, plain, schema
from siteproof.history.views import RUNS, SAMPLES, Column

HISTORY = {  # a view of the history, and what it holds
    "runs": (RUNS, "The jobs, one row a file of perflogs; of imported logs one for each job."),
    "samples": (SAMPLES, "The values, and why there are none."),
}
ANSWERS = {  # a type of the answer in JSON, its keys that are no columns, and what identifies a row
    "answers": ("Verdicts", {"format", "criteria", "fleet"}, ()),
    "criteria": ("CriterionAnswer", {"age", "nodes"}, ("id",)),
    "units": ("UnitAnswer", set(), ("criterion", "row")),
    "nodes": ("NodeAnswer", set(), ("node",)),
}
KINDS = {  # PostgreSQL's type of one in SQL of the history, or in JSON; of all others: jsonb
    "VARCHAR": "text",
    "DOUBLE": "double precision",
    "TIMESTAMP": "timestamptz",
    "INTEGER": "bigint",
    "UBIGINT": "numeric(20)",
    "string": "text",
    "number": "double precision",
    "date-time": "timestamptz",
    "integer": "bigint",
    "boolean": "boolean",
}
CENTRE = Column("centre", "text", "The centre that sent the row, whose role has the same name.")
ROW = Column("row", "bigint", "Its number in the file, from 1.")
OF_ANSWER = (
    CENTRE,
    Column("system", "text", "The system that it is about."),
    Column("campaign", "text", "The campaign that was judged; empty: the newest answers of all."),
    Column("newest", "text", "The newest session that the answer rests on; empty without one."),
)
MORE = {  # further columns of a table of answers
    "answers": [Column("place", "bigint", "The number of that session; 0 if it has none.")],
    "units": [
        Column("criterion", "text", "The criterion, id in 'criteria'."),
        Column("row", "bigint", "Its place in the criterion, from 1, the worst first."),
    ],
}
OF_FILE = ("centre", "system", "file")
# Without it psql would go on after an error, take the rows of a COPY that failed for statements,
# and end with 0.
STOP = "\\set ON_ERROR_STOP on"
# The isolation: what another export wrote while this one waited for the lock must be seen.
BEGIN = f"""\
{STOP}
\\encoding UTF8
BEGIN ISOLATION LEVEL READ COMMITTED;
"""
LOCK = """\
DO $$ BEGIN
PERFORM pg_advisory_xact_lock(hashtextextended(concat_ws('/', centre, system), 0))
FROM pg_temp.new_answers;
END $$;
"""
# All may read what they are granted; only the role of a centre writes its rows.
RIGHTS = """\
ALTER TABLE {name} ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS reading ON {name};
DROP POLICY IF EXISTS writing ON {name};
CREATE POLICY reading ON {name} FOR SELECT USING (true);
CREATE POLICY writing ON {name} USING (centre = current_user);"""
LATEST = """\
CREATE OR REPLACE VIEW siteproof.latest AS
SELECT DISTINCT ON (centre, system, campaign) centre, system, campaign, newest
FROM siteproof.answers
ORDER BY centre, system, campaign, place DESC, last DESC NULLS LAST, newest DESC;"""
ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\0": "\ufffd"}
_ESCAPED = str.maketrans(ESCAPES)
_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")  # as JSON has it; jsonb refuses it, as text does
NULL = "\\N"
Row = Sequence[Any]


@dataclass(frozen=True)
class Table:
    """A table. key: what identifies a row.

    part: the columns of the key whose rows are sent together, so that those that are not sent again
    are gone. of: the table whose rows name the parts that are sent.
    """

    name: str
    about: str
    columns: Sequence[Column]
    key: Sequence[str]
    part: Sequence[str]
    of: str

    @property
    def names(self) -> list[str]:
        """Its columns."""
        return [column.name for column in self.columns]


@cache
def tables() -> Sequence[Table]:
    """All tables, those first that name what is sent."""
    parts = schema(Verdicts, "export json")["$defs"]
    return [*map(_of_view, HISTORY), *(_of_answer(name, parts) for name in ANSWERS)]


def _of_view(name: str) -> Table:
    columns, about = HISTORY[name]
    own = [Column(c.name, "jsonb" if c.is_json else KINDS[c.kind], c.meaning) for c in columns]
    return Table(name, about, [CENTRE, ROW, *own], (*OF_FILE, "row"), OF_FILE, "runs")


def _of_answer(name: str, parts: Mapping[str, Any]) -> Table:
    kind, left_out, identity = ANSWERS[name]
    part = [column.name for column in OF_ANSWER]
    own = [
        Column(key, _kind(one), one["description"])
        for key, one in parts[kind]["properties"].items()
        if key not in left_out and key not in part
    ]
    columns = [*OF_ANSWER, *MORE.get(name, ()), *own]
    return Table(name, parts[kind]["description"], columns, (*part, *identity), part, "answers")


def _kind(of: Mapping[str, Any]) -> str:
    """PostgreSQL's type of a key, by its JSON Schema."""
    kinds = [one for one in of.get("anyOf", [of]) if one.get("type") != "null"]
    if len(kinds) != 1:
        return "jsonb"
    return KINDS.get(kinds[0].get("format", kinds[0].get("type")), "jsonb")


# ---- the tables


def create() -> str:
    """The statements that make the tables, each column with its meaning."""
    return "\n".join(
        [
            STOP,
            "BEGIN;",
            "SET LOCAL client_min_messages = warning;",  # not what is there, or not yet
            "CREATE SCHEMA IF NOT EXISTS siteproof;",
            *map(_create, tables()),
            LATEST,
            "COMMIT;\n",
        ]
    )


def _create(table: Table) -> str:
    name = f"siteproof.{table.name}"
    meanings = (
        f"COMMENT ON COLUMN {name}.{_quoted(c.name)} IS {_literal(c.meaning)};"
        for c in table.columns
    )
    return "\n".join(
        [
            f"CREATE TABLE IF NOT EXISTS {name} (\n{_definitions(table)});",
            f"COMMENT ON TABLE {name} IS {_literal(table.about)};",
            *meanings,
            RIGHTS.format(name=name),
        ]
    )


def _definitions(table: Table) -> str:
    """What a table consists of; the same for that of what is new."""
    columns = [f"{_quoted(column.name)} {column.kind}" for column in table.columns]
    return ",\n".join([*columns, f"PRIMARY KEY ({_list(table.key)})"])


# ---- the data


def data(
    verdicts: Verdicts, of: Mapping[str, Any], runs: Iterable[Row], samples: Iterable[Row]
) -> Iterator[str]:
    """What psql reads. of: centre, campaign, newest session and its place.

    runs, samples: rows of these views, each after its number in its file.
    """
    views, answers = {"runs": runs, "samples": samples}, _answers(verdicts)
    shared = {**of, "system": verdicts.system}
    yield BEGIN
    for table in tables():
        name, kinds = table.name, [column.kind for column in table.columns]
        yield f"CREATE TEMP TABLE new_{name} (\n{_definitions(table)}) ON COMMIT DROP;\n"
        yield f"COPY pg_temp.new_{name} ({_list(table.names)}) FROM stdin;\n"
        for row in views.get(name, ()):
            yield _line((of["centre"], *row), kinds)
        for one in answers.get(name, ()):
            yield _line([{**one, **shared}.get(key) for key in table.names], kinds)
        # Without its index and statistics the merge of 100,000 rows did not end in nine minutes.
        yield f"\\.\nANALYZE pg_temp.new_{name};\n"
    yield LOCK
    for table in tables():
        yield _merge(table)
    yield "COMMIT;\n"


def _answers(verdicts: Verdicts) -> dict[str, Iterable[Mapping[str, Any]]]:
    """The rows of the tables of answers, by their keys in JSON."""
    answer = plain(verdicts)
    units = (
        {"criterion": criterion["id"], "row": place, **unit}
        for criterion in answer["criteria"]
        for place, unit in enumerate(criterion["nodes"], 1)
    )
    return {
        "answers": [answer],
        "criteria": answer["criteria"],
        "units": units,
        "nodes": answer["fleet"]["nodes"],
    }


def _line(row: Row, kinds: Iterable[str]) -> str:
    return "\t".join(map(_cell, row, kinds)) + "\n"


def _cell(value: Any, kind: str) -> str:
    """A value in the text format of COPY. A text for a JSON column is JSON already."""
    if value is None:
        return NULL
    if kind == "jsonb":
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        value = _NUL.sub("\\1\ufffd", text) if "\\u0000" in text else text
    if isinstance(value, str):
        return value.translate(_ESCAPED)
    return f"{value}+00" if isinstance(value, datetime) else str(value)


def _merge(table: Table) -> str:
    """What is new or has changed is written, and what was not sent again is removed."""
    new, kept = f"pg_temp.new_{table.name}", f"siteproof.{table.name}"
    names = _list(table.names)
    return f"""\
INSERT INTO {kept} AS t ({names})
SELECT {names} FROM {new} ORDER BY {_list(table.key)}
ON CONFLICT ({_list(table.key)}) DO UPDATE SET ({names}) = ROW ({_list(table.names, "excluded")})
WHERE ({_list(table.names, "t")}) IS DISTINCT FROM ({_list(table.names, "excluded")});
DELETE FROM {kept} AS t USING (SELECT DISTINCT {_list(table.part)} FROM pg_temp.new_{table.of}) AS p
WHERE {_equal(table.part, "p")} AND NOT EXISTS (
  SELECT FROM {new} AS n WHERE {_equal(table.key, "n")});
"""


def _equal(names: Iterable[str], other: str) -> str:
    return " AND ".join(f"t.{_quoted(name)} = {other}.{_quoted(name)}" for name in names)


def _list(names: Iterable[str], of: str = "") -> str:
    return ", ".join(f"{of}.{_quoted(name)}" if of else _quoted(name) for name in names)


def _quoted(name: str) -> str:
    return f'"{name}"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
