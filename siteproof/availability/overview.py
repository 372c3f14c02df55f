"""The availability of a system in a period: its services, nodes and partitions, and the whole.

The one place of this room that reads files: probes and node events below perflogs/, and the planned
windows of the site. Nothing here asks Slurm. Its rows are texts, for the terminal and the page. The
values of `Availability.*` that a criterion names follow from it.

Up and down times: of services from their probes, of nodes from Slurm's node events.

A good probe proves an up time from its start to the next probe, and at most for its interval and a
tenth of it; so does a bad one a down time. A round that was missed is a gap. Slurm lists no up
times: a node is up while the cluster was registered with slurmdbd and no event of the node
contradicts that. Events of a node overlap, so they are united.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from itertools import chain
from pathlib import Path

from ClusterShell.NodeSet import NodeSet

from siteproof import nodesets
from siteproof.availability.definitions import (
    Definitions,
    Span,
    Spans,
    Uptime,
    definitions,
    gap,
    intersect,
    mtbf,
    needs,
    overall,
    scheduled,
    seconds,
    subtract,
    union,
    uptime,
)
from siteproof.errors import UserError
from siteproof.record import availability_log, finding
from siteproof.record.availability_log import EventRecord, ProbeLog, ProbeResult
from siteproof.record.clocks import BOUND
from siteproof.record.finding import Finding, Kind, Verdict, note
from siteproof.record.pair_units import grouped
from siteproof.sites import Criterion, Probe, Site, site_tables
from siteproof.sites.promise import AVAILABILITY
from siteproof.sites.site_tables import ALL, PlannedWindow
from siteproof.slurm.records import EventList, parse_events

HOUR = 3600


@dataclass(frozen=True)
class Overview:
    """What is known of a period. whole: the system; None where nothing of it was ever recorded.

    services, gateways, nodes, partitions: by name. interval: the longest of the probes, in seconds.
    disconnected: when slurmdbd had no connection to the control daemon; None without its record.
    """

    period: Span
    whole: Uptime | None = None
    services: Mapping[str, Uptime] = field(default_factory=dict)
    gateways: Mapping[str, Uptime] = field(default_factory=dict)
    nodes: Mapping[str, Uptime] = field(default_factory=dict)
    partitions: Mapping[str, Uptime] = field(default_factory=dict)
    findings: Sequence[Finding] = ()
    interval: int = 0
    disconnected: Spans | None = None

    @property
    def period_hours(self) -> float:
        """The length of the period."""
        return (self.period[1] - self.period[0]) / HOUR

    @property
    def definitions(self) -> Definitions:
        """The four shares of the system."""
        return definitions(self.whole, list(self.nodes.values()))

    def missing(self, part: Uptime | None = None) -> Spans:
        """The times of the period that were not measured, of a part or of the whole."""
        found = part or self.whole
        return found.missing(self.period) if found else union([self.period])

    def measured_hours(self, part: Uptime | None = None) -> float:
        """How much of the period was measured, of a part or of the whole."""
        whole = self.period[1] - self.period[0]
        return (whole - seconds(self.missing(part))) / HOUR

    def hours_missing(self, part: Uptime | None = None, subject: str = "") -> Finding | None:
        """The finding on what was not measured; None if nothing is missing."""
        gaps = self.missing(part)
        if not gaps:
            return None
        return note(
            "{hours:6g} of {needed:6g} h were measured; not measured: {first} to {until}"
            "{more: and %s more}",
            subject=subject,
            hours=self.measured_hours(part),
            needed=self.period_hours,
            first=minute(gaps[0][0]),
            until=minute(gaps[0][1]),
            more=len(gaps) - 1 or None,
        )


def read(site: Site, perflogs: Path, period: Span, now: int) -> Overview:
    """The overview of a period. period, now: in seconds since 1970.

    Raises UserError where a folder cannot be listed.
    """
    windows, findings = _windows(site, period)
    log = availability_log.read(perflogs, site.name, period[0] - availability_log.DAY, period[1])
    records, refused = availability_log.read_events(perflogs, site.name)
    unread = [*log.refused, *refused]
    findings += [finding.of(Kind.NOT_READ, message=str(error)) for error in unread]
    findings += [
        finding.of(Kind.LINES_BROKEN, {"file": path.name, "count": count})
        for path, count in log.broken.items()
    ]
    probes = site.system.probes
    within = union([(period[0], min(period[1], now))])
    services, of_log = of_services(log, probes, now)
    by_service = {
        name: _service(parts, windows, name).within(within) for name, parts in services.items()
    }
    gateways = {probe.service or name for name, probe in probes.items() if probe.gateway}
    partitions = {
        name: site.nodes_of(name)
        for name, partition in site.system.partitions.items()
        if partition.scheduler == "slurm"
    }
    every = nodesets.of(chain.from_iterable(partitions.values()))
    times = of_nodes(records, every)
    nodes = _nodes(times, every, _planned_nodes(site, windows), within) if records else {}
    own = {name: part for name, part in by_service.items() if name not in gateways}
    return Overview(
        period=period,
        whole=_whole(list(own.values()), list(nodes.values())),
        services=own,
        gateways={name: part for name, part in by_service.items() if name in gateways},
        nodes=nodes,
        partitions={
            name: needs([nodes[node] for node in found], 1)
            for name, found in partitions.items()
            if nodes
        },
        findings=[*findings, *of_log, *times.findings],
        interval=max((int(probe.interval.to("s")) for probe in probes.values()), default=0),
        disconnected=intersect(times.disconnected, within) if records else None,
    )


def of_members(parts: Mapping[str, Overview], count: int) -> Overview:
    """The overview of a system that is up while so many of its members are.

    Its services are its members. A gateway of several members is up while so many of them reach it.
    """
    known = {name: part.whole for name, part in parts.items() if part.whole and part.services}
    gateways = grouped(one for part in parts.values() for one in part.gateways.items())
    return Overview(
        period=next(iter(parts.values())).period,
        whole=needs([known.get(name, Uptime(())) for name in parts], count),
        services=known,
        gateways={name: needs(own, min(count, len(own))) for name, own in gateways.items()},
        findings=[replace(one, subject=name) for name, p in parts.items() for one in p.findings],
        interval=max(part.interval for part in parts.values()),
    )


def _whole(services: Sequence[Uptime], nodes: Sequence[Uptime]) -> Uptime | None:
    """The system is down while a service is, or while all nodes are."""
    parts = [*services, *([needs(nodes, 1)] if nodes else [])]
    return needs(parts, len(parts)) if parts else None


def _windows(site: Site, period: Span) -> tuple[list[PlannedWindow], list[Finding]]:
    """The planned windows of a period, and a finding on each that was announced too late."""
    own = [one for one in site.windows if intersect(union([one.span]), union([period]))]
    late = [
        note(
            "window from {begin} is not planned: {by} announced it at {announced}",
            begin=minute(one.span[0]),
            announced=minute(site_tables.seconds(one.announced)),
            by=one.by,
        )
        for one in own
        if not one.planned
    ]
    return [one for one in own if one.planned], late


def _planned_nodes(site: Site, windows: Iterable[PlannedWindow]) -> list[tuple[set[str], Spans]]:
    """The windows of nodes, each with its nodes."""
    found = []
    for window in windows:
        if window.nodes:
            text = window.nodes
            nodes = site.system.inventory if text == ALL else site.system.members(text)
            found.append((set(nodes), union([window.span])))
    return found


def _service(
    parts: Sequence[tuple[Spans, Spans]], windows: Iterable[PlannedWindow], name: str
) -> Uptime:
    """A service from the up and down times of its probes."""
    planned = union(window.span for window in windows if window.covers_service(name))
    return needs([uptime(union(up, down), down, planned) for up, down in parts], len(parts))


def _nodes(
    times: NodeTimes, every: NodeSet, planned: Sequence[tuple[set[str], Spans]], within: Spans
) -> dict[str, Uptime]:
    """Each node within the period."""
    found = {}
    for node in every:
        windows = union(*(spans for nodes, spans in planned if node in nodes))
        whole = uptime(times.known.get(node, ()), times.down.get(node, ()), windows)
        found[node] = whole.within(within)
    return found


MAX_NODES = 8  # that are drawn, the worst first
FOUR = ("availability", "overall", "scheduled")
COLUMNS = (
    *("subject", "overall", "scheduled", "down, h", "planned, h"),
    *("failures", "MTBF, h", "measured, h"),
)


def percent(share: Fraction | None) -> str:
    """A share with two decimals: 95.83 %."""
    return "-" if share is None else f"{float(100 * share):.2f} %"


def four_rows(found: Overview) -> list[tuple[str, str, str]]:
    """The four definitions."""
    four = found.definitions
    return [
        ("system as a whole", percent(four.system_overall), percent(four.system_scheduled)),
        ("weighted by nodes", percent(four.node_overall), percent(four.node_scheduled)),
    ]


def subjects(found: Overview) -> dict[str, Uptime]:
    """The system, services, gateways, partitions, and the worst nodes that were ever down."""
    rows = {"system": found.whole} if found.whole else {}
    rows |= {f"service {name}": part for name, part in found.services.items()}
    rows |= {f"gateway {name}": part for name, part in found.gateways.items()}
    rows |= {f"partition {name}": part for name, part in found.partitions.items()}
    worst = sorted(found.nodes, key=lambda node: (-seconds(found.nodes[node].down), node))
    return rows | {node: found.nodes[node] for node in worst[:MAX_NODES] if found.nodes[node].down}


def rows(found: Overview) -> list[tuple[str, ...]]:
    """A row of COLUMNS for each subject."""
    made = []
    for name, part in subjects(found).items():
        between = mtbf(part)
        bound = f"> {between.bound:.0f}" if between.bound else "-"
        shares = percent(overall([part])), percent(scheduled([part]))
        hours = (seconds(part.unscheduled) / HOUR, seconds(part.scheduled) / HOUR)
        mean = f"{between.mean:.0f}" if between.mean else bound
        measured = f"{found.measured_hours(part):.2f}"
        down = (f"{one:.2f}" for one in hours)
        made.append((name, *shares, *down, str(between.failures), mean, measured))
    return made


MONTH = 720  # hours: 30 days
SCHEDULED, OVERALL = f"{AVAILABILITY}scheduled", f"{AVAILABILITY}overall"
DOWNTIME, GATEWAY_GAP = f"{AVAILABILITY}downtime", f"{AVAILABILITY}gateway_gap"
CONTINUOUS = f"{AVAILABILITY}continuous"
UNITS = {SCHEDULED: "%", OVERALL: "%", DOWNTIME: "h/month", CONTINUOUS: "d", GATEWAY_GAP: "pp"}
DAY = 86_400  # seconds
WINDOW_HOURS, INTERVAL = "window_hours", "interval"
MODE = "mode"  # every criterion has this condition, and probes have no mode


@dataclass(frozen=True)
class WindowFigure:
    """One metric of a period. value: exact, of the measured time; None if there is none.

    subject: the system, or the gateway that is the worst. found: what is known of the period; part:
    of the subject. why: the reason why there is no value, or why hours are missing.
    """

    metric: str
    value: Fraction | None
    subject: str
    found: Overview
    part: Uptime | None
    why: Finding | None = None

    @property
    def measured_hours(self) -> float:
        """How much of the period was measured."""
        return self.found.measured_hours(self.part) if self.part else 0.0

    @property
    def missing(self) -> Spans:
        """The rest of the period."""
        return self.found.missing(self.part) if self.part else (self.found.period,)

    @property
    def unit(self) -> str:
        """The unit of the catalogue."""
        return UNITS[self.metric]

    @property
    def conditions(self) -> dict[str, str]:
        """What a criterion can require: the measured hours, and the interval in seconds."""
        return {WINDOW_HOURS: f"{self.measured_hours:.10g}", INTERVAL: str(self.found.interval)}

    def meets_conditions(self, criterion: Criterion) -> bool:
        """Whether it is measured as the criterion requires; without a window, the whole period."""
        if self.value is None or (WINDOW_HOURS not in criterion.conditions and self.missing):
            return False
        own = self.conditions
        required = {name: rule for name, rule in criterion.conditions.items() if name != MODE}
        return all(name in own and rule.met_by(own[name]) for name, rule in required.items())


def figures(
    site: Site, perflogs: Path, begin: datetime, end: datetime, count: int = 0
) -> dict[str, WindowFigure]:
    """Each metric of UNITS in a period that has ended, from what is recorded of a site.

    begin, end: with a time zone. count: of a system with members, how many of them must be up.
    Raises UserError for a period that ends before it begins, and
    UserError and UserErrors as read.
    """
    if begin >= end:
        raise UserError("period", f"{end} is not after {begin}")
    period = (int(begin.timestamp()), int(end.timestamp()))
    parts = site.members or {site.name: site}
    each = {name: read(one, perflogs, period, period[1]) for name, one in parts.items()}
    return figures_of(site.name, of_members(each, count) if site.members else each[site.name])


def figures_of(system: str, found: Overview) -> dict[str, WindowFigure]:
    """The same of an overview that was read before."""
    part = found.whole if found.services else None  # it needs services that are probed
    why = found.hours_missing(subject=system) if part else _no_probes("probes")
    made = {
        metric: WindowFigure(metric, value, system, found, part, why)
        for metric, value in _values(part).items()
    }
    return made | {GATEWAY_GAP: _of_gateways(system, found)}


def _values(part: Uptime | None) -> dict[str, Fraction | None]:
    """The metrics of a system."""
    known = [part] if part else []
    whole, planned = overall(known), scheduled(known)
    longest = max((end - begin for begin, end in part.up), default=0) if part else None
    return {
        SCHEDULED: None if planned is None else 100 * planned,
        OVERALL: None if whole is None else 100 * whole,
        DOWNTIME: None if whole is None else MONTH * (1 - whole),
        CONTINUOUS: None if longest is None else Fraction(longest, DAY),
    }


def _of_gateways(system: str, found: Overview) -> WindowFigure:
    """The largest gap of a gateway."""
    if not found.gateways or not found.services or found.whole is None:
        what = "probes of a gateway" if found.services else "probes"
        return WindowFigure(GATEWAY_GAP, None, system, found, None, _no_probes(what))
    whole = found.whole
    gaps = {name: gap(whole, part) for name, part in found.gateways.items()}
    # A gateway that was never measured hides no other one, but leaves the answer open.
    name = max(gaps, key=lambda one: (gaps[one] is None, gaps[one] or Fraction(-100)))
    part = found.gateways[name]
    both = part.within(whole.known)
    why = found.hours_missing(both, subject=name)
    return WindowFigure(GATEWAY_GAP, gaps[name], name, found, both, why)


def _no_probes(what: str) -> Finding:
    return note("system.yaml has no {needed}", needed=what)


def verdict_of(criterion: Criterion, figure: WindowFigure) -> Verdict | None:
    """PASS, FAIL or INCOMPLETE; None for a criterion that decides nothing."""
    if criterion.kind == "report_only" or criterion.not_here:
        return None
    if figure.value is None or not figure.meets_conditions(criterion):
        return Verdict.INCOMPLETE
    return Verdict.PASS if criterion.met(figure.value, figure.unit) else Verdict.FAIL


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
