"""The bounds that ReFrame compares the figures of pairs with: as contract.py does for nodes.

A pair's figure is the median of its trials, as in the verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from statistics import median
from typing import TYPE_CHECKING

from siteproof.analysis.verdict import MIDDLES, why_not
from siteproof.checks.contract import SHOWN, Reference, bounds, spoken_of
from siteproof.samples import Sample, harmless

if TYPE_CHECKING:
    from siteproof.sites import Site

Pair = tuple[str, str]


def headline(
    site: Site, check: str, metric: str, mode: str, samples: Sequence[Sample], asked: Iterable[Pair]
) -> list[tuple[str, float, str, Reference]]:
    """Name, value, unit and reference of the worst pair, and of the worst against its client.

    asked: (client, server). A criterion on clients does not speak of the way back.
    """
    name, ways = f"{check}.{metric}", set(asked)
    entry = site.catalogue[name]
    rules = [r for r in spoken_of(site, name, mode) if r.links and r.scope not in MIDDLES]
    middles = medians(s for s in samples if s.metric == name and s.status == "ok")
    found = []
    for told, there in ((metric, True), (f"{metric}_back", False)):
        values = [s for s in middles if ((s.node, s.dims.get("peer", "")) in ways) is there]
        speaking = [r for r in rules if there or getattr(r, "subject", "pair") == "pair"]
        if not values:
            continue
        answers = [s for s in values if any(not why_not(r, s) for r in speaking)] or values
        worst = (max if entry.better == "lower" else min)(answers, key=lambda s: s.number)
        role = site.role_of(worst.node)
        bound = bounds(speaking, worst, site.hardware_of(role)) if role else bounds([], worst, None)
        found.append((told, float(worst.number), worst.unit, bound))
    return found


def medians(samples: Iterable[Sample]) -> list[Sample]:
    """One sample a pair, of the same dimensions: its trials' median, exactly."""
    alike: dict[tuple[str, str], list[Sample]] = {}
    for sample in samples:
        alike.setdefault((sample.node, str(sorted(sample.dims.items()))), []).append(sample)
    return [replace(trials[0], value=Decimal(median(s.number for s in trials)))
            for trials in alike.values()]


def tell_failed(failed: Sequence[Sample], turns: int) -> str:
    """One line: how many of the turns gave a figure, and what became of the others."""
    lost = {(s.node, s.dims.get("peer", ""), s.trial) for s in failed if "peer" in s.dims}
    told = "; ".join(f"{_pair(s)}: {s.status}: {s.why}" for s in failed[:SHOWN])
    more = f"; and {len(failed) - SHOWN} more" if len(failed) > SHOWN else ""
    return harmless(f"{len(lost)} measurements failed, in {turns} turns. {told}{more}")


def _pair(sample: Sample) -> str:
    peer = sample.dims.get("peer", "")
    return f"{sample.node}>{peer}" if peer else sample.node
