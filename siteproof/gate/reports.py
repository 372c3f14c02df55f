"""What the gate takes from the verdicts: the state of each node, and what is waived of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import cache
from typing import TYPE_CHECKING

from siteproof import files, trend
from siteproof.answers.criterion import waiver_finding
from siteproof.errors import UserError
from siteproof.gate.decision import Excuse, Ruling, decide
from siteproof.nodes import states
from siteproof.nodes.states import FleetReport, NodeReport
from siteproof.record import evidence_records, pair_units
from siteproof.record.finding import LACKS_NOTHING, Finding, Kind
from siteproof.sites import Site, Waiver
from siteproof.sites.promise import EVERYTHING
from siteproof.trend import alerts
from siteproof.trend.alerts import Alert, Search
from siteproof.verdict.judgement import Judgement

if TYPE_CHECKING:
    from siteproof.history import History


def fleet(judged: Judgement, search: Search | None = None, only: str = "") -> FleetReport:
    """The state of every node, and since when: a repair is a new beginning.

    What a change of the history explains is dated by that change, unless the history cannot be
    read: that stops no answer. only: the node whose findings are dated so, as that takes a while.
    """
    found, repaired = states.report(judged, states.lately(judged)), judged.repairs[0]
    nodes = dict(found.nodes)
    broken: dict[Finding, None] = {}
    with ExitStack() as stack:
        searched = search or _search(judged, stack)

        def search_for(metric: str) -> Sequence[Alert] | None:
            try:
                return searched(metric)
            except OSError as error:  # such as a cache of another user
                why = f"{error.filename}: {error.strerror}"
            except UserError as error:
                why = str(error)
            broken[Finding(Kind.UNREADABLE, message=why)] = None
            return None

        for node in (one for one in found.nodes.values() if only in ("", one.node)):
            repair = repaired[node.node].of_node(node.node) if node.node in repaired else None
            findings, notes = (
                [
                    evidence_records.since_repair(repair, alerts.explained(why, search_for))
                    for why in whys
                ]
                for whys in (node.findings, node.notes)
            )
            nodes[node.node] = replace(node, findings=findings, notes=notes, repair=repair)
    return replace(found, nodes=nodes, warnings=[*found.warnings, *broken])


def _search(judged: Judgement, stack: ExitStack) -> Search:
    """What searches the history of a metric, which is opened once one is needed."""

    @cache
    def opened() -> History:
        from siteproof import history  # DuckDB, which healthy nodes do not need

        perflogs, system = files.perflogs(), judged.site.system.system
        return stack.enter_context(history.open_history(perflogs, [system]))

    @cache
    def search(metric: str) -> Sequence[Alert]:
        return trend.dates(judged.site, opened(), metric, judged.as_of)

    return search


def excused(judged: Judgement, nodes: Mapping[str, NodeReport]) -> list[Ruling]:
    """The nodes of which waivers excuse all that is wrong."""
    decision = decide(nodes, waived(judged, datetime.now(UTC).date()))
    return [ruling for ruling in decision.rulings.values() if ruling.waived]


def waived(judged: Judgement, today: date) -> dict[str, list[Excuse]]:
    """Of each node with a waiver that holds: what is waived."""
    found: dict[str, list[Excuse]] = {}
    kept = _not_waived(judged)
    for key, waiver in judged.site.waivers.items():
        if waiver.holds(today):
            excuse = _excuse(judged.site, key, waiver)
            for node in waiver.set:
                found.setdefault(node, []).append(excuse.without(kept.get(node, {})))
    return found


def _not_waived(judged: Judgement) -> dict[str, dict[str, str]]:
    """The criteria that each node does not meet and no waiver covers, each with its metric."""
    found: dict[str, dict[str, str]] = {}
    for result in judged.verdicts:
        for unit in result.nodes if not result.excused else ():
            if not unit.waived and unit.verdict not in LACKS_NOTHING:
                node = pair_units.node_of(unit.node)
                found.setdefault(node, {})[result.id] = result.criterion.metric
    return found


def _excuse(site: Site, key: str, waiver: Waiver) -> Excuse:
    """A waiver of a criterion covers its metric, too, and failures of its check."""
    wrong, why = frozenset(waiver.wrong_answers), waiver_finding(key, waiver)
    if waiver.waives == EVERYTHING:
        return Excuse(why, everything=True, wrong_answers=wrong, is_of=waiver.is_of)
    criteria = {k: c.metric for k, c in site.criteria.items() if waiver.covers(k, c.metric)}
    metrics = frozenset(criteria.values()) | ({waiver.waives} & site.catalogue.keys())
    checks = frozenset(metric.partition(".")[0] for metric in metrics)
    return Excuse(why, False, frozenset(criteria), metrics, checks, wrong, waiver.is_of)
