"""History from others: what plain ReFrame has left behind, as rows of the view `samples`.

Below `perflogs/<system>/imported/` lie copies of perflogs and run reports of ReFrame 3 and 4
(`siteproof import`). They are the truth; rows are derived from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from siteproof.errors import UserError, harmless
from siteproof.files import ACCOUNT
from siteproof.history.foreign import perflog, run_report, source, times
from siteproof.history.foreign.arrays import Batch

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


def batches(
    path: Path, *, system: str = "", file: str = "", zone: str | None = None, blocks: int = 32
) -> Iterator[Batch]:
    """The rows of a perflog or a run report, in parts of so many blocks, which fit into memory.

    The last one says what was refused. system: for which it is imported; empty: as the file says.
    file: what the rows call it. zone: of times that have none; None: as its zone file says, or UTC.
    Raises UserError where it can be neither.
    """
    what = kind(path)
    if not what:
        raise UserError(path, "neither a perflog nor a run report of ReFrame")
    try:
        place = times.zone(zone_of(path) if zone is None else zone)
        if what == REPORT:
            yield run_report.read(path, system, file or path.name, place)
        else:
            yield from perflog.read(path, system, file or path.name, place, blocks)
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(path, f"cannot be read: {harmless(str(error))}") from None


def zone_of(path: Path) -> str:
    """The zone that was named when a file was imported; empty: none. Raises OSError, UserError."""
    try:
        return source.content(zone_file(path), ACCOUNT).decode().strip()
    except FileNotFoundError:
        return ""
