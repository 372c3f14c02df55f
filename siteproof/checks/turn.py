"""On one machine without a scheduler sessions take turns: two at once would measure each other."""

from __future__ import annotations

import atexit
import re
import socket
import time
from pathlib import Path

from siteproof import locks
from siteproof.checks import loading
from siteproof.errors import UserError
from siteproof.locks import Lock
from siteproof.record import manifest

LOOK_EVERY = 0.5  # seconds
_turns: dict[Path, Lock] = {}  # of this process


def take(stages: Path) -> None:
    """Wait for the session, or the job of a lost session, that measures from this data folder.

    The turn ends with this process, however it ends.
    """
    # Of two machines that share the folder each has its own turns.
    folder = stages / f".turn-{re.sub(r'[^A-Za-z0-9._-]', '_', socket.gethostname())}"
    if folder not in _turns:
        try:
            _turns[folder] = _wait(folder)
            atexit.register(_turns[folder].release)
        except UserError as error:
            loading.tell(f"{error}; run one session at a time")
    for stage in manifest.pending(stages):
        _outwait(stage, stages)


def _wait(folder: Path) -> Lock:
    told = ""
    while True:
        try:
            return locks.take(folder)
        except locks.Taken as error:
            if str(error) != told:
                told = str(error)
                loading.tell(
                    f"another session measures on this machine; waiting for its end: {told}"
                )
        time.sleep(LOOK_EVERY)


def _outwait(stage: Path, stages: Path) -> None:
    """Wait for a job that has outlived its session; its time limit ends it."""
    try:
        job = manifest.load(stage, stages)
    except UserError:
        return  # told when it is collected
    if not job.watched(stage) and (process := manifest.still_runs(stage, job)):
        loading.tell(
            f"{stage}: a lost session still measures on this machine; waiting for its end, "
            f"or 'kill -- -{process}'"
        )
        while manifest.still_runs(stage, job):
            time.sleep(0.5)
