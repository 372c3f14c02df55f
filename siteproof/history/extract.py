"""Output of the history: exported files of samples, and answers to a user's SQL."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import duckdb

from siteproof.errors import UserError, hint
from siteproof.history import History, tables, views
from siteproof.history.tables import quoted
from siteproof.record import campaign

T = TypeVar("T")
AGAIN = 0.1  # s; DuckDB ignores an interrupt that comes before its query has started
FORMATS = {
    ".csv": "FORMAT csv, HEADER true",
    ".parquet": "FORMAT parquet, COMPRESSION zstd",
    ".jsonl": "FORMAT json",
}
NUMBER = r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?"
FORMULA = "=+-@\t\r"  # a spreadsheet calculates a cell that begins with one of them
ZONED = "TIMESTAMP WITH TIME ZONE"  # DuckDB needs a further library to return it
MAX_TEXTS = 40  # names that a message lists
PORTION = 10_000  # rows of an answer that are fetched at once


@dataclass(frozen=True)
class Wanted:
    """Which samples are selected; an empty field does not restrict them."""

    systems: Sequence[str] = ()
    campaign: str = ""
    metrics: Sequence[str] = ()
    nodes: Sequence[str] = ()
    since: datetime | None = None  # UTC, without a zone

    @property
    def lists(self) -> dict[str, Sequence[str]]:
        """The columns that are restricted, each with the texts that it may have."""
        found = {
            "system": self.systems,
            "metric": self.metrics,
            "node": self.nodes,
            "campaign": [self.campaign] if self.campaign else (),
        }
        return {column: texts for column, texts in found.items() if texts}

    @property
    def sql(self) -> str:
        """The condition after WHERE."""
        conditions = [
            f"{column} IN ({', '.join(map(quoted, texts))})" for column, texts in self.lists.items()
        ]
        if self.since:
            conditions.append(f"time >= TIMESTAMP {quoted(self.since)}")
        return " AND ".join(conditions) or "TRUE"

    def must_be_known(self, history: History) -> None:
        """Raises UserError for a name that no sample has, with the names that samples have."""
        if self.lists and not history.systems:
            raise UserError("history", campaign.NOTHING, hint=campaign.MEASURE)
        for column, texts in self.lists.items():
            known = history.systems if column == "system" else _names_in(history, column)
            if unknown := [text for text in texts if text not in known]:
                few = len(known) <= MAX_TEXTS
                allowed = known if few else [f"a name such as {known[0]}"]
                what = f"no sample has '{unknown[0]}'{hint(unknown[0], known)}"
                raise UserError(f"--{column}", what, allowed)


def _names_in(history: History, column: str) -> list[str]:
    rows = history.sql(
        f"SELECT DISTINCT {column} FROM samples WHERE {column} <> '' ORDER BY {column}"
    )
    return [name for (name,) in rows]


def export(history: History, file: Path, wanted: Wanted) -> int:
    """Write samples into a file, whole or not at all; how many. Raises UserError, OSError."""
    target = file.resolve()
    if target.suffix not in FORMATS:
        raise UserError(
            "--export",
            f"'{file.name}' has no known ending",
            [f"NAME{suffix}" for suffix in FORMATS],
        )
    if target.is_dir() or not target.parent.is_dir():
        raise UserError("--export", f"{file} is a folder, or its folder does not exist")
    columns = ", ".join(_column(c, target.suffix == ".csv") for c in views.SAMPLES)
    query = (
        f"SELECT {columns} FROM samples s WHERE {wanted.sql} "
        "ORDER BY s.system, s.place, s.time, s.file, s.node, s.metric, s.trial, s.dims"
    )
    draft = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        count = _copy(history, query, draft, FORMATS[target.suffix])
        if not count:
            raise UserError("--export", "no sample matches all options")
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
    return count


def _copy(history: History, query: str, draft: Path, kind: str) -> int:
    try:
        with draft.open("xb") as stream:
            return tables.copy(history.connection, query, stream, kind)[0]
    except duckdb.Error as error:
        raise OSError(5, _reason(error), str(draft.parent)) from None


def _column(column: views.Column, is_sheet: bool) -> str:
    """A column of an exported file; in CSV no text begins like a formula."""
    if not is_sheet or column.kind != "VARCHAR":
        return f's."{column.name}"'
    name, marks = f's."{column.name}"', ", ".join(f"chr({ord(mark)})" for mark in FORMULA)
    return (
        f"CASE WHEN left({name}, 1) IN ({marks}) AND NOT regexp_full_match({name}, '{NUMBER}') "
        f"""THEN '''' || {name} ELSE {name} END AS "{column.name}\""""
    )


def rows(history: History, view: str, wanted: Wanted) -> Iterator[tuple[Any, ...]]:
    """The rows of the files that have a wanted run, each after its number in its file.

    Whole files, so that a row has the same number again. wanted: systems and a time.
    """
    names = ", ".join(f'"{column.name}"' for column in views.VIEWS[view])
    connection = history.connection
    connection.execute(
        f"SELECT row_number() OVER (PARTITION BY file ORDER BY {names}), {names} FROM {view} "
        f"WHERE file IN (SELECT file FROM runs WHERE {wanted.sql})"
    )
    while portion := interruptible(connection, lambda: connection.fetchmany(PORTION)):
        yield from portion


def cell(value: object) -> object:
    """A cell of an answer in CSV: no text begins like a formula."""
    is_formula = isinstance(value, str) and value[:1] and value[0] in FORMULA
    return f"'{value}" if is_formula and not re.fullmatch(NUMBER, str(value)) else value


def ask(history: History, query: str) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
    """Names and rows of a user's SELECT. It can read only the views, and cannot write.

    From then on the history answers only such queries. Raises UserError for a mistake.
    """
    connection = history.connection
    with _explained():
        _lock(history)
        statements = connection.extract_statements(query)
        # EXPLAIN ANALYZE executes what it explains: COPY into the store, for example.
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise UserError("--sql", "not a single query", "one SELECT over samples and runs")
        interruptible(connection, lambda: connection.execute(statements[0]))
        names = _names(connection.description or ())
        first = connection.fetchmany(PORTION)
    return names, _rows(connection, first)


def interruptible(connection: duckdb.DuckDBPyConnection, act: Callable[[], T]) -> T:
    """What an act of the connection returns; Ctrl-C ends it, too, wherever DuckDB is at work."""
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(act)
        try:
            return done.result()
        except KeyboardInterrupt:
            while not done.done():
                connection.interrupt()
                wait([done], AGAIN)
            raise


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except duckdb.Error as error:
        raise UserError("--sql", _reason(error), hint="--columns lists the columns") from None


def _names(columns: Iterable[tuple[Any, ...]]) -> list[str]:
    """Names of an answer's columns. Raises UserError for a time with a zone."""
    names = []
    for name, kind, *_ in columns:
        if str(kind) == ZONED:
            raise UserError(
                "--sql",
                f"the column {name} has a zone",
                hint="Convert it to UTC in the query: ::TIMESTAMP",
            )
        names.append(name)
    return names


def _rows(
    connection: duckdb.DuckDBPyConnection, rows: list[tuple[Any, ...]]
) -> Iterator[tuple[Any, ...]]:
    while rows:
        yield from rows
        with _explained():
            rows = interruptible(connection, lambda: connection.fetchmany(PORTION))


def _lock(history: History) -> None:
    folders = [str(history.folder)] if history.folder else []
    history.connection.execute(f"SET allowed_directories = [{', '.join(map(quoted, folders))}]")
    history.connection.execute("SET enable_external_access = false")
    history.connection.execute("SET lock_configuration = true")


def _reason(error: duckdb.Error) -> str:
    """The database's message, without the lines that show the place in the query."""
    lines = [line for line in str(error).split("\nLINE ")[0].splitlines() if line.strip()]
    return " ".join(lines) or type(error).__name__
