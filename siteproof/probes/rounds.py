"""A round: all probes that are due, at the same time, each ended by its time limit."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from queue import Empty, SimpleQueue

from siteproof.probes import probing, using
from siteproof.probes.probing import NotUp
from siteproof.record.clocks import BOUND
from siteproof.record.probe_log import ProbeResult
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


def run(probes: Mapping[str, Probe], site: Site | None = None) -> Iterator[ProbeResult]:
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
        if site and probe.kind == using.USES:
            using.use(site, probe.target, seconds)
        else:
            probing.look(probe.kind, probe.target, seconds)
    except TimeoutError:
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
