"""What a published figure says of a criterion: enough to miss it, never enough to keep it.

A mean, a median or a maximum below `at_least` proves that some value is below it; one above it
proves nothing of each. So a figure that misses decides, and one that keeps is only told. Rounding
is the criterion's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from siteproof.record import finding, pair_units
from siteproof.record.finding import Finding, Kind
from siteproof.record.samples import PUBLISHED
from siteproof.units import convert, kind

if TYPE_CHECKING:
    from siteproof.record.samples import Sample
    from siteproof.sites import Criterion, Hardware

STATED, MORE, LESS = "stated", "more than", "less than"  # a bound is printed, and no value
ROLE = "role"  # of whose nodes a figure speaks


class Said(NamedTuple):
    """What a figure says. keeps: None where a bound is printed that decides nothing.

    silent: conditions of the criterion that the source does not state.
    """

    keeps: bool | None
    by_rounding: bool
    silent: tuple[str, ...]


def says(
    criterion: Criterion, sample: Sample, facts: Iterable[Hardware], unit: str = ""
) -> Said | None:
    """What a published figure says of a criterion; None if it speaks of something else.

    facts: the hardware of those of whom the criterion speaks. unit: another reading of the
    figure's unit, for a table that prints MB/s and may mean MiB/s.
    """
    silent = _silent(criterion, sample)
    unit = unit or sample.unit
    if silent is None or criterion.bound is None or sample.status != "ok":
        return None
    if kind(unit) == "text":
        return None
    value, kinds = Fraction(sample.number), list(facts)
    if criterion.bound.fact:
        kinds = [f for f in kinds if criterion.bound.fact in f.facts]
    if not kinds:
        return None
    good = all(criterion.met(value, unit, f) for f in kinds)
    raw = all(_meets_raw(criterion, value, unit, f) for f in kinds)
    return Said(_open(criterion, sample, good), good and not raw, silent)


def _meets_raw(criterion: Criterion, value: Fraction, unit: str, facts: Hardware) -> bool:
    bound = criterion.bound_value(facts)
    exact, limit = convert(value, unit, bound.unit), Fraction(bound.value)
    return {"at_least": exact >= limit, "at_most": exact <= limit}.get(
        criterion.kind, exact == limit
    )


def _open(criterion: Criterion, sample: Sample, good: bool) -> bool | None:
    """`> 166` keeps what 166 keeps; whether it misses what 166 misses is not known."""
    told = sample.own_conditions.get(STATED, "")
    helps = {MORE: "at_least", LESS: "at_most"}.get(told)
    if helps is None or (criterion.kind == helps) == good:
        return good
    return None


def _silent(criterion: Criterion, sample: Sample) -> tuple[str, ...] | None:
    """The conditions of which the source says nothing; None where it contradicts one."""
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
    """Whether the figure is that of one unit, and not of all together."""
    return bool(sample.node) or criterion.subject in ("system", "service")


def judged(criterion: Criterion, sample: Sample, facts: Iterable[Hardware]) -> tuple[Finding, bool]:
    """What a published figure says of a criterion, and whether that proves a miss."""
    said = says(criterion, sample, facts)
    keeps = None if said is None else said.keeps
    found = finding.of(
        Kind.PUBLISHED,
        {
            "source": sample.own_conditions[PUBLISHED],
            "own": int(own(criterion, sample)),
            "keeps": {True: "yes", False: "no", None: "unknown"}[keeps],
            "by_rounding": int(said is not None and said.by_rounding),
        },
        metric=sample.metric,
        value=str(sample.value),
        unit=sample.unit,
    )
    return found, keeps is False and _every(criterion)


def _every(criterion: Criterion) -> bool:
    """Whether one value that misses it is enough; the median of all may keep what a mean misses."""
    return criterion.scope not in ("median", "mean")


def newest(samples: Iterable[Sample], criterion: Criterion) -> list[Sample]:
    """The published figures that are of no single unit and may speak of it, the newest first."""
    found = [
        s
        for s in samples
        if s.metric == criterion.metric
        and not s.node
        and PUBLISHED in s.own_conditions
        and _silent(criterion, s) is not None
    ]
    return sorted(found, key=lambda s: (s.header.order, s.trial), reverse=True)


def facts_of(expected: Mapping[str, Hardware]) -> list[Hardware]:
    """Each kind of hardware once."""
    return list({id(facts): facts for facts in expected.values()}.values())
