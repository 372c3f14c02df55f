"""A probe that uses a service as users do: the test of `services`, in place of a look."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from siteproof.parsers import service
from siteproof.parsers.service import Report
from siteproof.probes.probing import NotUp
from siteproof.record import session_numbers
from siteproof.services import extra, runner, steps
from siteproof.sites import Probe, Site

USES = "service"  # the kind of probe that uses a service, instead of a look at it
MAX_OUTPUT = 2**20  # bytes of records that are read


def lacking(site: Site, probes: Iterable[Probe]) -> str:
    """Why services that these probes use cannot be used here; empty if all can be."""
    used = [one.target for one in probes if one.kind == USES]
    return extra.lacking(*(site.system.services[name].kind for name in used))


def use(site: Site, name: str, seconds: float) -> None:
    """Return if each step of the service's test succeeds. Raises NotUp.

    The test runs in a process of its own: when its time is over it is ended, and its guardian
    removes what it has created.
    """
    folder = Path(tempfile.mkdtemp(prefix="siteproof-probe-"))
    try:
        mark = steps.mark(session_numbers.new_name(datetime.now(UTC)), name)
        file = folder / "service.json"
        file.write_text(runner.written(site, name, mark))
        with tempfile.TemporaryFile() as records:
            _run([sys.executable, "-m", "siteproof.services", str(file)], records, seconds)
            records.seek(0)
            _must_be_good(service.report(records.read(MAX_OUTPUT).decode("utf-8", "replace")))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(command: list[str], records: Any, seconds: float) -> None:
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=records, stderr=subprocess.DEVNULL
    )
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise TimeoutError from None


def _must_be_good(found: Report) -> None:
    """Raises NotUp for the first step that failed, and where the test did not end."""
    for step in found.steps:
        if step.status != "ok":
            raise NotUp(f"{step.name}: {step.why} ({step.status})")
    if not found.done or not found.steps:
        raise NotUp("the test of the service did not end")
