"""Perflogs and run reports of plain ReFrame 3 and 4, as rows of the view `samples`.

`siteproof import` copies them to `perflogs/<system>/imported/`. Rows are derived from the copies.
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Iterator
from pathlib import Path

import duckdb

from siteproof.errors import UserError
from siteproof.files import ACCOUNT
from siteproof.history import tables
from siteproof.history.foreign import chosen_lines, perflog, run_report, source
from siteproof.history.foreign.chosen_lines import Only
from siteproof.history.foreign.figures import File

FOLDER = "imported"
PERFLOG, REPORT = "perflog", "run report"
_ZONE = ".zone"  # ending of the file with the time zone of a perflog
_START = 1 << 20  # bytes by which the kind of a file is recognised


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
            and path.suffix != _ZONE
            and not chosen_lines.is_one(path)
        )
    )


def notes_on(path: Path) -> list[Path]:
    """The files next to an imported one on which its rows depend; each may be missing."""
    return [zone_file(path), chosen_lines.file_of(path)]


def zone_file(path: Path) -> Path:
    """The file with the zone of a perflog's times."""
    return path.with_name(path.name + _ZONE)


def kind(path: Path) -> str:
    """PERFLOG or REPORT, by the content of a file; empty: neither. Raises UserError."""
    try:
        with source.stream(path) as stream:
            start = stream.read(_START)
    except OSError as error:
        raise UserError(path, f"cannot be read: {error.strerror}") from None
    if start.lstrip()[:1] == b"{":
        return REPORT if b'"session_info"' in start else ""
    lines = start.decode("utf-8", "replace").split("\n")
    found = any(perflog.looks_like(line.strip()) for line in lines[:1000])
    return PERFLOG if found else ""


class Reader:
    """Reads perflogs and run reports into the tables of the new rows, many lines at once.

    files: the result of reading each, by its turn.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection
        self.files: dict[int, File] = {}
        self._lines, self._cases = perflog.Waiting(), run_report.Cases()

    def read(
        self,
        path: Path,
        turn: int,
        *,
        site: str = "",
        name: str = "",
        zone: str | None = None,
        only: Only | None = None,
    ) -> None:
        """Read a file; its rows are complete after `flush`. Raises UserError, and adds no row then.

        site: the system that it is imported for; empty: the one in the file. name: of the file in
        the rows. zone: of times that have none; None: the one in its zone file, or UTC. only: the
        lines that count; None: those that the file was imported with.
        """
        what = kind(path)
        if not what:
            raise UserError(path, "neither a perflog nor a run report of ReFrame")
        try:
            place = valid_zone(zone_of(path) if zone is None else zone)
            only = chosen_lines.of(path) if only is None else only
            file = self.files[turn] = File(path, name or path.name, turn, site, place, only)
            if what == REPORT:
                run_report.read(file, self._cases)
            else:
                perflog.read(file, self._lines, self.flush)
        except UserError:
            self._forget(turn)
            raise
        except OSError as error:
            self._forget(turn)
            raise UserError(path, f"cannot be read: {error.strerror}") from None

    def flush(self) -> None:
        """Add all that has been read to the tables."""
        self._lines.flush(self.connection, self.files)
        self._cases.flush(self.connection, self.files)

    def _forget(self, turn: int) -> None:
        self._lines.forget(turn)
        self._cases.forget(turn)
        tables.remove(self.connection, turn)


def valid_zone(name: str) -> str:
    """The zone of this name, such as Europe/Zurich; empty is UTC. Raises UserError."""
    if not name:
        return "UTC"
    if name not in zoneinfo.available_timezones() - {"localtime"}:  # unknown to DuckDB
        raise UserError(
            "--zone", f"'{name[:40]}' is not a time zone", "a name such as Europe/Zurich, or UTC"
        )
    return name


def zone_of(path: Path) -> str:
    """The zone that was given at the import of a file; empty: none. Raises OSError, UserError."""
    try:
        return source.content(zone_file(path), ACCOUNT).decode().strip()
    except FileNotFoundError:
        return ""
