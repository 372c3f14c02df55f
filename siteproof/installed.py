"""Where the suite lies, and whether this installation can work.

Imports nothing but the standard library, as a stale .venv may lack anything else.
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

_IN_WHEEL = Path(__file__).resolve().with_name("suite")
IS_WHEEL = _IN_WHEEL.is_dir()
# The folder of checks/, sweeps/, spack-envs/, sbatch/, site-config/ and reframe_settings.py.
SUITE = _IN_WHEEL if IS_WHEEL else Path(__file__).resolve().parents[1]
SETTINGS = SUITE / "reframe_settings.py"


def settings_files() -> str:
    """RFM_CONFIG_FILES of a ReFrame that we start: ours, after those that the shell has before."""
    given = os.environ.get("RFM_CONFIG_FILES", "")
    is_last = Path(given.rpartition(":")[2]).resolve() == SETTINGS
    return given if is_last else str(SETTINGS)


def why_not() -> str:
    """One line on what is wrong with this installation, and the command that helps; or empty."""
    if not (SUITE / "checks").is_dir():
        return (
            f"{SUITE} has no checks: run 'make venv' in a clone, then '. ./activate', "
            "or install the wheel"
        )
    venv = SUITE / ".venv"
    if IS_WHEEL or Path(sys.prefix).resolve() != venv.resolve():
        return ""  # a Python that somebody else has set up
    try:
        made_from = (venv / "siteproof-stamp").read_text(errors="replace").splitlines()[1:2]
        lock = hashlib.sha256((SUITE / "setup/requirements.lock").read_bytes()).hexdigest()
    except OSError as error:
        return f"{error.filename}: {error.strerror}: run 'make venv' in {SUITE}"
    if made_from != [f"{lock}  -"]:
        return (
            f"{venv} is not that of setup/requirements.lock: run 'make venv' in {SUITE} "
            "(without network: setup/venv --wheels DIR)"
        )
    return ""


def refuse() -> None:
    """End with one line and exit code 2 if this installation cannot work."""
    if why := why_not():
        print(f"siteproof: {why}", file=sys.stderr)
        raise SystemExit(2)
