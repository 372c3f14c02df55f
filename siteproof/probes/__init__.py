"""Probes: one look at a service, or a whole test of it; and a round, all probes that are due.

A look is http, tcp, ssh or mount; nothing that a service sends is kept. A service may be slow,
hostile or broken: its answer has limits of bytes and redirects, and each probe a limit of time, at
which the round goes on without its answer. All probes of a round run at the same time.
"""

from __future__ import annotations

import http.client
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from queue import Empty, SimpleQueue
from urllib.parse import urljoin, urlsplit

from siteproof.parsers import service
from siteproof.record import clocks
from siteproof.record.availability_log import ProbeResult
from siteproof.record.clocks import BOUND
from siteproof.services import mount, runner, ssh, steps
from siteproof.sites import Probe, Site

EARLY = 0.1  # of the interval: so much earlier than due a probe may run, as cron is never exact


def due(probes: Mapping[str, Probe], last: Mapping[str, int], now: int) -> dict[str, Probe]:
    """The probes whose interval has passed. last: when each ran, in seconds since 1970.

    A time in the future is of a wrong clock and delays nothing.
    """
    found = {}
    for name, probe in probes.items():
        before, interval = last.get(name, 0), float(probe.interval.to("s"))
        if before > now + BOUND or now - before >= (1 - EARLY) * interval:
            found[name] = probe
    return found


def run_round(probes: Mapping[str, Probe], site: Site | None = None) -> Iterator[ProbeResult]:
    """The result of each probe as it comes, at its time limit at the latest.

    site: has the services that probes of kind `service` use.
    """
    answers: SimpleQueue[tuple[str, float, str]] = SimpleQueue()
    at, start = int(time.time()), time.monotonic()
    left = {name: start + float(probe.timeout.to("s")) for name, probe in probes.items()}
    for name, probe in probes.items():
        # A daemon ends with the process, so a name server that hangs holds up nobody.
        threading.Thread(target=_look, args=(name, probe, site, answers), daemon=True).start()
    while left:
        first = min(left, key=left.__getitem__)
        try:
            name, took, why = answers.get(timeout=max(left[first] - time.monotonic(), 0.001))
        except Empty:
            name, took, why = first, left[first] - start, _too_late(probes[first])
        if left.pop(name, None):  # an answer after its time limit is none
            yield _result(name, probes[name], at, took, why)


def _too_late(probe: Probe) -> str:
    return f"no answer within {float(probe.timeout.to('s')):g} s"


def _look(
    name: str, probe: Probe, site: Site | None, answers: SimpleQueue[tuple[str, float, str]]
) -> None:
    start, why = time.monotonic(), ""
    seconds = float(probe.timeout.to("s"))
    try:
        if site and probe.kind == USES:
            use(site, probe.target, seconds)
        else:
            look(probe.kind, probe.target, seconds)
    except (TimeoutError, subprocess.TimeoutExpired):
        why = _too_late(probe)
    except NotUp as error:
        why = str(error) or "no reason given"
    except Exception as error:  # noqa: BLE001 - a service must not end the round of the others
        why = f"the probe broke: {type(error).__name__}"
    answers.put((name, time.monotonic() - start, why))


def _result(name: str, probe: Probe, at: int, took: float, why: str) -> ProbeResult:
    """The line of a probe; an answer after its time limit is none."""
    if not why and took > probe.timeout.to("s"):
        why = _too_late(probe)
    return ProbeResult(
        at=at,
        probe=name,
        service=probe.service or name,
        kind=probe.kind,
        target=probe.target,
        ok=not why,
        interval=int(probe.interval.to("s")),
        took=took,
        why=why,
    )


USES = "service"  # the kind of probe that uses a service, instead of a look at it
MAX_OUTPUT = 2**20  # bytes of records that are read


def lacking(site: Site, probes: Iterable[Probe]) -> str:
    """Why services that these probes use cannot be used here; empty if all can be."""
    used = [one.target for one in probes if one.kind == USES]
    return runner.lacking(*(site.system.services[name].kind for name in used))


def use(site: Site, name: str, seconds: float) -> None:
    """Return if each step of the service's test succeeds. Raises NotUp.

    The test runs in a process of its own: when its time is over it is ended, and its guardian
    removes what it has created.
    """
    with tempfile.TemporaryDirectory(
        prefix="siteproof-probe-", ignore_cleanup_errors=True
    ) as folder:
        mark = steps.mark(clocks.new_name(datetime.now(UTC)), name)
        file = Path(folder, "service.json")
        file.write_text(runner.written(site, name, mark))
        with tempfile.TemporaryFile() as records:
            subprocess.run(
                [sys.executable, "-m", "siteproof.services", str(file)],
                stdin=subprocess.DEVNULL,
                stdout=records,
                stderr=subprocess.DEVNULL,
                timeout=seconds,
                check=False,
            )
            records.seek(0)
            found = service.report(records.read(MAX_OUTPUT).decode("utf-8", "replace"))
    for step in found.steps:
        if step.failed:
            raise NotUp(f"{step.name}: {step.why} ({step.status})")
    if not found.done or not found.steps:
        raise NotUp("the test of the service did not end")


MAX_REDIRECTS = 5


class NotUp(Exception):
    """The service did not answer as it must; the reason in a few words."""


def look(kind: str, target: str, seconds: float) -> None:
    """Return if the service answers as it must. Raises NotUp.

    kind, target: as in system.yaml. seconds: for each wait; several may follow each other.
    """
    try:
        _KINDS[kind](target, seconds)
    except TimeoutError:
        raise NotUp(f"no answer within {seconds:g} s") from None
    except OSError as error:
        raise NotUp(error.strerror or str(error)) from None
    except (http.client.HTTPException, ValueError) as error:
        raise NotUp(f"answer not understood: {type(error).__name__}") from None


def _http(url: str, seconds: float) -> None:
    """GET; 2xx is up. A body is never read."""
    end = time.monotonic() + seconds
    for _ in range(MAX_REDIRECTS + 1):
        status, location = _get(url, max(end - time.monotonic(), 0.001))
        if 200 <= status < 300:
            return
        if not (300 <= status < 400 and location):
            raise NotUp(f"HTTP status {status}")
        url = urljoin(url, location)
    raise NotUp(f"more than {MAX_REDIRECTS} redirects")


def _get(url: str, seconds: float) -> tuple[int, str]:
    """Status and Location of one answer. Raises what look() turns into NotUp."""
    parts = urlsplit(url)
    kinds = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
    if parts.scheme not in kinds or not parts.hostname:
        raise NotUp("redirect to what is not http or https")
    connection = kinds[parts.scheme](parts.hostname, parts.port, timeout=seconds)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        headers = {"User-Agent": "siteproof-probe", "Connection": "close"}
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.getheader("Location", "")
    finally:
        connection.close()


def _tcp(target: str, seconds: float) -> None:
    """The port takes a connection."""
    ssh.connected(target, 0, seconds).close()


def _ssh(target: str, seconds: float) -> None:
    """The server shows a version that we speak."""
    line = ssh.greeting(target, seconds)
    if not line:
        raise NotUp("sent no ssh version")
    if not line.startswith(ssh.SPOKEN):
        raise NotUp(f"ssh version {line[:40].strip()}")


def _mount(path: str, seconds: float) -> None:
    """The first look of a service of kind mount."""
    try:
        mount.look(mount.MOUNTED, path, seconds)
    except steps.StepFailed as failed:
        raise NotUp(str(failed)) from None


_KINDS: dict[str, Callable[[str, float], None]] = {
    "http": _http,
    "tcp": _tcp,
    "ssh": _ssh,
    "mount": _mount,
}
