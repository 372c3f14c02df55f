"""Perflogs and run reports of plain ReFrame 2 to 4, as rows of the view `samples`.

`siteproof import` copies them to `perflogs/<system>/imported/`. Rows are derived from the copies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb

from siteproof.errors import UserError
from siteproof.history import tables
from siteproof.history.foreign import import_options, layouts, perflog, run_report
from siteproof.history.foreign.figures import File
from siteproof.history.foreign.origins import Refused
from siteproof.history.rows import Context

FOLDER = "imported"
_TOGETHER = 100_000  # rows that are added at once
Row = Mapping[str, Any]


def files(perflogs: Path, system: str) -> Iterator[Path]:
    """The imported files of a system in order of their names."""
    top = perflogs / system / FOLDER
    if top.is_symlink():
        yield top  # the reader refuses it
        return
    for path in sorted(top.rglob("*")):
        is_one = path.suffix != import_options.ENDING and not path.name.startswith(".")
        if is_one and (path.is_file() or path.is_symlink()):
            yield path


def rows_of(file: File) -> Iterator[tuple[Row, list[dict[str, Any]], Context]]:
    """Of each line the run, the narrow rows and their context.

    Raises UserError, and yields nothing then.
    """
    try:
        data = import_options.content(file.path)
    except OSError as error:
        raise UserError(file.path, f"cannot be read: {error.strerror}") from None
    file.is_report = data.lstrip().startswith(b"{")
    if not data.strip() or (file.is_report and b'"session_info"' not in data):
        raise layouts.neither(file.path)
    reader = run_report.Report(file, data) if file.is_report else perflog.Perflog(file, data)
    for number, part in reader.parts():
        try:
            line = reader.line(part)
            if line is not None and not file.leaves_out(line):
                yield *file.rows_of(number, line), line.origin.context
        except Refused as error:
            file.refuse(f"{reader.PART}{number}", str(error))


class Reader:
    """Adds files to the tables of the new rows, many lines at once."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection
        self._runs: list[Row] = []
        self._samples: list[Row] = []
        self._contexts: dict[int, Context] = {}

    def add(self, file: File) -> None:
        """Add a file; its rows are complete after `flush`. Raises UserError, and adds none then."""
        for run, found, context in rows_of(file):
            self._runs.append(run)
            self._samples += found
            self._contexts[context.key] = context
            if len(self._samples) > _TOGETHER:
                self.flush()

    def flush(self) -> None:
        """Add all that has been read to the tables."""
        tables.add(self.connection, "runs", self._runs)
        tables.add(self.connection, "samples", self._samples)
        tables.add_contexts(self.connection, self._contexts.values())
        self._runs.clear()
        self._samples.clear()
        self._contexts.clear()
