"""On one machine without a scheduler one session measures at a time."""

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
    """Wait until no other session, and no job of a lost session, measures on this machine.

    The turn ends with this process, however it ends.
    """
    # Machines that share the folder have one lock each.
    folder = stages / f".turn-{re.sub(r'[^A-Za-z0-9._-]', '_', socket.gethostname())}"
    if folder not in _turns:
        try:
            _turns[folder] = _wait(folder)
            atexit.register(_turns[folder].release)
        except UserError as error:
            loading.report(f"{error}; make sure that only one session runs at a time")
    for stage in manifest.pending(stages):
        _outwait(stage, stages)


def _wait(folder: Path) -> Lock:
    last = ""
    while True:
        try:
            return locks.take(folder)
        except locks.Taken as error:
            if str(error) != last:
                last = str(error)
                loading.report(
                    f"another session measures on this machine; waiting until it ends: {last}"
                )
        time.sleep(LOOK_EVERY)


def _outwait(stage: Path, stages: Path) -> None:
    """Wait for a job whose session is lost; its time limit ends it."""
    try:
        job = manifest.load(stage, stages)
    except UserError:
        return  # reported when it is collected
    if not job.watched(stage) and (process := manifest.still_runs(stage, job)):
        loading.report(
            f"{stage}: a job of a lost session still measures on this machine; waiting until it "
            f"ends; to end it now: 'kill -- -{process}'"
        )
        while manifest.still_runs(stage, job):
            time.sleep(LOOK_EVERY)
