"""Up and down times: of services from their probes, of nodes from Slurm's node events.

A good probe proves an up time from its start to the next probe, and at most for its interval and a
tenth of it; so does a bad one a down time. A round that was missed is a gap. Slurm lists no up
times: a node is up while the cluster was registered with slurmdbd and no event of the node
contradicts that. Events of a node overlap, so they are united.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from ClusterShell.NodeSet import NodeSet

from siteproof.availability.definitions import Span, Spans, intersect, seconds, subtract, union
from siteproof.record import finding
from siteproof.record.availability_log import EventRecord, ProbeLog, ProbeResult
from siteproof.record.clocks import BOUND
from siteproof.record.finding import Finding, Kind, note
from siteproof.record.grouped import grouped
from siteproof.sites import Probe
from siteproof.slurm.records import EventList, parse_events

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
    by_probe = grouped(
        ((one.probe, one.service), one) for results in hosts.values() for one in results
    )
    found: dict[str, list[tuple[Spans, Spans]]] = {}
    for name, probe in probes.items():
        service = probe.service or name
        up, down = up_and_down(by_probe.pop((name, service), []))
        found.setdefault(service, []).append((subtract(up, doubt), down))
    if by_probe:
        names = ", ".join(sorted({probe for probe, _ in by_probe})[:5])
        text = "{count:n line} left out, of probes that system.yaml does not have: {names}"
        findings.append(note(text, names=names, count=sum(map(len, by_probe.values()))))
    return found, findings


def _reached(spans: Spans, results: Sequence[ProbeResult]) -> Spans:
    """The spans, with the time after each for which a probe within it would count."""
    reach = max((int(one.interval * REACH) for one in results), default=0)
    return union((begin, end + reach) for begin, end in spans)


@dataclass
class NodeTimes:
    """down: of each node with an event. known: when Slurm's record covers each node.

    disconnected: when slurmdbd had no connection to the control daemon.
    """

    down: dict[str, Spans] = field(default_factory=dict)
    known: dict[str, Spans] = field(default_factory=dict)
    disconnected: Spans = ()
    findings: list[Finding] = field(default_factory=list)


def of_nodes(records: Sequence[EventRecord], nodes: NodeSet) -> NodeTimes:
    """Down and known times of nodes. nodes: those of the site.

    An event that lasts is known to last until its record was made, and no longer.
    """
    found = NodeTimes()
    down: dict[str, list[Span]] = {}
    covered: dict[str, Spans] = {}  # by the set of nodes that Slurm knew, as it rarely changes
    backwards: dict[Finding, None] = {}
    for record in records:
        events = parse_events(record.text)
        known_to_slurm = str(record.nodes)
        registered, lost = _connected(events, (record.begin, record.end))
        covered[known_to_slurm] = union(covered.get(known_to_slurm, ()), registered)
        found.disconnected = union(found.disconnected, lost)
        for event in events.of_nodes:
            if event.backwards:
                why = note(
                    "event {state} ends at {end}, before it begins at {begin}: left out",
                    subject=event.node,
                    state=event.state.said,
                    begin=minute(event.start),
                    end=minute(event.end or 0),
                )
                backwards[why] = None
            elif event.down:
                last = min(event.end or record.end, record.end)
                down.setdefault(event.node, []).append((event.start, last))
        if events.strange:
            details = {"file": record.name, "count": events.strange}
            found.findings.append(finding.of(Kind.LINES_BROKEN, details))
    found.findings += backwards
    own = set(nodes)
    found.down = {node: union(spans) for node, spans in down.items() if node in own}
    _cover(found, records, covered, nodes)
    return found


def _connected(events: EventList, period: Span) -> tuple[Spans, Spans]:
    """When the cluster was registered, and when disconnected, within the period of the query."""
    spans = grouped(
        (event.registered, (event.start, period[1] if event.end is None else event.end))
        for event in events.of_cluster
    )
    registered, lost = (
        intersect(union(spans.get(state, ())), (period,)) for state in (True, False)
    )
    return subtract(registered, lost), lost


def _cover(
    found: NodeTimes, records: Iterable[EventRecord], covered: dict[str, Spans], nodes: NodeSet
) -> None:
    """Give each node the times in which Slurm knew it; name those that it never knew."""
    sets = {str(record.nodes): record.nodes for record in records}
    for text, spans in covered.items():
        for node in nodes & sets[text]:
            found.known[node] = union(found.known.get(node, ()), spans)
    strangers = nodes.copy()
    for one in sets.values():
        strangers.difference_update(one)
    if strangers and sets:
        found.findings.append(finding.of(Kind.UNKNOWN_TO_SLURM, subject=str(strangers)))


def minute(at: int) -> str:
    """Seconds since 1970 as a time to the minute, in UTC: 2026-11-21 18:00."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M}"
