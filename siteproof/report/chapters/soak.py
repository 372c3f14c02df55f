"""The newest soak, or the campaign that is judged: its nodes over time, failures, and speed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from siteproof.availability import soak as soaks
from siteproof.availability.definitions import Spans, seconds, union
from siteproof.availability.overview import HOUR
from siteproof.availability.soak import Failure, Soak, ended, is_soak, moment
from siteproof.record.campaign import GAP
from siteproof.record.clocks import moment_of
from siteproof.record.pair_units import grouped
from siteproof.record.samples import Header
from siteproof.report.figure import rows as drawn
from siteproof.report.figure.rows import DOWN, LOAD, PLANNED, Course, Strip
from siteproof.report.material import Material
from siteproof.report.sections import Figure, Section, Table, counted, limited_points, to_rows, when
from siteproof.units import count
from siteproof.wording import trends as words
from siteproof.wording.findings import full, warning
from siteproof.wording.verdicts import own

MAX_STRIPS, MAX_COURSES, MAX_POINTS, MAX_SPEEDS = 20, 4, 12, 20
SHORTEST = 100  # so many of the shortest pause that is drawn are the period
MARKED = [kind.value for kind in Failure if kind is not Failure.NODE_DOWN]  # that is a bar
NODES = ("node", "rounds asked", "answered", "under load, h", "down, h", "failures")
HOW = (
    "hours: those in which a failure would have been seen, of all nodes together; of the control "
    "daemon and of rounds, hours of the period. MTBF: these hours by the failures; bound: its "
    "lower bound at a confidence of 90 %. A failure lasts until a good answer of node and check."
)


def chapter(material: Material) -> Section | None:
    """Failures by class, a timeline of the nodes, and speed under load; None without a soak."""
    jobs = _jobs(material)
    if not jobs:
        return None
    soak = soaks.read(material.site, material.sessions, jobs, material.now)
    name = material.judged.campaign or soak.name
    command = own(material.system, "availability", **{"--campaign": name})
    failures = Table(
        words.FAILURES,
        [words.failure_row(one) for one in soak.tallies],
        HOW,
        words.FAILURES[1:],
        "Failures by class",
    )
    speeds = Table(
        words.SPEEDS,
        [words.speed_row(one) for one in soak.speeds],
        "first, last: medians of the rounds at both ends, by the rule of siteproof compare; drift: "
        "over all rounds, by that of siteproof trend.",
        words.SPEEDS[1:6],
        "Speed under load",
        most=MAX_SPEEDS,
        command=f"{command} --json",
    )
    points = [
        *map(words.event, soak.events),
        *(f"Not whole: {line}" for line in words.open_rounds(soak)),
    ]
    points = limited_points(points, MAX_POINTS) + [warning(why) for why in soak.findings]
    if missing := soak.known.hours_missing():
        points.append(f"Availability: {full(missing)}")
    lead = f"Campaign {soak.name}: {words.answer(soak)}."
    figure = _figure(soak, command)
    return Section("soak", "Soak", lead, [failures, speeds], [figure], points)


def _jobs(material: Material) -> Sequence[Header]:
    """The jobs of the campaign that is judged, if it is a soak; else of the newest soak.

    One that ended longer ago than the pause that ends a campaign is not shown.
    """
    judged, sessions = material.judged, material.sessions
    if judged.campaign:
        jobs = soaks.jobs_of(sessions, judged.campaign, material.now)
        return jobs if is_soak(jobs) else []
    end = judged.as_of or material.now
    headers = [one for one in (*sessions.headers, *sessions.unread) if moment_of(one) <= end]
    jobs = soaks.newest(headers)
    is_old = jobs and max(map(ended, jobs)) < (end - GAP).timestamp()
    return [] if is_old else jobs


def _figure(soak: Soak, command: str) -> Figure:
    ranked = _ranked(soak)
    shown, others = ranked[:MAX_STRIPS], ranked[MAX_STRIPS:]
    strips = {node: _strip(soak, [node]) for node in shown}
    if others:
        strips[f"{count(len(others), 'other node')}"] = _strip(soak, others)
    whole = sorted({one.subject for one in soak.events} - set(ranked))
    if whole:
        strips["no single node"] = _strip(soak, whole)
    begin, end = map(moment, soak.known.period)
    moved = sorted(soak.speeds, key=lambda one: -abs(one.change or 0.0))[:MAX_COURSES]
    courses = [
        Course(
            one.metric, [at.begin.timestamp() for at in one.shares], [at.share for at in one.shares]
        )
        for one in moved
    ]
    caption = (
        f"{count(len(ranked), 'node')} in {count(len(soak.rounds), 'round')} from {when(begin)} to "
        f"{when(end)}; a mark is the begin of a failure; pauses of less than a hundredth of the "
        f"time are not drawn; below: each round's median over the nodes, of the {len(moved)} of "
        f"{count(len(soak.speeds), 'metric')} that changed most."
    )
    title, heading = "Nodes under load", "Nodes under load, those with failures first"
    svg = drawn.draw(title, strips, courses, MARKED, (begin, end))
    rows, command = _rows(soak, ranked), f"{command} --json"
    table = Table(NODES, rows, "", NODES[1:5], heading, most=MAX_STRIPS, command=command)
    metrics = {one.metric.partition(" ")[0] for one in soak.speeds}
    return Figure("soak", title, svg, caption, table, metrics)


def _rows(soak: Soak, nodes: Sequence[str]) -> Sequence[tuple[str, ...]]:
    """A row of NODES for each."""
    asked = Counter(node for one in soak.rounds for node in one.asked)
    answered = Counter(node for one in soak.rounds for node in one.answered)
    failed = grouped((one.subject, one.kind.value) for one in soak.events)
    rows = []
    for node in nodes:
        part, kinds = soak.known.nodes.get(node), Counter(failed.get(node, ()))
        load = f"{seconds(soak.load[node]) / HOUR:.1f}"
        down = f"{seconds(part.down) / HOUR:.2f}" if part else "-"
        numbers = str(asked[node]), str(answered[node]), load, down
        rows.append((to_rows("node", node), *numbers, counted(kinds.items()) or "none"))
    return rows


def _ranked(soak: Soak) -> list[str]:
    """The nodes: most failures first, then those that were under load for the shortest time."""
    counts = Counter(one.subject for one in soak.events)
    return sorted(soak.load, key=lambda node: (-counts[node], seconds(soak.load[node]), node))


def _strip(soak: Soak, subjects: Sequence[str]) -> Strip:
    """Of several: when any was under load or down, and the failures of all."""
    parts = [soak.known.nodes[one] for one in subjects if one in soak.known.nodes]
    own = [one for one in soak.events if one.subject in set(subjects)]
    marks = grouped((str(one.kind), one.begin.timestamp()) for one in own)
    times = {
        LOAD: [soak.load.get(one, ()) for one in subjects],
        DOWN: [part.unscheduled for part in parts],
        PLANNED: [part.scheduled for part in parts],
    }
    least = int(soak.known.period_hours * HOUR / SHORTEST)
    return Strip({state: _joined(each, least) for state, each in times.items()}, marks)


def _joined(parts: Sequence[Spans], least: int) -> Spans:
    """The times in any of them, without pauses that are too short to be seen."""
    longer = union((begin, end + least) for part in parts for begin, end in part)
    return tuple((begin, end - least) for begin, end in longer)
