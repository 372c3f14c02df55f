"""What became better or worse since the last time, and what else changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from siteproof.analysis.before_after import Effect
from siteproof.compare import accepted, comparison
from siteproof.compare.comparison import Comparison, Row
from siteproof.record.clocks import moment_of
from siteproof.record.finding import Finding
from siteproof.report.material import Material
from siteproof.report.sections import (
    Section,
    Table,
    anchor,
    counted,
    few,
    limited_points,
    nodes,
    to_nodes,
    when,
)
from siteproof.sites import Site
from siteproof.trend import Alert
from siteproof.units import count, with_unit
from siteproof.wording import trends
from siteproof.wording.findings import change, full
from siteproof.wording.in_bounds_unit import levels

MAX_NODES = 3  # of a row
MAX_NAMES = 3  # sessions in a sentence
MAX_ROWS = 60  # of a table, and points of one kind
SIZES = (
    "The change of nodes is without what the whole fleet did and without rhythms of the week; 'as "
    "measured' is the change from before to after, where it is another."
)
EPISODES = "An episode lasted 3 to 20 runs; at its end the values were again as before."
MAX_FACTS = 12  # that changed alike, in a row
COMMAND = "siteproof compare"
NO_NODE = "-"
NODES_FELL = "nodes fell"  # the fleet's median is not worse
NEWS = (Effect.WORSE, Effect.CHANGED, Effect.UNDECIDABLE, Effect.BETTER)
COLUMNS = ("change is", "metric", "role", "before", "now", "change", "noise", "nodes", "fell most")
LEFT_OUT = ("metric", "state")  # of a change: its series and its remark begin with these
ALERT_COLUMNS = tuple(name for name in trends.COLUMNS if name not in LEFT_OUT)
ALERT_NUMBERS = ("before", "after", "change", "runs before", "runs after")


@dataclass(frozen=True)
class Since:
    """What is compared with. words: name and date. until: its newest job (UTC, without a zone).

    judged: which sessions are, if several.
    """

    words: str
    until: datetime
    judged: str
    result: Comparison


def chapter(material: Material) -> Section:
    """The comparison with the last time, and what the whole history shows."""
    title = "What changed since the last time"
    if not material.judged.samples:
        return Section("changes", title, "Nothing was measured, so nothing is compared.")
    since, tables, points = material.once(last_time), [], list[str]()
    lead = "There is no earlier measurement to compare with"
    if since:
        rows = since.result.rows
        tables = [_metrics(material.site, since.result), besides(since.result.changed)]
        lines = [f"Not comparable: {full(why)}" for why in since.result.not_comparable]
        points = limited_points(lines, MAX_ROWS)
        worse = sum(row.change.effect is Effect.WORSE for row in rows)
        fell = sum(bool(row.worst) for row in rows)
        lead = (
            f"Compared with {since.words}{since.judged}: worse for the whole fleet: {worse} of "
            f"{count(len(rows), 'metric')}; single nodes fell in {fell}"
        )
    lead += f". Over all runs: {count(len(material.open_changes), 'open change')} for the worse."
    return Section("changes", title, lead, tables, points=points, sections=[_of_history(material)])


def last_time(material: Material) -> Since | None:
    """What was accepted last before what is judged; else the last that measured the same."""
    last = accepted.last_time(material.sessions.headers, material.names, material.accepted)
    if last is None:
        return None
    kind = "campaign" if any(h.campaign == last.name for h in last.headers) else "session"
    words = f"{kind} {last.name} of {when(max(h.time for h in last.headers))}"
    if one := last.acceptance:
        words = f"{one.name}, accepted by {one.who} on {when(one.when)}"
    material.progress(f"comparing with {words}")
    several = ""
    if len(material.names) > 1:
        named = few(material.names, MAX_NAMES)
        several = f" (the values judged now are of {len(material.names)} sessions: {named})"
    before = material.sessions.of(last.holds)
    result = comparison.compare(material.site, before, material.judged.samples, material.perflogs)
    until = max(moment_of(header) for header in last.headers).replace(tzinfo=None)
    return Since(words, until, several, result)


def _metrics(site: Site, result: Comparison) -> Table:
    """A row for each metric that changed; the others are counted."""
    shown = [r for r in result.rows if r.change.effect in NEWS or r.worst]
    number = Counter(r.change.effect for r in result.rows)
    counts = counted((change, number[change]) for change in Effect)
    note = (
        f"Of {count(len(result.rows), 'metric')}: {counts}. Medians over the nodes; noise is "
        "the robust standard error of the change. Undecidable: the change is smaller than what "
        "one value can show."
    )
    rows = [
        (
            NODES_FELL if r.worst and r.change.effect is not Effect.WORSE else str(r.change.effect),
            r.name,
            r.role,
            *levels_of(site, r),
            change(r.change.change),
            "unknown" if r.change.one_value else change(r.change.noise).lstrip("+"),
            str(len(r.nodes)),
            worst(r) or "-",
        )
        for r in shown
    ]
    title = "Metrics that changed"
    return Table(COLUMNS, rows, note, COLUMNS[3:8], title, most=MAX_ROWS, command=COMMAND)


def besides(findings: Sequence[Finding]) -> Table:
    """What else changed: what has the same old and new value on the same nodes is one row.

    What a node no longer reports is one row, too. The digest of a description is left out where
    the fields that changed have rows.
    """
    named = {why.subject for why in findings if why.get("what") != comparison.DIGEST}
    facts: dict[tuple[str, str, str], dict[str, str]] = {}
    for why in findings:
        what, before, after = (str(why.get(name)) for name in ("what", "before", "after"))
        if what == comparison.DIGEST and why.subject in named:
            continue
        key = (why.subject, after, "" if after == comparison.NOTHING else before)
        facts.setdefault(key, {})[f"{why.check} {what}".strip()] = before
    rows = []
    for (subject, after, _), befores in facts.items():
        values = set(befores.values())
        before = values.pop() if len(values) == 1 else count(len(befores), "value")
        rows.append((subject or NO_NODE, few(list(befores), MAX_FACTS), before, after))
    title = "Changed besides the results"
    columns = ("nodes", "what", "before", "now")
    return Table(columns, rows, title=title, most=MAX_ROWS, command=COMMAND)


def worst(row: Row, known: Collection[str] = ()) -> str:
    """The nodes that fell most, without those that are known."""
    fell = [(node, by) for node, by in row.worst if node not in known]
    text = few([f"{node} {change(by)}".removesuffix(" -") for node, by in fell], MAX_NODES)
    level = [node for node, _ in fell if node in row.as_others]
    return f"{text}; now as the others: {nodes(level)}" if level else text


def levels_of(site: Site, row: Row) -> tuple[str, str]:
    """What a metric was and is, as `siteproof compare` has it."""
    before, after, unit = levels(site, row.name, row.change.before, row.change.after, row.unit)
    return with_unit(before, unit), with_unit(after, unit)


def _of_history(material: Material) -> Section:
    """Every change of a level that the whole history shows, worse ones first."""
    found = material.survey
    alerts = sorted(found.all, key=lambda a: (not a.open, not a.worse))
    lead = "The history has no series that could show a change."
    if found.series:
        lead = (
            f"{count(len(alerts), 'change')} in {count(found.points, 'value')} of {found.series} "
            f"series; {sum(a.open for a in alerts)} for the worse are open: neither past nor "
            "acknowledged."
        )
    times = [moment_of(sample.header).replace(tzinfo=None) for sample in material.judged.samples]
    first, last = min(times), max(times)
    recent = [
        a
        for a in alerts
        if a.kind == "episode" and a.made_good
        if a.first_after.time <= last and a.made_good.time > first
    ]
    tables = [
        _alerts(material, recent, f"Episodes from {when(first)} to {when(last)}", EPISODES),
        _alerts(material, [a for a in alerts if a not in recent], "Steps and drifts", SIZES),
    ]
    points = [f"Acknowledged: {trends.acknowledged(material.site, a)}" for a in found.acknowledged]
    for title, lines in (
        ("A recurring pattern and no step", map(trends.swing, found.seasons)),
        ("Not judged", trends.gaps(found.gaps)),
        ("Left out of the history", material.history.refused),
    ):
        points += limited_points([f"{title}: {line}" for line in lines], MAX_ROWS)
    return Section("history", "Over the whole history", lead, tables, points=points)


def _alerts(material: Material, alerts: Sequence[Alert], title: str, note: str) -> Table:
    """A row for each change, to which others lead."""
    ids = [anchor("change", alert.id) for alert in alerts]
    whole, command = of_alerts(material, alerts), "siteproof trend"
    return replace(whole, title=title, note=note, ids=ids, most=MAX_ROWS, command=command)


def of_alerts(material: Material, alerts: Sequence[Alert]) -> Table:
    """Changes with the cells of `siteproof trend --plain`."""
    rows = []
    for alert in alerts:
        cells = dict(zip(trends.COLUMNS, trends.plain(material.site, alert), strict=True))
        cells["nodes"] = to_nodes(alert.nodes)
        rows.append([cells[name] for name in ALERT_COLUMNS])
    return Table(ALERT_COLUMNS, rows, numeric=ALERT_NUMBERS)


def where(alert: Alert) -> str:
    """The nodes of a change, and the place that has them."""
    names = nodes(alert.nodes)
    return names if alert.place in ("", names) else f"{alert.place}: {names}"
