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
from siteproof.history.foreign import import_options, layouts, perflog, run_report, source
from siteproof.history.foreign.figures import File
from siteproof.history.foreign.import_options import Options
from siteproof.history.foreign.origins import Refused
from siteproof.history.rows import Context
from siteproof.history.views import RUN_SHIFT

FOLDER = "imported"
PERFLOG, REPORT = "perflog", "run report"
NEITHER = (
    "no run report of ReFrame, and no perflog with a line of names, as ReFrame 4 writes it",
    [f"--format {', '.join(layouts.PRESETS)}, or the format in the settings of ReFrame"],
)
_START = 1 << 20  # bytes by which the kind of a file is recognised
_LINES = 1000  # of which one has to be of a perflog
_TOGETHER = 100_000  # rows that are added at once
Row = Mapping[str, Any]


def files(perflogs: Path, system: str) -> Iterator[Path]:
    """The imported files of a system in order of their names."""
    top = perflogs / system / FOLDER
    if top.is_symlink():
        return iter([top])  # the reader refuses it
    found = top.rglob("*")
    return iter(
        sorted(
            path
            for path in found
            if (path.is_file() or path.is_symlink())
            and not path.name.startswith(".")
            and path.suffix != import_options.ENDING
        )
    )


def kind(path: Path, given: Options = import_options.DEFAULT) -> str:
    """PERFLOG or REPORT, by the content of a file; empty: neither. Raises UserError."""
    try:
        with source.stream(path) as stream:
            start = stream.read(_START)
    except OSError as error:
        raise UserError(path, f"cannot be read: {error.strerror}") from None
    if start.lstrip()[:1] == b"{":
        return REPORT if b'"session_info"' in start else ""
    lines = start.decode("utf-8", "replace").splitlines()[:_LINES]
    layout = layouts.of_format(given.format) if given.format else None
    return PERFLOG if any(_is_of_perflog(line.strip(), layout) for line in lines) else ""


def _is_of_perflog(line: str, layout: layouts.Layout | None) -> bool:
    if layouts.of_header(line):
        return True
    try:
        return bool(layout and layout.cut(line))
    except Refused:
        return False


def rows_of(file: File) -> Iterator[tuple[Row, list[dict[str, Any]], Context]]:
    """Of each line the run, the narrow rows and their context. Raises UserError."""
    what = kind(file.path, file.options)
    if not what:
        raise UserError(file.path, *NEITHER)
    try:
        for line in run_report.lines(file) if what == REPORT else perflog.lines(file):
            try:
                yield *file.rows_of(line), line.known.context
            except Refused as error:
                file.refuse(line.number, str(error))
    except OSError as error:
        raise UserError(file.path, f"cannot be read: {error.strerror}") from None


class Reader:
    """Adds files to the tables of the new rows, many lines at once."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection
        self._runs: list[Row] = []
        self._samples: list[Row] = []
        self._contexts: dict[int, Context] = {}

    def add(self, file: File) -> None:
        """Add a file; its rows are complete after `flush`. Raises UserError, and adds none then."""
        try:
            for run, found, context in rows_of(file):
                self._runs.append(run)
                self._samples += found
                self._contexts[context.key] = context
                if len(self._samples) > _TOGETHER:
                    self.flush()
        except UserError:
            self._runs = [row for row in self._runs if row["run"] >> RUN_SHIFT != file.turn]
            self._samples = [row for row in self._samples if row["run"] >> RUN_SHIFT != file.turn]
            tables.remove(self.connection, file.turn)
            raise

    def flush(self) -> None:
        """Add all that has been read to the tables."""
        tables.add(self.connection, "runs", self._runs)
        tables.add(self.connection, "samples", self._samples)
        tables.add_contexts(self.connection, self._contexts.values())
        self._runs.clear()
        self._samples.clear()
        self._contexts.clear()
