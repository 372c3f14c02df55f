"""ReFrame's results database: each session in it is a run report, kept as JSON.

reframe/frontend/reporting/storage.py, schema 1.0: sessions(uuid, session_start_unix,
session_end_unix, json_blob, report_file).
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from siteproof import files
from siteproof.errors import UserError

NAME = "results.db"  # ReFrame's own
BEGIN = b"SQLite format 3\0"  # of each such file
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
MAX_SESSIONS = 100_000  # sessions
# A table that is stored, and no column of which is computed: reading one could take hours.
_IS_TABLE = """
    SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'sessions' AND rootpage > 0
    AND NOT EXISTS (SELECT 1 FROM pragma_table_xinfo('sessions') WHERE hidden)"""
_SESSIONS = f"SELECT uuid FROM sessions ORDER BY session_start_unix, uuid LIMIT {MAX_SESSIONS + 1}"
_WAL = 2  # in both bytes of a header that has its changes in a second file
_REPORT = """
    SELECT CASE WHEN length(CAST(json_blob AS BLOB)) <= ? THEN json_blob END
    FROM sessions WHERE uuid = ?"""


def sessions(path: Path) -> Sequence[str]:
    """The sessions in a results database, oldest first; none in another file. Raises UserError."""
    with files.named(path, files.SAMPLES) as handle:
        head = os.read(handle, 20)
    if not head.startswith(BEGIN):
        return []
    if _WAL in head[18:]:  # to read it would make files beside it, with this user's name
        hint = f"Run: sqlite3 {path.name} 'PRAGMA journal_mode = DELETE'"
        raise UserError(path, "a database with a write-ahead log; ReFrame makes none", hint=hint)
    with _open(path) as database:
        if not database.execute(_IS_TABLE).fetchone():
            raise UserError(path, "a database without the sessions of ReFrame", f"a {NAME}")
        found = [uuid for (uuid,) in database.execute(_SESSIONS)]
    if len(found) > MAX_SESSIONS:
        raise UserError(path, "too many sessions", f"at most {MAX_SESSIONS}")
    for uuid in found:
        if not isinstance(uuid, str) or not _UUID.fullmatch(uuid):
            raise UserError(path, f"'{str(uuid)[:40]}' is not a session of ReFrame")
    return found


def report(path: Path, session: str) -> bytes:
    """The run report of a session. Raises UserError."""
    with _open(path) as database:
        row = database.execute(_REPORT, (files.REPORT, session)).fetchone()
    if not row or not isinstance(row[0], str):
        allowed = f"at most {files.REPORT >> 20} MiB"
        raise UserError(path, f"session {session} has no report, or one that is too large", allowed)
    return row[0].encode()


@contextmanager
def _open(path: Path) -> Iterator[sqlite3.Connection]:
    """The database, which is only read, and of which nothing is run. Raises UserError."""
    database = None
    try:
        database = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
        database.execute("PRAGMA trusted_schema = OFF")
        yield database
    except sqlite3.Error as error:
        raise UserError(path, f"cannot be read: {error}") from None
    finally:
        if database:
            database.close()
