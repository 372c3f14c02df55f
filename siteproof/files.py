"""Where the data lives: SITEPROOF_DATA, or the clone."""

from __future__ import annotations

import os
from pathlib import Path

from siteproof.errors import UserError

CLONE = Path(__file__).resolve().parents[1]


def folder() -> Path:
    """The folder that holds perflogs/, stage/ and output/."""
    return Path(os.environ.get("SITEPROOF_DATA") or CLONE).resolve()


def must_exist() -> None:
    """Refuse a SITEPROOF_DATA that names no folder. Raises UserError."""
    if not folder().is_dir():
        raise UserError("SITEPROOF_DATA", f"{folder()} is no folder")


def perflogs() -> Path:
    """The folder of all samples."""
    return folder() / "perflogs"


def stages() -> Path:
    """The folder of all stage directories, one below it a session."""
    return folder() / "stage"
