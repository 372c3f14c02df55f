"""What explains the verdict: events in the history, then the other nodes that stay out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from siteproof.record.finding import Finding, Kind
from siteproof.report.chapters import nodes as chapter
from siteproof.report.material import Material
from siteproof.report.phrases import day, few, nodes, percent_change
from siteproof.report.summary import Cause
from siteproof.trend import Alert
from siteproof.verdict.tally import Standing, of_all
from siteproof.wording.findings import fulls
from siteproof.wording.tallies import units

MAX_CAUSES = 8
MAX_CHANGES, MAX_REASONS = 2, 1
BAD = (Standing.FAILED, Standing.BELOW)


def causes(material: Material, alerts: Sequence[Alert]) -> tuple[Sequence[Cause], int]:
    """The first of them, those that explain something before the others; and how many are left.

    alerts: the open ones.
    """
    explained = [(alert, _explains(material, alert)) for alert in alerts]
    events = [_event(alert, what) for alert, what in explained if what]
    known = {node for _, what in explained for found in what.values() for node in found}
    others = [_event(alert, {}) for alert, what in explained if not what]
    found = [*events, *_of_nodes(material, known), *others]
    return found[:MAX_CAUSES], max(0, len(found) - MAX_CAUSES)


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


def _event(alert: Alert, explains: dict[str, list[str]]) -> Cause:
    who = f"all of {alert.place}" if alert.of_fleet else nodes(alert.nodes)
    since = day(alert.begin.time)
    parts = [f"{alert.series_name} {percent_change(alert.relative)} since {since}"]
    parts += ["a drift"] * (alert.kind == "drift") + ["provisional"] * alert.provisional
    if alert.meets:
        parts.append(f"meets its bound on {alert.meets}")
    parts += filter(None, [few(fulls(alert.changed), MAX_CHANGES, "; ")])
    of_criteria = [(name, units(names)) for name, names in explains.items()]
    node = "" if alert.of_fleet else next(iter(alert.nodes), "")
    return Cause(who, "; ".join(parts), of_criteria, alert.id, str(node))


def _of_nodes(material: Material, known: Iterable[str]) -> Iterator[Cause]:
    """The nodes that stay out for what no change explains, those with alike reasons together."""
    rulings = material.gate.rulings
    out = [r for r in rulings.values() if not r.back and r.node not in set(known)]
    for group in chapter.grouped(material, out):
        why = few(group.reasons, MAX_REASONS, "; ") or "no reason known"
        first = group.nodes[0]
        explains = dict.fromkeys(_criteria(rulings[first].findings), nodes(group.nodes))
        yield Cause(nodes(group.nodes), f"{group.state}: {why}", list(explains.items()), "", first)


def _criteria(findings: Iterable[Finding]) -> list[str]:
    return [why.criterion for why in findings if why.criterion]
