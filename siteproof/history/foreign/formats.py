"""History from others: what plain ReFrame has left behind, as rows of the view `samples`.

Below `perflogs/<system>/imported/` lie copies of perflogs and run reports of ReFrame 3 and 4
(`siteproof import`). They are the truth; rows are derived from them.
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Iterator
from pathlib import Path

import duckdb

from siteproof.errors import UserError
from siteproof.files import ACCOUNT
from siteproof.history import tables
from siteproof.history.foreign import perflog, run_report, source
from siteproof.history.foreign.figures import File

FOLDER = "imported"
PERFLOG, REPORT = "perflog", "run report"
_ZONE = ".zone"  # the file beside a perflog that says in which zone its times are
_START = 1 << 20  # bytes that show what a file is


def files(perflogs: Path, system: str) -> Iterator[Path]:
    """The imported files of a system in order of their names."""
    top = perflogs / system / FOLDER
    if top.is_symlink():
        return iter([top])  # refused by its reader
    found = top.rglob("*")
    return iter(
        sorted(
            path
            for path in found
            if (path.is_file() or path.is_symlink())
            and not path.name.startswith(".")
            and path.suffix != _ZONE
        )
    )


def zone_file(path: Path) -> Path:
    """Where the zone of a perflog's times is kept."""
    return path.with_name(path.name + _ZONE)


def kind(path: Path) -> str:
    """What a file is, by what it holds: PERFLOG, REPORT, or neither. Raises UserError.

    A perflog that Siteproof's own checks have written is refused: its figures are in the samples.
    """
    try:
        with source.stream(path) as held:
            start = held.read(_START)
    except OSError as error:
        raise UserError(path, f"cannot be read: {error.strerror}") from None
    if start.lstrip()[:1] == b"{":
        return REPORT if b'"session_info"' in start else ""
    lines = start.decode("utf-8", "replace").split("\n")
    if lines[0].strip() == perflog.OURS:
        raise UserError(
            path,
            "ReFrame's perflog of Siteproof's own checks, whose figures are in the samples",
            "perflogs of other checks",
        )
    found = any(perflog.looks_like(line.strip()) for line in lines[:1000])
    return PERFLOG if found else ""


class Reader:
    """Reads perflogs and run reports into the tables of the new rows, many lines at once.

    files: what the reading of each reports, by its turn.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection
        self.files: dict[int, File] = {}
        self._lines, self._cases = perflog.Waiting(), run_report.Cases()

    def read(
        self, path: Path, turn: int, *, site: str = "", name: str = "", zone: str | None = None
    ) -> None:
        """Read a file, whose rows are there at the latest after flush. Raises UserError.

        site: the system that it is imported for; empty: as the file says. name: what the rows
        call it. zone: of times that have none; None: as its zone file says, or UTC.
        After an error no row of the file is left.
        """
        what = kind(path)
        if not what:
            raise UserError(path, "neither a perflog nor a run report of ReFrame")
        try:
            place = valid_zone(zone_of(path) if zone is None else zone)
            file = self.files[turn] = File(path, name or path.name, turn, site, place)
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
        """Bring all that has been read into the tables."""
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
    if name not in zoneinfo.available_timezones() - {"localtime"}:  # which is no zone of DuckDB
        raise UserError(
            "--zone", f"'{name[:40]}' is not a time zone", "a name such as Europe/Zurich, or UTC"
        )
    return name


def zone_of(path: Path) -> str:
    """The zone that was named when a file was imported; empty: none. Raises OSError, UserError."""
    try:
        return source.content(zone_file(path), ACCOUNT).decode().strip()
    except FileNotFoundError:
        return ""
