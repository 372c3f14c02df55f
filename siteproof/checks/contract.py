"""What ReFrame compares of a headline metric, and with which bound: from criteria and baselines.

acceptance: the contract. maintenance: the tighter of contract and baseline. quick: only criteria
that a quick run may answer. Where no criterion can be answered by what was measured there is no
bound, and `siteproof verdict` reports it.

A value is the median of its trials, as in the verdict. ReFrame takes one value of a name: the worst
of those that break a promise, or the worst of all if none does. So it fails if the verdict does,
also where promises differ, for example for one stream and for several. Its unit is that of the
criterion, whatever the tool prints, and the catalogue's where no criterion decides.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal, localcontext
from fractions import Fraction
from statistics import median
from typing import TYPE_CHECKING

from siteproof import units
from siteproof.answers.attempts import MIDDLES, of_system, why_not
from siteproof.checks import reference
from siteproof.checks.reference import Reference
from siteproof.errors import UserError
from siteproof.record import pair_units
from siteproof.record.pair_units import Point
from siteproof.record.samples import Sample
from siteproof.sites import Criterion
from siteproof.sites.pairs import Pair
from siteproof.sites.system import Hardware

if TYPE_CHECKING:
    from siteproof.sites import Baseline, Site

Compared = tuple[str, float, str, Reference]  # name, value, unit, reference
DIGITS = 1000  # of a median; the sum of two values that a perflog may hold has fewer


@dataclass(frozen=True)
class Rule:
    """A criterion or baseline, and the nodes that a waiver excuses from it today."""

    promise: Criterion | Baseline
    excused: set[str]

    @property
    def subject(self) -> str:
        """What it applies to; a baseline of links to a pair."""
        return getattr(self.promise, "subject", "pair")

    def accepts(self, sample: Sample) -> bool:
        """Whether the sample answers it, and no node that took part is excused."""
        nodes = {sample.node, sample.dims.get(pair_units.PEER, "")}
        return not nodes & self.excused and not why_not(self.promise, sample)


def check_catalogue(site: Site, check: str, metrics: Iterable[str]) -> None:
    """Refuse a check that yields other metrics than the catalogue lists. Raises UserError."""
    listed = {
        name.partition(".")[2] for name, entry in site.catalogue.items() if entry.check == check
    }
    if not listed:
        raise UserError("checks/*/catalogue.yaml", f"no metric of {check}")
    if unknown := sorted(set(metrics) - listed):
        raise UserError(
            "checks/*/catalogue.yaml", f"{check} yields {', '.join(unknown)}", sorted(listed)
        )


# ---- nodes


def of_nodes(
    site: Site, role: str, check: str, metric: str, mode: str, samples: Sequence[Sample]
) -> list[Compared]:
    """The worst node of a metric, and the median and mean of all nodes.

    Median and mean are compared where these samples are of all nodes that the criterion covers.
    Nodes that are excused from every criterion of the metric count in neither.
    """
    name = f"{check}.{metric}"
    values = _measured(samples, name)
    if not values:
        return []
    rules = _rules(site, name, mode, lambda one: not one.links and role in site.roles_of(one))
    facts = site.hardware_of(role)
    each = [rule for rule in rules if rule.promise.scope not in MIDDLES]
    worst = _worst(site, name, metric, each, values, lambda _: facts)
    excused = _excused_from_all(rules)
    values = [s for s in values if s.node not in excused]
    if not values:
        return [worst]
    return [worst, *_middles(site, name, metric, rules, values, facts, excused)]


def _middles(
    site: Site,
    name: str,
    metric: str,
    rules: Sequence[Rule],
    values: Sequence[Sample],
    facts: Hardware,
    excused: set[str],
) -> list[Compared]:
    """Median and mean of all nodes that are not excused, where a criterion has a bound for them."""
    found = []
    for scope in ("median", "mean"):
        each = [
            _middle_at(site, name, f"{metric}_{scope}", rules, own, facts, excused)
            for own in pair_units.by_point(values).values()
        ]
        if known := [one for one in each if one]:
            found.append(min(known, key=lambda one: one[0])[1])
    return found


def _middle_at(
    site: Site,
    name: str,
    shown: str,
    rules: Sequence[Rule],
    values: Sequence[Sample],
    facts: Hardware,
    excused: set[str],
) -> tuple[tuple[bool, bool, Fraction], Compared] | None:
    """Median or mean of the nodes at one point, after its place: those that break a bound first."""
    scope, entry = shown.rpartition("_")[2], site.catalogue[name]
    deciding = [
        rule.promise
        for rule in rules
        if rule.promise.scope == scope and _are_all(site, rule.promise, excused, values)
    ]
    of_several = scope == "median" and len(values) > 1 and entry.better == "higher"
    if not deciding and not of_several:
        return None
    unit = _unit(deciding, facts, entry.unit)
    middle = _middle(scope, values, unit)
    kept = all(promise.met(middle, unit, facts) for promise in deciding)
    worth = _middle(scope, values, entry.unit) * (-1 if entry.better == "lower" else 1)
    number, bound = reference.compare(middle, [promise.limits(unit, facts) for promise in deciding])
    return (kept, not deciding, worth), (shown, number, unit, bound)


def _middle(scope: str, values: Sequence[Sample], unit: str) -> Fraction:
    """The exact median or mean of values, in this unit."""
    exact = [units.convert(s.number, s.unit, unit) for s in values]
    return Fraction(median(exact) if scope == "median" else sum(exact) / len(exact))


def _are_all(
    site: Site, promise: Criterion | Baseline, excused: set[str], values: Sequence[Sample]
) -> bool:
    """Whether these are values of all nodes that a criterion on their median or mean covers."""
    if not set(site.promised(promise)) - excused <= {s.node for s in values}:
        return False
    return any(not why_not(promise, sample) for sample in values)


# ---- pairs and links


def of_pairs(
    site: Site,
    check: str,
    metric: str,
    mode: str,
    samples: Sequence[Sample],
    ways: Collection[Pair],
) -> list[Compared]:
    """The worst pair of a metric, the worst against its client, and the link as a whole.

    ways: (client, server). A criterion on clients does not apply to the way back.
    """
    name = f"{check}.{metric}"
    rules = _rules(site, name, mode, lambda one: bool(one.links) and one.scope not in MIDDLES)
    groups: dict[tuple[str, tuple[str, ...]], list[Sample]] = {}
    for sample in _measured(samples, name):
        groups.setdefault(_group(metric, sample, ways), []).append(sample)
    found = []
    for (shown, subjects), values in sorted(groups.items()):
        fitting = [rule for rule in rules if rule.subject in subjects]
        found.append(_worst(site, name, shown, fitting, values, lambda s: _sender(site, s)))
    return found


def _group(metric: str, sample: Sample, ways: Collection[Pair]) -> tuple[str, tuple[str, ...]]:
    """The name that ReFrame gets, and the subjects of the criteria that apply."""
    if pair_units.of_link(sample):
        return metric, ("system",)
    if (sample.node, sample.dims.get(pair_units.PEER, "")) in ways:
        return metric, ("pair", "client")
    return f"{metric}_back", ("pair",)


def _sender(site: Site, sample: Sample) -> Hardware:
    role = site.role_of(sample.node)
    return site.hardware_of(role) if role else Hardware()


# ---- points of sweeps


def of_points(
    site: Site, check: str, metric: str, mode: str, samples: Sequence[Sample]
) -> list[Compared]:
    """The worst point of a metric, of those that a criterion on the system covers if any."""
    name = f"{check}.{metric}"
    values = _measured(samples, name)
    if not values:
        return []
    rules = _rules(site, name, mode, _is_of_system)
    return [_worst(site, name, metric, rules, values, lambda s: _sender(site, s))]


def _is_of_system(promise: Criterion | Baseline) -> bool:
    if not isinstance(promise, Criterion):
        return False
    return promise.subject == "system" and of_system(promise)


# ---- what all of them share


def _measured(samples: Iterable[Sample], name: str) -> list[Sample]:
    return [s for s in samples if s.metric == name and s.status == "ok"]


def _rules(
    site: Site, name: str, mode: str, wanted: Callable[[Criterion | Baseline], bool]
) -> list[Rule]:
    """The wanted criteria on a metric, and in a maintenance its baselines.

    A node that is excused from every criterion has no baseline.
    """
    rules = [
        Rule(criterion, _excused(site, key, name))
        for key, criterion in site.criteria.items()
        if criterion.metric == name and criterion.kind != "report_only" and wanted(criterion)
    ]
    if mode != "maintenance":
        return rules
    everywhere = _excused_from_all(rules) if rules else _excused(site, "", name)
    baselines = [b for b in site.baselines.values() if b.metric == name and wanted(b)]
    return rules + [Rule(baseline, everywhere) for baseline in baselines]


def _excused(site: Site, criterion: str, metric: str) -> set[str]:
    """The nodes that a waiver excuses today from a criterion on a metric."""
    today = datetime.now(UTC).date()
    nodes = set[str]()
    for waiver in site.waivers.values():
        if waiver.holds(today) and waiver.covers(criterion, metric):
            nodes.update(waiver.set)
    return nodes


def _excused_from_all(rules: Sequence[Rule]) -> set[str]:
    return set.intersection(*(rule.excused for rule in rules)) if rules else set()


def _worst(
    site: Site,
    name: str,
    shown: str,
    rules: Sequence[Rule],
    values: Sequence[Sample],
    facts: Callable[[Sample], Hardware],
) -> Compared:
    """The worst value that breaks a rule, or answers one, or of all; and the bound that it has.

    shown: the name that ReFrame gets. facts: the hardware to which a bound may refer.
    """
    answers = []
    broken = []
    for rule in rules:
        for sample in medians(s for s in values if rule.accepts(s)):
            answers.append((sample, rule.promise))
            if not rule.promise.met(Fraction(sample.number), sample.unit, facts(sample)):
                broken.append((sample, rule.promise))
    decisive = broken or answers
    candidates = [sample for sample, _ in decisive] or medians(values)
    entry = site.catalogue[name]
    pick = max if entry.better == "lower" else min
    worst = pick(candidates, key=lambda s: units.convert(s.number, s.unit, entry.unit))
    deciding = [promise for sample, promise in decisive if sample == worst]
    unit = _unit(deciding, facts(worst), entry.unit)
    limits = [promise.limits(unit, facts(worst)) for promise in deciding]
    number, bound = reference.compare(units.convert(worst.number, worst.unit, unit), limits)
    return shown, number, unit, bound


def _unit(deciding: Iterable[Criterion | Baseline], facts: Hardware, otherwise: str) -> str:
    """The unit of the first bound that decides."""
    bounds = (promise.bound for promise in deciding if promise.bound is not None)
    return next((bound.scale(facts)[1] for bound in bounds), otherwise)


def medians(samples: Iterable[Sample]) -> list[Sample]:
    """One sample a node or pair and its point: the exact median of the trials."""
    alike: dict[tuple[str, Point, str], list[Sample]] = {}
    for sample in samples:
        key = (sample.node, pair_units.point(sample), sample.unit)
        alike.setdefault(key, []).append(sample)
    found = []
    for trials in alike.values():
        with localcontext(prec=DIGITS):
            value = Decimal(median(s.number for s in trials))
        found.append(replace(trials[0], value=value))
    return found
