"""A round: all probes that are due, at the same time, each ended by its time limit."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from queue import Empty, SimpleQueue

from siteproof.probes import probing
from siteproof.probes.probing import NotUp
from siteproof.record.clocks import BOUND
from siteproof.record.probe_log import ProbeResult
from siteproof.sites import Probe

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


def run(probes: Mapping[str, Probe]) -> list[ProbeResult]:
    """The result of each probe, in their order. It ends with the last time limit at the latest."""
    answers: SimpleQueue[tuple[str, float, str]] = SimpleQueue()
    at, start = int(time.time()), time.monotonic()
    for name, probe in probes.items():
        # A daemon ends with the process, so a name server that hangs holds up nobody.
        threading.Thread(target=_look, args=(name, probe, answers), daemon=True).start()
    limits = {name: float(probe.timeout.to("s")) for name, probe in probes.items()}
    found: dict[str, tuple[float, str]] = {}
    end = start + max(limits.values(), default=0)
    while len(found) < len(probes):
        try:
            name, took, why = answers.get(timeout=max(end - time.monotonic(), 0.001))
        except Empty:
            break
        found[name] = took, why
    return [_result(name, probe, at, found.get(name)) for name, probe in probes.items()]


def _look(name: str, probe: Probe, answers: SimpleQueue[tuple[str, float, str]]) -> None:
    start, why = time.monotonic(), ""
    try:
        probing.look(probe.kind, probe.target, float(probe.timeout.to("s")))
    except NotUp as error:
        why = str(error) or "no reason given"
    except Exception as error:  # noqa: BLE001 - a service must not end the round of the others
        why = f"the probe broke: {type(error).__name__}"
    answers.put((name, time.monotonic() - start, why))


def _result(name: str, probe: Probe, at: int, answer: tuple[float, str] | None) -> ProbeResult:
    """The line of a probe; an answer after its time limit is none."""
    limit = float(probe.timeout.to("s"))
    took, why = answer or (limit, "")
    if answer is None or (not why and took > limit):
        why = f"no answer within {limit:g} s"
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
