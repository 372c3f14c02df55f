"""The bounds that ReFrame compares the figures of pairs with: as contract.py does for nodes.

A pair's figure is the median of its trials, as in the verdict. ReFrame takes one figure of a name:
the worst of those that break a promise, or the worst of all if none does. So it fails if the
verdict does, also where promises differ, for example for one stream and for several.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal, localcontext
from fractions import Fraction
from statistics import median
from typing import TYPE_CHECKING

from siteproof import units
from siteproof.checks.contract import SHOWN, Reference, compared, spoken_of
from siteproof.errors import harmless
from siteproof.judge.criterion import MIDDLES, why_not
from siteproof.record import pair_units
from siteproof.record.samples import Sample
from siteproof.sites.system import Hardware

if TYPE_CHECKING:
    from siteproof.sites import Baseline, Criterion, Site

Pair = tuple[str, str]
EXACT = 1000  # digits; the sum of two figures that a perflog may hold has fewer


@dataclass(frozen=True)
class Rule:
    """A promise, and the nodes whose pairs may break it today."""

    promise: Criterion | Baseline
    excused: set[str]

    @property
    def subject(self) -> str:
        """Of what it speaks; a baseline of pairs."""
        return getattr(self.promise, "subject", "pair")

    def speaks_of(self, sample: Sample) -> bool:
        """Whether the sample answers it, and no end of its pair is excused."""
        ends = {sample.node, sample.dims.get(pair_units.PEER, "")}
        return not ends & self.excused and not why_not(self.promise, sample)


def headline(
    site: Site, check: str, metric: str, mode: str, samples: Sequence[Sample], asked: Iterable[Pair]
) -> list[tuple[str, float, str, Reference]]:
    """Name, value, unit and reference of the worst pair, of the worst against its client, and of
    the link as a whole, as far as there are figures.

    asked: (client, server). A criterion on clients does not speak of the way back.
    """
    name, ways = f"{check}.{metric}", set(asked)
    rules, found = _rules(site, name, mode), []
    groups: dict[tuple[str, tuple[str, ...]], list[Sample]] = {}
    for sample in samples:
        if sample.metric == name and sample.status == "ok":
            groups.setdefault(_group(metric, sample, ways), []).append(sample)
    for (told, subjects), values in sorted(groups.items()):
        speaking = [rule for rule in rules if rule.subject in subjects]
        worst, fitting, facts = worst_of(site, name, speaking, values)
        number, reference = compared(fitting, worst, facts)
        found.append((told, number, worst.unit, reference))
    return found


def _group(metric: str, sample: Sample, ways: set[Pair]) -> tuple[str, tuple[str, ...]]:
    """The name that ReFrame knows it by, and the subjects of criteria that speak of it."""
    if pair_units.of_link(sample):
        return metric, ("system",)
    there = (sample.node, sample.dims.get(pair_units.PEER, "")) in ways
    return (metric, ("pair", "client")) if there else (f"{metric}_back", ("pair",))


def _rules(site: Site, name: str, mode: str) -> list[Rule]:
    """The promises of pairs and links. A node that every criterion excuses has no baseline."""
    promises = [r for r in spoken_of(site, name, mode) if r.links and r.scope not in MIDDLES]
    today = datetime.now(UTC).date()
    held = [waiver for waiver in site.waivers.values() if waiver.holds(today)]
    excused = {
        key: {node for waiver in held if waiver.speaks_of(key, name) for node in waiver.set}
        for key, criterion in site.criteria.items()
        if criterion in promises
    }
    everywhere = set.intersection(*excused.values()) if excused else set()
    of = {id(site.criteria[key]): nodes for key, nodes in excused.items()}
    return [Rule(promise, of.get(id(promise), everywhere)) for promise in promises]


def worst_of(
    site: Site, name: str, rules: Sequence[Rule], values: Sequence[Sample]
) -> tuple[Sample, list[Criterion | Baseline], Hardware]:
    """The figure to compare, the promises that it must keep, and its sender's hardware."""
    entry = site.catalogue[name]
    pick = max if entry.better == "lower" else min
    answers = [
        (sample, rule.promise)
        for rule in rules
        for sample in medians(s for s in values if rule.speaks_of(s))
    ]
    broken = [
        (sample, promise)
        for sample, promise in answers
        if not promise.met(Fraction(sample.number), sample.unit, _facts(site, sample))
    ]
    figures = [sample for sample, _ in broken or answers] or medians(values)
    worst = pick(figures, key=lambda s: units.convert(s.number, s.unit, entry.unit))
    fitting = [promise for sample, promise in broken or answers if sample == worst]
    return worst, fitting, _facts(site, worst)


def _facts(site: Site, sample: Sample) -> Hardware:
    role = site.role_of(sample.node)
    return site.hardware_of(role) if role else Hardware()


def medians(samples: Iterable[Sample]) -> list[Sample]:
    """One sample a pair, of the same dimensions: its trials' median, exactly."""
    alike: dict[tuple[str, str, str], list[Sample]] = {}
    for sample in samples:
        key = (sample.node, pair_units.dimensions(sample), sample.unit)
        alike.setdefault(key, []).append(sample)
    return [
        replace(trials[0], value=_middle([s.number for s in trials])) for trials in alike.values()
    ]


def _middle(values: Sequence[Decimal]) -> Decimal:
    with localcontext(prec=EXACT):
        return Decimal(median(values))


def tell_failed(failed: Sequence[Sample], turns: int) -> str:
    """One line: how many of the turns gave a figure, and what became of the others."""
    lost = {(s.node, s.dims.get("peer", ""), s.trial) for s in failed if "peer" in s.dims}
    told = "; ".join(f"{_pair(s)}: {s.status}: {s.why}" for s in failed[:SHOWN])
    more = f"; and {len(failed) - SHOWN} more" if len(failed) > SHOWN else ""
    return harmless(f"{len(lost)} measurements failed, in {turns} turns. {told}{more}")


def _pair(sample: Sample) -> str:
    peer = sample.dims.get("peer", "")
    return f"{sample.node}>{peer}" if peer else sample.node or sample.dims.get("link", "")
