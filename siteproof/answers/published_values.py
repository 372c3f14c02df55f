"""What a published value shows of a criterion: it can prove a miss, never that it is met.

A mean, a median or a maximum below `at_least` proves that some value is below it; one above it
proves nothing of each. So a value that misses decides, and one that keeps is only reported.
Rounding is the criterion's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import NamedTuple

from siteproof.record import finding, pair_units
from siteproof.record.finding import Finding, Kind
from siteproof.record.samples import PUBLISHED, Sample
from siteproof.sites import Criterion, Hardware
from siteproof.sites.promise import compared
from siteproof.sites.site_tables import LESS, MORE, STATED
from siteproof.units import convert, kind

ROLE = "role"  # whose nodes a value covers


class Outcome(NamedTuple):
    """A published value and a criterion. keeps: None where a printed bound decides nothing.

    not_stated: conditions of the criterion that the source does not state.
    """

    keeps: bool | None
    by_rounding: bool
    not_stated: tuple[str, ...]


def outcome(
    criterion: Criterion, sample: Sample, facts: Iterable[Hardware], unit: str = ""
) -> Outcome | None:
    """Whether a published value meets a criterion; None if the criterion does not cover it.

    facts: the hardware that the criterion covers. unit: another reading of the value's unit, for a
    table that prints MB/s and may mean MiB/s.
    """
    not_stated = _not_stated(criterion, sample)
    unit = unit or sample.unit
    if not_stated is None or criterion.bound is None or sample.status != "ok":
        return None
    if kind(unit) == "text":
        return None
    value, kinds = Fraction(sample.number), list(facts)
    if criterion.bound.fact:
        kinds = [f for f in kinds if criterion.bound.fact in f.quantities]
    if not kinds:
        return None
    good = all(criterion.met(value, unit, f) for f in kinds)
    raw = all(meets_raw(criterion, value, unit, f) for f in kinds)
    return Outcome(_known(criterion, sample, good), good and not raw, not_stated)


def meets_raw(criterion: Criterion, value: Fraction, unit: str, facts: Hardware) -> bool:
    """Whether the value meets the bound as it is, before any rounding."""
    bound = criterion.bound_value(facts)
    return compared(criterion.kind, convert(value, unit, bound.unit), Fraction(bound.value))


def _known(criterion: Criterion, sample: Sample, good: bool) -> bool | None:
    """`> 166` meets what 166 meets; whether it misses what 166 misses is not known."""
    helps = {MORE: "at_least", LESS: "at_most"}.get(sample.own_conditions.get(STATED, ""))
    if helps is None or (criterion.kind == helps) == good:
        return good
    return None


def _not_stated(criterion: Criterion, sample: Sample) -> tuple[str, ...] | None:
    """The conditions that the source does not state; None where it contradicts one."""
    have = {**sample.dims, **sample.own_conditions}
    link = pair_units.link_of(sample)
    role = have.get(ROLE, "")
    if criterion.links and link and link not in criterion.links:
        return None
    if criterion.nodes and role and role not in criterion.nodes:
        return None
    rules = {key: rule for key, rule in criterion.conditions.items() if key != "mode"}
    if any(key in have and not rule.met_by(have[key]) for key, rule in rules.items()):
        return None
    return tuple(key for key in rules if key not in have)


def own(criterion: Criterion, sample: Sample) -> bool:
    """Whether the value is that of one unit, and not of all together."""
    return bool(sample.node) or criterion.subject in ("system", "service")


def judged(criterion: Criterion, sample: Sample, facts: Iterable[Hardware]) -> tuple[Finding, bool]:
    """What a published value shows of a criterion, and whether that proves a miss."""
    found = outcome(criterion, sample, facts)
    keeps = None if found is None else found.keeps
    # The median of all may meet what a mean misses.
    one_is_enough = criterion.scope not in ("median", "mean")
    why = finding.of(
        Kind.PUBLISHED,
        {
            "source": sample.own_conditions[PUBLISHED],
            "own": int(own(criterion, sample)),
            "keeps": {True: "yes", False: "no", None: "unknown"}[keeps],
            "by_rounding": int(found is not None and found.by_rounding),
        },
        metric=sample.metric,
        value=str(sample.value),
        unit=sample.unit,
    )
    return why, keeps is False and one_is_enough


def newest_of_all(samples: Iterable[Sample], criterion: Criterion) -> Sample | None:
    """The newest published value of no single unit that the criterion covers."""
    found = [
        s
        for s in samples
        if s.metric == criterion.metric
        and not s.node
        and PUBLISHED in s.own_conditions
        and _not_stated(criterion, s) is not None
    ]
    return max(found, key=lambda s: (s.header.order, s.trial), default=None)


def facts_of(expected: Mapping[str, Hardware]) -> list[Hardware]:
    """Each kind of hardware once."""
    return list({id(facts): facts for facts in expected.values()}.values())
