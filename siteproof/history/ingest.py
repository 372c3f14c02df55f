"""Files below perflogs into tables: new_runs, new_contexts, new_samples.

The fast reader takes our own files where it can, and `samples.read` the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from siteproof import files as safe
from siteproof.errors import UserError
from siteproof.history import fast, rows, tables, views
from siteproof.history.views import IMPORTED, RUN_SHIFT
from siteproof.record import samples
from siteproof.record.samples import Header

Refused = dict[str, list[str]]


@dataclass(frozen=True)
class Listed:
    """A file to be read. file: its name below perflogs. turn: the number of this reading."""

    path: Path
    file: str
    turn: int

    @property
    def run(self) -> int:
        """The number of its first run; our own files have no other."""
        return self.turn << RUN_SHIFT

    @property
    def perflogs(self) -> Path:
        """The folder of all perflogs."""
        return self.path.parents[self.file.count("/")]

    @property
    def is_foreign(self) -> bool:
        """Whether it is a copy of a file of plain ReFrame."""
        return self.file.split("/")[1:2] == [IMPORTED]


def read(connection: duckdb.DuckDBPyConnection, files: Sequence[Listed]) -> tuple[str, Refused]:
    """Fill the tables of the new rows; SQL for all new samples, and what was refused."""
    tables.clear(connection)
    fast.prepare(connection)
    heads: dict[int, Header] = {}
    bodies: dict[int, str] = {}
    own = [listed for listed in files if not listed.is_foreign]
    for listed in own:
        if (parts := _screened(listed)) is not None:
            heads[listed.run], bodies[listed.run] = parts
    counts = fast.parse(connection, heads, bodies)
    tables.add(
        connection,
        "runs",
        [
            rows.run_row(heads[listed.run], listed.file, listed.run, counts[listed.run])
            for listed in own
            if listed.run in counts
        ],
    )
    refused: Refused = {}
    for listed in own:
        if listed.run not in counts:
            _exactly(connection, listed, refused)
    _foreign(connection, [listed for listed in files if listed.is_foreign], refused)
    found = f"SELECT {views.names('samples')} FROM ({fast.NARROW})"
    return f"{found} UNION ALL SELECT {views.names('samples')} FROM new_samples", refused


def _screened(listed: Listed) -> tuple[Header, str] | None:
    """Header and other lines of a file that the fast reader may take."""
    try:
        data = safe.read(listed.path, below=listed.perflogs, limit=safe.SAMPLES)
        first, body = data.partition(b"\n")[0], fast.body(data)
        if body is None or b"\r" in first:
            return None
        head = samples.header_of(f"{listed.path}:1", first.decode("utf-8"))
        samples.must_lie_at(listed.path, head)
        rows.run_row(head, listed.file, listed.run, 0)  # its time may not exist in UTC
    except (OSError, UnicodeDecodeError, UserError):
        return None
    return head, body


def _exactly(connection: duckdb.DuckDBPyConnection, listed: Listed, refused: Refused) -> None:
    """Add a file by samples.read, or why it refuses it."""
    try:
        run, found, contexts = rows.of_file(listed.path, listed.file, listed.run)
    except UserError as error:
        refused[listed.file] = [str(error)]
        return
    tables.add(connection, "runs", [run])
    tables.add(connection, "samples", found)
    tables.add_contexts(connection, contexts)


def _foreign(
    connection: duckdb.DuckDBPyConnection, files: Sequence[Listed], refused: Refused
) -> None:
    """Add files of plain ReFrame; their broken lines are refused, the others count."""
    if not files:
        return
    from siteproof.history.foreign import formats, import_options  # most stores hold no such file
    from siteproof.history.foreign.figures import File

    reader = formats.Reader(connection)
    for listed in files:
        try:
            given = import_options.of(listed.path)
            file = File(listed.path, listed.file, listed.turn, listed.file.split("/")[0], given)
            reader.add(file)
        except UserError as error:
            refused[listed.file] = [str(error)]
        else:
            if lines := file.refused_lines():
                refused[listed.file] = lines
    reader.flush()
