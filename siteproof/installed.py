"""Whether this program can work: it runs from a clone, whose .venv is that of its lock.

Imports nothing but the standard library, as a stale .venv may lack anything else.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

CLONE = Path(__file__).resolve().parents[1]


def why_not() -> str:
    """One line on what is wrong with this installation, and the command that helps; or empty."""
    if not (CLONE / "checks").is_dir():
        return (
            f"{CLONE} has no checks: Siteproof runs from its clone only, where checks, sweeps and "
            "sites lie. Run 'make venv' in the clone, then '. ./activate'"
        )
    venv = CLONE / ".venv"
    if Path(sys.prefix).resolve() != venv.resolve():
        return ""  # a Python that somebody else has set up
    try:
        made_from = (venv / "siteproof-stamp").read_text(errors="replace").splitlines()[1:2]
        lock = hashlib.sha256((CLONE / "setup/requirements.lock").read_bytes()).hexdigest()
    except OSError as error:
        return f"{error.filename}: {error.strerror}: run 'make venv' in {CLONE}"
    if made_from != [f"{lock}  -"]:
        return (
            f"{venv} is not that of setup/requirements.lock: run 'make venv' in {CLONE} "
            "(without network: setup/venv --wheels DIR)"
        )
    return ""


def refuse() -> None:
    """End with one line and exit code 2 if this installation cannot work."""
    if why := why_not():
        print(f"siteproof: {why}", file=sys.stderr)
        raise SystemExit(2)
