"""Down times of nodes, from Slurm's node events as they were recorded.

Slurm lists no up times: a node is up while the cluster was registered with slurmdbd and no event of
the node contradicts that. Events of a node overlap, so they are united.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from ClusterShell.NodeSet import NodeSet

from siteproof.availability.intervals import Span, Spans, intersect, subtract, union
from siteproof.record import finding
from siteproof.record.event_log import EventRecord
from siteproof.record.finding import Finding, Kind, note
from siteproof.slurm.node_events import EventList, NodeEvent, parse_events


@dataclass
class NodeTimes:
    """down: of each node with an event. known: when Slurm's record covers each node."""

    down: dict[str, Spans] = field(default_factory=dict)
    known: dict[str, Spans] = field(default_factory=dict)
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
        covered[known_to_slurm] = union(
            covered.get(known_to_slurm, ()), _covered(events, (record.begin, record.end))
        )
        for event in events.of_nodes:
            if event.backwards:
                backwards[_backwards(event)] = None
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


def _covered(events: EventList, period: Span) -> Spans:
    """When the cluster was registered and not disconnected, within the period of the query."""
    registered = union(_span(e, period) for e in events.of_cluster if e.registered)
    disconnected = union(_span(e, period) for e in events.of_cluster if not e.registered)
    return intersect(subtract(registered, disconnected), union([period]))


def _span(event: NodeEvent, period: Span) -> Span:
    return event.start, period[1] if event.end is None else event.end


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


def _backwards(event: NodeEvent) -> Finding:
    return note(
        "event {state} ends at {end}, before it begins at {begin}: left out",
        subject=event.node,
        state=event.state.said,
        begin=minute(event.start),
        end=minute(event.end or 0),
    )


def minute(at: int) -> str:
    """Seconds since 1970 as a time to the minute, in UTC: 2026-11-21 18:00."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M}"
