"""What the gate takes from the verdicts: the state of each node, and what is waived of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from siteproof.gate.decision import Excuse, NodeReport
from siteproof.judge.criterion import waiver_finding
from siteproof.nodes import states
from siteproof.sites import Site, Waiver
from siteproof.sites.waiver import EVERYTHING
from siteproof.verdict.judgement import Judgement


def reports(judged: Judgement) -> Mapping[str, NodeReport]:
    """The state of each node of the inventory."""
    return states.report(judged, states.lately(judged)).nodes


def waived(judged: Judgement, today: date) -> dict[str, list[Excuse]]:
    """Of each node with a waiver that holds: what is waived."""
    found: dict[str, list[Excuse]] = {}
    for key, waiver in judged.site.waivers.items():
        if waiver.holds(today):
            excuse = _excuse(judged.site, key, waiver)
            for node in waiver.set:
                found.setdefault(node, []).append(excuse)
    return found


def _excuse(site: Site, key: str, waiver: Waiver) -> Excuse:
    """A waiver of a criterion covers its metric, too, and failures of its check."""
    wrong, why = frozenset(waiver.wrong_answers), waiver_finding(key, waiver)
    if waiver.waives == EVERYTHING:
        return Excuse(why, everything=True, wrong_answers=wrong)
    criteria = {k: c.metric for k, c in site.criteria.items() if waiver.covers(k, c.metric)}
    metrics = frozenset(criteria.values()) | ({waiver.waives} & site.catalogue.keys())
    checks = frozenset(metric.partition(".")[0] for metric in metrics)
    return Excuse(why, False, frozenset(criteria), metrics, checks, wrong)
