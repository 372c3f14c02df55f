"""--output FILE of several subcommands."""

from __future__ import annotations

from pathlib import Path

from siteproof.errors import UserError
from siteproof.samples import write_whole


def refuse(file: Path) -> None:
    """A file that could not be written is refused before the work is done. Raises UserError."""
    target = file.resolve()
    if target.is_dir():
        raise UserError("--output", f"{file} is a folder", "a file")
    if not target.parent.is_dir():
        raise UserError("--output", f"there is no folder {target.parent}", "a file in a folder")


def write(file: Path, data: bytes) -> None:
    """Whole or not at all. A device or pipe gets it as it is; a link stays one. Raises OSError."""
    target = file.resolve()
    if target.exists() and not target.is_file():
        target.write_bytes(data)
    else:
        write_whole(target, data)
