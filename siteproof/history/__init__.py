"""Performance history: SQL queries over everything below perflogs.

    with history.open_history(perflogs) as h:
        h.sql("SELECT time, value FROM samples WHERE node = ? ORDER BY time", ["node017"])

`siteproof history --columns` describes the views. A store is derived from the files, so that a
query does not read them all. It is a cache, and may be deleted at any time.
"""

from __future__ import annotations

import os
import resource
import secrets
import sys
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Self

import duckdb
import numpy as np

from siteproof.errors import UserError, harmless
from siteproof.history import tables, views
from siteproof.history.refresh import Progress, Refresh, is_of
from siteproof.record import clocks
from siteproof.record.finding import Finding
from siteproof.record.samples import Header

_HEADS = """
    SELECT session, check_name, strftime(time, '%Y-%m-%dT%H:%M:%S'), place,
           provenance ->> ('$."' || $nodes || '"')
    FROM runs WHERE system = $system AND source = 'siteproof'"""
LEAST_MEMORY = 1500 << 20  # address space: below some 800 MiB DuckDB crashes, to 1,100 it fails
ENOUGH = "250MB"  # of memory for DuckDB while it reads, for nearly all: it sorts on disk
MAX_THREADS = 8  # others use the login node, too


@dataclass
class History:
    """The views `samples` and `runs` of what is below perflogs.

    refused: `FILE:LINE: why` of what was left out. notes: warnings about the store.
    systems: all that have files, even if only some are shown.
    folder: where the store is; None if it is in memory.
    """

    connection: duckdb.DuckDBPyConnection
    perflogs: Path
    refused: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    folder: Path | None = None
    systems: list[str] = field(default_factory=list)

    def sql(self, query: str, parameters: object = ()) -> list[tuple[Any, ...]]:
        """The rows of a query. Raises UserError if the store is damaged."""
        return self._execute(query, parameters).fetchall()

    def columns(self, query: str, parameters: object = ()) -> dict[str, np.ndarray]:
        """The same by columns; a column with NULLs is a masked array."""
        return self._execute(query, parameters).fetchnumpy()

    def _execute(self, query: str, parameters: object) -> duckdb.DuckDBPyConnection:
        try:
            return self.connection.execute(query, parameters)
        except (duckdb.IOException, duckdb.SerializationException) as error:
            raise UserError(
                self.folder or "history",
                str(error).splitlines()[0],
                hint="'siteproof history --rebuild' makes it again",
            ) from None

    def clock_findings(self, system: str) -> list[Finding]:
        """What is wrong with the clocks and numbers of a system's sessions."""
        found = self.sql(_HEADS, {"system": system, "nodes": clocks.NODES})
        heads = []
        for session, check, time, place, nodes in found:
            known = {clocks.NODES: nodes} if nodes else {}
            head = Header(session, system, "", "", check, "", f"{time}+00:00", provenance=known)
            heads.append(replace(head, place=place))
        return clocks.findings(heads)

    def close(self) -> None:
        """Free the memory."""
        self.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_history(
    perflogs: Path,
    systems: Sequence[str] = (),
    *,
    rebuild: bool = False,
    progress: Progress | None = None,
    only: Collection[str] | None = None,
) -> History:
    """The history of some systems or of all.

    The store is brought up to date first. rebuild: read every file again. progress: called with
    the number of files that have been read, and of all that are to be read. only: bring no more
    than these files up to date, by their names below perflogs; the caller asks for no others.
    Raises UserError if perflogs cannot be read.
    """

    def bring(limit: str = "") -> Refresh:
        connection = connect()
        try:
            if limit:
                connection.execute(f"SET memory_limit = '{limit}'")
            state = Refresh(connection, perflogs)
            if rebuild:
                state.forget(systems)
            try:
                state.run(systems, progress, only)
                _make_views(state, systems)
            except duckdb.IOException as error:  # another host removed a part, or the disk fails
                state.begin_again(error)
                state.run(systems, progress, only)
                _make_views(state, systems)
        except BaseException:
            connection.close()
            raise
        return state

    try:
        state = bring(ENOUGH)
    except duckdb.OutOfMemoryException:
        # Begin anew: DuckDB may leave a table that no later statement of the connection can
        # replace, and a part may have been taken from the index to be merged.
        state = bring()
    for note in state.notes:
        warn(note)
    refused = [
        line
        for file, lines in sorted(state.index.refused.items())
        if is_of(file, systems)
        for line in lines
    ]
    return History(
        state.connection,
        perflogs,
        refused,
        state.notes,
        state.folder if state.is_kept else None,
        sorted({file.partition("/")[0] for file in state.index.files}),
    )


def connect() -> duckdb.DuckDBPyConnection:
    """A database in memory that uses no network and writes only temporary files.

    Raises UserError where a limit of the shell leaves too little memory: DuckDB would crash.
    """
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    if most != resource.RLIM_INFINITY and most < LEAST_MEMORY:
        what = f"a process may have {most >> 20} MiB of memory here, and the history needs "
        raise UserError("ulimit -v", f"{what}{LEAST_MEMORY >> 20} MiB")
    threads = min(MAX_THREADS, len(os.sched_getaffinity(0)))
    spill = Path(tempfile.gettempdir()) / f"siteproof-history-{secrets.token_hex(8)}"
    connection = duckdb.connect(
        config={
            "threads": threads,
            "temp_directory": str(spill),
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "preserve_insertion_order": False,
        }
    )
    connection.execute("SET TimeZone = 'UTC'")
    # DuckDB prints a bar to standard output, into the answer, once a query takes two seconds.
    connection.execute("SET enable_progress_bar = false")
    return connection


@cache
def warn(note: str) -> None:
    """Print a warning on standard error, once."""
    print(f"siteproof: {harmless(note)}", file=sys.stderr, flush=True)


def _make_views(state: Refresh, systems: Sequence[str]) -> None:
    state.connection.execute("RESET memory_limit")
    tables.drop(state.connection, "memory ")
    tables.clear(state.connection)
    state.turns("live_turns", systems)
    state.connection.execute(f"CREATE TEMP TABLE live_runs AS {state.runs('live_turns')}")
    parts = state.index.parts
    for command in views.create(
        [state.relation(p, "samples") for p in parts] or ["new_samples"],
        [state.relation(p, "contexts") for p in parts] or ["new_contexts"],
    ):
        state.connection.execute(command)
