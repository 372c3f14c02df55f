"""Where a figure comes from: suite revision, ReFrame, Slurm, user, login host."""

from __future__ import annotations

import functools
import socket
import subprocess
from pathlib import Path

import reframe

from siteproof.checks import session


@functools.cache
def collect(clone: Path) -> dict[str, str]:
    """Provenance that all samples of a session share."""
    return {
        "suite": revision(clone),
        "reframe": reframe.VERSION,
        "user": session.user(),
        "login": socket.gethostname(),
        **_slurm(),
    }


def revision(clone: Path) -> str:
    """The clone's commit, with + where files differ from it; unknown without git."""
    command = ["git", "-C", str(clone), "describe", "--always", "--dirty=+", "--abbrev=12"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return answer.stdout.strip()


def _slurm() -> dict[str, str]:
    """Slurm's version, where there is a Slurm that says it."""
    try:
        answer = subprocess.run(
            ["sinfo", "--version"],
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        return {}
    return {"slurm": words[-1]} if (words := answer.stdout.split()) else {}
