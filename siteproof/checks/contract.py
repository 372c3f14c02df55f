"""What ReFrame compares of a headline metric, and with which bound: the one judge's answers.

acceptance: the contract. maintenance: the tighter of contract and baseline. quick: only criteria
that a quick run may answer. Where no criterion can be answered by what was measured there is no
bound, and `siteproof verdict` reports it.

ReFrame takes one value of a name: the worst of those that break a promise, or the worst of all if
none does. So it fails if the verdict on this run does, also where promises differ, for example for
one stream and for several. Its unit is that of the criterion, whatever the tool prints, and the
catalogue's where no criterion decides.

A reference of ReFrame is (value, lower, upper), of floats, where lower and upper are shares of the
value that ReFrame adds to it. The value itself is an exact bound if the share is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction

from siteproof import units
from siteproof.answers import expected
from siteproof.answers.attempts import MIDDLES, attempts_at, of_unit
from siteproof.answers.criterion import judge, middle_trial
from siteproof.errors import UserError
from siteproof.record import pair_units
from siteproof.record.grouped import grouped
from siteproof.record.samples import Sample
from siteproof.record.severity import Verdict
from siteproof.sites import Baseline, Criterion, Hardware, Site
from siteproof.sites.promise import Subject
from siteproof.units import Limit

Reference = tuple[float, float | None, float | None]
UNBOUNDED: Reference = (0.0, None, None)
Compared = tuple[str, float, str, Reference]  # name, value, unit, reference


class Typical(Baseline, Criterion):
    """A baseline as a criterion: met where a value reaches it, within its tolerance."""


@dataclass(frozen=True)
class Answer:
    """A value in the sample's unit, and the criterion that it meets or not; None: it answers none.

    facts: the hardware to which the criterion's bound may refer.
    """

    value: Fraction
    sample: Sample
    criterion: Criterion | None = None
    facts: Hardware | None = None
    met: bool = True

    def value_in(self, unit: str) -> Fraction:
        """The exact value in a unit."""
        return Fraction(units.convert(self.value, self.sample.unit, unit))


def check_catalogue(site: Site, check: str, metrics: Iterable[str]) -> None:
    """Refuse a check that yields other metrics than the catalogue lists. Raises UserError."""
    listed = {
        name.partition(".")[2] for name, entry in site.catalogue.items() if entry.check == check
    }
    if not listed:
        raise UserError("checks/*/catalogue.yaml", f"no metric of {check}")
    if unknown := sorted(set(metrics) - listed):
        what = f"{check} yields {', '.join(unknown)}"
        raise UserError("checks/*/catalogue.yaml", what, sorted(listed))


def bounds(site: Site, check: str, role: str) -> dict[str, tuple[float | None, float | None]]:
    """Of each metric the lowest and highest value that miss no criterion, in the base unit."""
    sides: dict[str, tuple[list[float], list[float]]] = {}
    for one in site.criteria.values():
        of, _, name = one.metric.partition(".")
        if of != check or role not in site.roles_of(one):
            continue
        unit = site.catalogue[one.metric].unit
        limits = one.limits(unit, site.hardware_of(role))
        for side, limit in zip(sides.setdefault(name, ([], [])), limits, strict=True):
            side += [float(limit.value * units.UNITS[unit][1])] if limit else []
    return {
        name: (max(lows, default=None), min(highs, default=None))
        for name, (lows, highs) in sides.items()
    }


def compared(
    site: Site,
    check: str,
    metric: str,
    mode: str,
    samples: Sequence[Sample],
    shows: Callable[[Sample], bool] = lambda _: True,
) -> list[Compared]:
    """The worst value of a metric, and of its median and mean where a criterion is on them.

    shows: which samples are the headline; others are shown where they break a promise.
    """
    name = f"{check}.{metric}"
    measured = [s for s in samples if s.metric == name and s.status == "ok"]
    found: dict[str, list[Answer]] = {metric: []}
    for answer in _answers(site, name, mode, measured):
        scope = answer.criterion.scope if answer.criterion else ""
        shown = f"{metric}_{scope}" if scope in MIDDLES else metric
        found.setdefault(shown, []).append(answer)
    found[metric] = found[metric] or _values(filter(shows, measured))
    return [
        _worst(site, name, shown, [a for a in answers if shows(a.sample) or not a.met] or answers)
        for shown, answers in found.items()
        if answers
    ]


def of_each_node(
    site: Site,
    check: str,
    metric: str,
    samples: Sequence[Sample],
    shows: Callable[[Sample], bool] = lambda _: True,
) -> list[Compared]:
    """The value of each node as `metric@node`, without a bound; none where it has more than one."""
    name = f"{check}.{metric}"
    measured = (s for s in samples if s.metric == name and s.status == "ok" and shows(s))
    found = _values(measured)
    nodes = {answer.sample.node for answer in found} - {""}
    if len(nodes) < len(found):
        return []
    unit = site.catalogue[name].unit
    return [
        (f"{metric}@{answer.sample.node}", float(answer.value_in(unit)), unit, UNBOUNDED)
        for answer in found
    ]


def _answers(site: Site, name: str, mode: str, measured: Sequence[Sample]) -> Iterator[Answer]:
    """What the samples of a run answer: criteria on a metric, and in a maintenance its baselines.

    Nobody is excused from a baseline but who is from all criteria.
    """
    criteria = {
        key: one for key, one in site.criteria.items() if one.metric == name and not one.report_only
    }
    for key, criterion in criteria.items():
        yield from _judged(site, [key], criterion, measured)
    if mode == "maintenance":
        for baseline in (one for one in site.baselines.values() if one.metric == name):
            typical = _as_criterion(site, baseline, measured)
            yield from _judged(site, list(criteria) or [""], typical, measured)


def _as_criterion(site: Site, baseline: Baseline, measured: Iterable[Sample]) -> Criterion:
    own = {key: getattr(baseline, key) for key in Baseline.model_fields}
    subject: Subject = "pair" if baseline.links else "node"
    if any(map(pair_units.of_link, measured)):
        subject = "system"
    elif site.catalogue[baseline.metric].of_gpus:
        subject = "gpu"
    return Typical.model_construct(**own, subject=subject)


def _judged(
    site: Site, keys: Sequence[str], criterion: Criterion, measured: Sequence[Sample]
) -> Iterator[Answer]:
    """The answers to a criterion. keys: only who is excused from all of these is."""
    today = datetime.now(UTC).date()
    each = [expected.covered(site, key, criterion, measured, today) for key in keys]
    covered, _, first = each[0]
    from_all = set.intersection(*(set(filter(own.get, own)) for _, _, own in each))
    excused = {unit: first[unit] for unit in from_all}
    if criterion.scope not in MIDDLES:  # other jobs measure the rest
        there = attempts_at(measured, criterion)
        covered = {unit: facts for unit, facts in covered.items() if of_unit(unit, there)}
    result = judge(keys[0], criterion, measured, covered, waived=excused)
    deciding = (unit for unit in result.nodes if not unit.waived)
    for one in (one for unit in deciding for one in unit.points or (unit,)):
        if one.value is not None and one.sample:
            facts = covered[(one.members or (one,))[0].node]
            yield Answer(one.value, one.sample, criterion, facts, one.verdict is Verdict.PASS)


def _values(measured: Iterable[Sample]) -> list[Answer]:
    """The median of the trials of each unit at each point."""
    found = grouped(((sample.node, pair_units.point(sample)), sample) for sample in measured)
    return [Answer(*middle_trial(trials)) for trials in found.values()]


def _worst(site: Site, name: str, shown: str, answers: Sequence[Answer]) -> Compared:
    """The worst answer that misses its bound, or of all; with the bounds on it."""
    entry = site.catalogue[name]
    deciding = [one for one in answers if not one.met] or answers
    pick = max if entry.better == "lower" else min
    worst = pick(deciding, key=lambda one: one.value_in(entry.unit))
    bounds = [
        (one.criterion, one.facts)
        for one in deciding
        if one.criterion and (one.value, one.sample) == (worst.value, worst.sample)
    ]
    unit = next((own.bound_value(facts).unit for own, facts in bounds), entry.unit)
    limits = [own.limits(unit, facts) for own, facts in bounds]
    number, bound = compare(worst.value_in(unit), limits, met=worst.met)
    return shown, number, unit, bound


def compare(
    exact: Fraction, limits: Sequence[tuple[Limit | None, Limit | None]], *, met: bool
) -> tuple[float, Reference]:
    """A value as a float, and the tightest of its limits, each a lower and an upper one.

    Of both sides the one that the value misses, or is nearer to: ReFrame multiplies shares, which
    rounds, so a reference with two sides is not exact. met: whether the value keeps them; a median
    may have more digits than a float, and just below 5 it must not become 5.
    """
    number = float(exact)
    lows = [low.as_float(lowest=True) for low, _ in limits if low]
    highs = [high.as_float(lowest=False) for _, high in limits if high]
    low, high = max(lows, default=-math.inf), min(highs, default=math.inf)
    if not (lows or highs):
        return number, UNBOUNDED
    if number - low < high - number:
        number = max(number, low) if met else min(number, math.nextafter(low, -math.inf))
        return number, (low, 0.0, None)
    number = min(number, high) if met else max(number, math.nextafter(high, math.inf))
    return number, (high, None, 0.0)
