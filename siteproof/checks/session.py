"""The running session: which site, where the data goes, and under which name.

Set once by reframe_settings.py, read by the checks. Nothing else in the package has such a state.
"""

from __future__ import annotations

import getpass
import os
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from siteproof import data
from siteproof.errors import UserError
from siteproof.sites import Site


@dataclass(frozen=True)
class Session:
    """One run of ReFrame on one system."""

    site: Site
    folder: Path = field(default_factory=data.folder)
    campaign: str = field(default_factory=lambda: os.environ.get("SITEPROOF_CAMPAIGN", ""))
    name: str = field(default_factory=lambda: _name(datetime.now(UTC)))


def _name(now: datetime) -> str:
    """Unique, and in the order of time even within a second."""
    return f"{now:%Y%m%dT%H%M%SZ}-{now.microsecond:05x}{secrets.token_hex(1)}"


_current: Session | None = None


def start(site: Site) -> Session:
    """Begin the session of this process; ReFrame may read its settings more than once."""
    global _current
    if _current is None or _current.site.system.system != site.system.system:
        _current = Session(site)
    return _current


def current() -> Session:
    """The session of this process. Raises UserError where ReFrame runs without our settings."""
    if _current is None:
        raise UserError(
            "checks", "refused: this is not ReFrame with Siteproof's settings",
            "'. ./activate' first, then 'reframe -c checks/ -r'",
        )
    return _current


def user() -> str:
    """Who runs this; a number where the machine does not know the name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
