"""What the gate takes from the verdicts: the state of each node, and what is waived of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from siteproof.gate.decision import Excuse, NodeReport
from siteproof.nodes import states
from siteproof.sites import Site, Waiver
from siteproof.sites.waiver import EVERYTHING
from siteproof.verdict.judgement import Judgement

MISMATCHES = "HostParameters.mismatches"


def reports(judged: Judgement) -> Mapping[str, NodeReport]:
    """The state of each node of the inventory."""
    return states.report(judged, states.lately(judged)).nodes


def waived(judged: Judgement, today: date) -> dict[str, list[Excuse]]:
    """Of each node with a waiver that holds: what is waived, and the waiver in words.

    Things are what a reason may name: criterion, metric, check, and the host parameters that the
    node's mismatches are about.
    """
    found: dict[str, list[Excuse]] = {}
    parameters = _parameters(judged)
    for waiver in (w for w in judged.site.waivers.values() if w.holds(today)):
        things = _things(judged.site, waiver)
        for node in waiver.set:
            mine = things | parameters.get(node, set()) if MISMATCHES in things else things
            found.setdefault(node, []).append(
                Excuse(frozenset(mine), frozenset(waiver.wrong_answers), str(waiver))
            )
    return found


def _things(site: Site, waiver: Waiver) -> set[str]:
    if waiver.waives == EVERYTHING:
        return {EVERYTHING}
    named = {k: c.metric for k, c in site.criteria.items() if waiver.speaks_of(k, c.metric)}
    metrics = {*named.values()} | ({waiver.waives} & site.catalogue.keys())
    return {*named, *metrics, *(metric.partition(".")[0] for metric in metrics)}


def _parameters(judged: Judgement) -> dict[str, set[str]]:
    """The host parameters in which each node was found wrong."""
    found: dict[str, set[str]] = {}
    for sample in judged.samples:
        words = found.setdefault(sample.node, {"host parameters are not as expected"})
        if "parameter" in sample.dims:
            words.add(sample.dims["parameter"])
    return found
