"""What explains the verdict: events in the history, then the other nodes that stay out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from siteproof.record.finding import Finding, Kind
from siteproof.report.chapters import nodes as chapter
from siteproof.report.material import Material
from siteproof.report.phrases import day, few, nodes
from siteproof.report.sections import Link, Table, anchor, to_rows
from siteproof.report.summary import NO_CAUSES
from siteproof.trend import Alert
from siteproof.verdict.tally import Standing, of_all
from siteproof.wording.amounts import change
from siteproof.wording.findings import fulls
from siteproof.wording.tallies import units

Row = tuple[str, str, str, str]
MAX_CAUSES = 8
MAX_CHANGES, MAX_REASONS = 2, 1
BAD = (Standing.FAILED, Standing.BELOW)


def causes(material: Material) -> Table:
    """A row for each, those that explain something before the others."""
    explained = [(alert, _explains(material, alert)) for alert in material.open_changes]
    events = [_event(material, alert, what) for alert, what in explained if what]
    known = {node for _, what in explained for found in what.values() for node in found}
    others = [_event(material, alert, {}) for alert, what in explained if not what]
    rows = [*events, *_of_nodes(material, known), *others]
    return replace(NO_CAUSES, rows=rows, most=MAX_CAUSES)


def _row(who: str, what: str, explains: Mapping[str, str], change: str = "") -> Row:
    """explains: of each criterion, what it explains there."""
    criteria = [(f"{name} {of}", anchor("criterion", name)) for name, of in explains.items()]
    leads = to_rows("change", change) if change else ""
    return who, what, Link(criteria), leads


def _explains(material: Material, alert: Alert) -> dict[str, list[str]]:
    """By criterion, the nodes that are bad there for this change."""
    found = {}
    for tally in of_all(material.site, material.judged.verdicts):
        if tally.criterion.metric != alert.metric:
            continue
        bad = [unit.node for standing in BAD for unit in tally.standings[standing]]
        explained = [node for node in bad if _is_of(material, alert, tally.result.id, node)]
        if explained:
            found[tally.result.id] = explained
    return found


def _is_of(material: Material, alert: Alert, criterion: str, node: str) -> bool:
    """Whether the change explains what a node misses; of the whole fleet only if it alone does."""
    if node not in alert.nodes:
        return False
    if not alert.of_fleet:
        return True
    ruling = material.gate.rulings.get(node)
    return ruling is not None and any(
        why.kind is Kind.MISSES_BOUND and why.criterion == criterion and why.get("event")
        for why in ruling.findings
    )


def _event(material: Material, alert: Alert, explains: dict[str, list[str]]) -> Row:
    who = f"all of {alert.place}" if alert.of_fleet else _led(material, alert.nodes)
    since = day(alert.begin.time)
    parts = [f"{alert.series_name} {change(alert.relative)} since {since}"]
    parts += ["a drift"] * (alert.kind == "drift") + ["provisional"] * alert.provisional
    if alert.meets:
        parts.append(f"meets its bound on {alert.meets}")
    parts += filter(None, [few(fulls(alert.changed), MAX_CHANGES, "; ")])
    of_criteria = {name: units(names) for name, names in explains.items()}
    return _row(who, "; ".join(parts), of_criteria, alert.id)


def _of_nodes(material: Material, known: Iterable[str]) -> Iterator[Row]:
    """The nodes that stay out for what no change explains, those with alike reasons together."""
    rulings = material.gate.rulings
    out = [r for r in rulings.values() if not r.back and r.node not in set(known)]
    for group in chapter.in_rows(material, out):
        why = few(group.reasons, MAX_REASONS, "; ") or "no reason known"
        explains = dict.fromkeys(_criteria(rulings[group.nodes[0]].findings), nodes(group.nodes))
        yield _row(_led(material, group.nodes), f"{group.state}: {why}", explains)


def _led(material: Material, names: Iterable[str]) -> Link:
    """Nodes as a set that leads to the row with the reasons of the first."""
    return chapter.to_reason(material, next(iter(names), ""), nodes(names))


def _criteria(findings: Iterable[Finding]) -> list[str]:
    return [why.criterion for why in findings if why.criterion]
