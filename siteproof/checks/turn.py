"""On one machine without a scheduler sessions take turns: two at once would measure each other."""

from __future__ import annotations

import fcntl
import os
import sys
import time
from pathlib import Path

from siteproof.errors import UserError
from siteproof.record import manifest


def take(stages: Path) -> None:
    """Wait for the session, or the job of a lost session, that measures from this data folder.

    The turn ends with this process, however it ends.
    """
    folder = os.open(stages, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        _tell("another session measures on this machine; waiting for its end")
        fcntl.flock(folder, fcntl.LOCK_EX)
    except OSError:
        _tell(f"{stages} knows no locks: run one session at a time")
    for stage in manifest.pending(stages):
        _outwait(stage)


def _outwait(stage: Path) -> None:
    """Wait for a job that has outlived its session; its time limit ends it."""
    try:
        job = manifest.load(stage)
    except UserError:
        return  # told when it is collected
    if not job.watched() and (process := manifest.still_runs(stage, job)):
        _tell(
            f"{stage}: a lost session still measures on this machine; waiting for its end, "
            f"or 'kill -- -{process}'"
        )
        while manifest.still_runs(stage, job):
            time.sleep(0.5)


def _tell(what: str) -> None:
    print(f"siteproof: {what}", file=sys.stderr, flush=True)
