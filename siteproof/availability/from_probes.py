"""Up and down times of services, from the results of their probes.

A good probe proves an up time from its start to the next probe, and at most for its interval and a
tenth of it; so does a bad one a down time. A round that was missed is a gap.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from siteproof.availability.intervals import Span, Spans, seconds, subtract, union
from siteproof.record.clocks import BOUND
from siteproof.record.finding import Finding, note
from siteproof.record.probe_log import ProbeLog, ProbeResult
from siteproof.sites import Probe

REACH = 1.1  # intervals for which a probe counts: cron is late by some seconds


def up_and_down(results: Sequence[ProbeResult]) -> tuple[Spans, Spans]:
    """When a service was up and when it was down, from the results of one probe in any order."""
    ordered = sorted(results, key=lambda one: (one.at, not one.ok))  # of two, the bad one counts
    up: list[Span] = []
    down: list[Span] = []
    for number, one in enumerate(ordered):
        end = one.at + int(one.interval * REACH)
        if number + 1 < len(ordered):
            end = min(end, ordered[number + 1].at)
        (up if one.ok else down).append((one.at, end))
    return union(up), union(down)


def doubtful(results: Iterable[ProbeResult]) -> Spans:
    """Times that a clock has shown twice, as it was set back. results: of a host, in their order.

    Which of the two was right is not known, so no up time is proven by either. A line is written
    when its probe has ended.
    """
    found: list[Span] = []
    latest = 0
    for one in results:
        written = one.at + int(one.took)
        if written < latest - BOUND:
            found.append((one.at, latest + 1))
        latest = max(latest, written)
    return union(found)


def without_future(log: ProbeLog, now: int) -> tuple[dict[str, list[ProbeResult]], list[Finding]]:
    """The results of each host that are not later than now, and how many are."""
    kept = {
        host: [one for one in results if one.at <= now + BOUND]
        for host, results in log.hosts.items()
    }
    left = len(log.results) - sum(map(len, kept.values()))
    text = "{count:n line} of probes left out: later than now"
    return kept, [note(text, count=left)] if left else []


def of_services(
    log: ProbeLog, probes: Mapping[str, Probe], now: int
) -> tuple[dict[str, list[tuple[Spans, Spans]]], list[Finding]]:
    """Up and down times of each probe, by service, and what is wrong with the log.

    now: in seconds since 1970.
    """
    hosts, findings = without_future(log, now)
    doubt: Spans = ()
    for host, results in hosts.items():
        own = doubtful(results)
        doubt = union(doubt, _reached(own, results))
        if own:
            text = "the clock of {host} was set back: its good probes of {hours:6g} h do not count"
            findings.append(note(text, host=host, hours=seconds(own) / 3600))
    by_probe: dict[str, list[ProbeResult]] = {name: [] for name in probes}
    strangers: dict[str, int] = {}
    for one in (result for results in hosts.values() for result in results):
        probe = probes.get(one.probe)
        if probe and one.service == (probe.service or one.probe):
            by_probe[one.probe].append(one)
        else:
            strangers[one.probe] = strangers.get(one.probe, 0) + 1
    if strangers:
        names = ", ".join(sorted(strangers)[:5])
        text = "{count:n line} left out, of probes that system.yaml does not have: {names}"
        findings.append(note(text, names=names, count=sum(strangers.values())))
    found: dict[str, list[tuple[Spans, Spans]]] = {}
    for name, results in by_probe.items():
        up, down = up_and_down(results)
        found.setdefault(probes[name].service or name, []).append((subtract(up, doubt), down))
    return found, findings


def _reached(spans: Spans, results: Sequence[ProbeResult]) -> Spans:
    """The spans, with the time after each for which a probe within it would count."""
    reach = max((int(one.interval * REACH) for one in results), default=0)
    return union((begin, end + reach) for begin, end in spans)
