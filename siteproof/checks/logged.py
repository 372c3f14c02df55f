"""The format of perflogs in ReFrame's settings, for perflogs that plain ReFrame has written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reframe.core.config import load_config

from siteproof.errors import UserError


def format_in(path: Path) -> str:
    """The `format` of the perflogs of a settings file, with its `format_perfvars` once.

    ReFrame loads it: it runs what is Python. Raises UserError.
    """
    defaults = _formats(load_config())
    try:
        found = _formats(load_config(str(path))) - defaults
    except FileNotFoundError:
        raise UserError(path, "no such file") from None
    except (Exception, SystemExit) as error:  # whatever a Python file may raise
        raise UserError(path, f"ReFrame cannot load it: {error or type(error).__name__}") from None
    if len(found) == 1:
        return found.pop()
    what = f"{len(found)} formats of its own in the 'filelog' of 'logging: handlers_perflog'"
    raise UserError(path, what, ["exactly one"], hint="Give the format itself")


def _formats(settings: Any) -> set[str]:
    handlers = [
        handler
        for section in settings["logging"]
        for handler in section.get("handlers_perflog", ())
    ]
    return {
        handler["format"].replace("%(check_perfvalues)s", handler.get("format_perfvars", ""))
        for handler in handlers
        if handler["type"] == "filelog" and "format" in handler
    }
