"""Bounds, baselines and medians as marks of a figure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction

from siteproof import units
from siteproof.answers.attempts import MIDDLES, why_not
from siteproof.history import tables
from siteproof.record.samples import Sample
from siteproof.record.series import Series
from siteproof.report.figure.marked import Mark
from siteproof.sites import Baseline, Criterion, Hardware, Site
from siteproof.sites.promise import SIGNS
from siteproof.wording.amounts import stated

_SIGN = {">=": "≥", "<=": "≤", "=": "="}


def slug(text: str) -> str:
    """A text as part of an anchor: Stream.triad is stream-triad."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "figure"


def number_of(sample: Sample) -> int:
    """The number of a sample's series in the history."""
    part = tables.context(sample.header, sample.own_conditions).part
    return part ^ tables.of_metric(sample.metric) ^ tables.of_dims(sample.dims)


def criteria_of(site: Site, key: Series, like: Sample) -> dict[str, Criterion]:
    """The criteria with a number that values such as this sample answer, by id."""
    return {
        name: criterion
        for name, criterion in site.criteria.items()
        if criterion.metric == key.metric
        and criterion.bound is not None
        and key.role in site.roles_of(criterion)
        and not why_not(criterion, like)
    }


def unit_of(criteria: Iterable[Criterion], site: Site, key: Series, own: str) -> str:
    """The unit of the contract, else that in which all was printed, else the catalogue's."""
    for criterion in criteria:
        return criterion.bound_value(site.hardware_of(key.role)).unit
    return own or site.catalogue[key.metric].unit


def marks(site: Site, key: Series, criteria: dict[str, Criterion], unit: str) -> list[Mark]:
    """The bounds of these criteria, and the baselines of the series, in a unit.

    A bound is the worst value that still passes, so it includes the rounding. A bound of the median
    or mean of all nodes judges no single node.
    """
    facts, metric = site.hardware_of(key.role), site.catalogue[key.metric]
    found: list[Mark] = []
    for name, criterion in criteria.items():
        sign = _SIGN[SIGNS[criterion.kind]]
        value = stated(float(criterion.bound_value(facts).to(unit)), unit)
        rounds = f" ({criterion.rounding_rule})" if criterion.step else ""
        found += _sides(
            "bound", criterion, (metric.unit, unit), facts, f"{name} {sign} {value}{rounds}"
        )
    return found + baselines(site, key.metric, key.role, unit)


def baselines(
    site: Site, metric: str, role: str, unit: str, links: Sequence[str] = ()
) -> list[Mark]:
    """The baselines of a metric on a role, or over links, in a unit."""
    facts, own = site.hardware_of(role), site.catalogue[metric].unit
    found: list[Mark] = []
    for name, baseline in site.baselines.items():
        covers = baseline.metric == metric and role in site.roles_of(baseline)
        if covers and list(baseline.links) == list(links):
            kind, limit = baseline.limit(own, facts)
            value = stated(converted(limit.value, own, unit), unit)
            text = f"baseline {name} {_SIGN[SIGNS[kind]]} {value}"
            found += _sides("baseline", baseline, (own, unit), facts, text)
    return found


def _sides(
    kind: str, promise: Criterion | Baseline, own_and: tuple[str, str], facts: Hardware, text: str
) -> Iterator[Mark]:
    """A mark for each side on which a promise has a limit."""
    own, unit = own_and
    whom = f", {promise.scope}" if promise.scope in MIDDLES else ""
    for side, limit in zip(("at_least", "at_most"), promise.limits(own, facts), strict=True):
        if limit is not None:
            yield Mark(
                kind,
                converted(limit.value, own, unit),
                text + whom,
                "" if whom else side,
                limit.inclusive,
            )


def own_name(base: str, seen: dict[str, int]) -> str:
    """A name that no other figure has: the base, from the second on with a number.

    seen: how often each base was used; it is kept up to date.
    """
    seen[base] = seen.get(base, 0) + 1
    return base + (f"-{seen[base]}" if seen[base] > 1 else "")


def converted(value: Decimal | Fraction | int, unit: str, to: str) -> float:
    """A value in another unit, as a float."""
    return float(units.convert(value, unit, to))
