"""Published values against the criteria: which miss them, which keep them, what is not stated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from siteproof import units
from siteproof.answers import published_values as published
from siteproof.answers.published_values import Outcome
from siteproof.compare.published.table_cells import (
    Table,
    is_number,
    number,
    pair,
    shown,
    statistic,
    when,
)
from siteproof.record.samples import Sample
from siteproof.sites import Criterion, Hardware, Site
from siteproof.sites.promise import SIGNS
from siteproof.units import convert, round_to


class Answer(StrEnum):
    """Whether a value keeps a criterion; the worst first."""

    MISSES = "misses"
    OPEN = "undecided"
    KEEPS = "keeps"


SINGLE = "one value"
DESCRIBED = "Inventory."
BINARY = {"MB": "MiB", "GB": "GiB", "TB": "TiB", "PB": "PiB", "kB": "KiB"}


@dataclass(frozen=True)
class Judged:
    """A published value and a criterion of its metric."""

    sample: Sample
    criterion_id: str
    criterion: Criterion
    outcome: Outcome
    other: Outcome | None  # the same digits in the unit that the tool itself prints
    other_unit: str = ""

    @property
    def answer(self) -> Answer:
        """Whether the value keeps the criterion."""
        if self.outcome.keeps is None:
            return Answer.OPEN
        return Answer.KEEPS if self.outcome.keeps or self.as_printed else Answer.MISSES

    @property
    def as_printed(self) -> str:
        """The unit in which a total is the promised one, rounded to the printed digits; or nothing.

        40 TB of memory are 40960 GiB: memory is counted in powers of 1024, whatever is printed.
        """
        bound, digits = self.criterion.bound, self.sample.number
        if self.criterion.kind != "equals" or not bound or units.kind(self.sample.unit) != "size":
            return ""
        step = Fraction(10) ** int(digits.as_tuple().exponent)
        for unit in (self.sample.unit, self.other_unit):
            if unit and round_to(bound.quantity.to(unit), step) == Fraction(digits):
                return unit
        return ""


def other_unit(site: Site, sample: Sample) -> str:
    """What the tool prints where the source prints its decimal name: MiB/s for MB/s; or nothing."""
    metric = site.catalogue.get(sample.metric)
    size, slash, rest = sample.unit.partition("/")
    binary = BINARY.get(size, "") + slash + rest
    own = metric.unit.partition("/")[0] if metric else ""
    return binary if size in BINARY and own in BINARY.values() else ""


def judge(site: Site, samples: Iterable[Sample]) -> list[Judged]:
    """Each published value with each criterion that covers it; what misses comes first."""
    by_metric: dict[str, list[tuple[str, Criterion, list[Hardware]]]] = {}
    for key, criterion in site.criteria.items():
        facts = {role: site.hardware_of(role) for role in site.roles_of(criterion)}
        by_metric.setdefault(criterion.metric, []).append(
            (key, criterion, published.facts_of(facts))
        )
    found = [
        judged
        for sample in samples
        if is_number(sample)
        for judged in _each(site, sample, by_metric.get(sample.metric, ()))
    ]
    return sorted(found, key=_order)


def _order(one: Judged) -> tuple[object, ...]:
    """What misses first, and what the system does before what it is."""
    described = one.sample.metric.startswith(DESCRIBED)
    return list(Answer).index(one.answer), described, one.criterion_id, one.sample.header.time


def _each(
    site: Site, sample: Sample, criteria: Iterable[tuple[str, Criterion, list[Hardware]]]
) -> Iterator[Judged]:
    unit = other_unit(site, sample)
    for key, criterion, facts in criteria:
        found = published.outcome(criterion, sample, facts)
        if found is not None:
            other = published.outcome(criterion, sample, facts, unit) if unit else None
            yield Judged(sample, key, criterion, found, other, unit)


def remarks(judged: Judged) -> list[str]:
    """What a reader must know of the comparison."""
    found = []
    sample, outcome, criterion = judged.sample, judged.outcome, judged.criterion
    if outcome.by_rounding:
        found.append(f"only by rounding to the {criterion.rounding_rule}")
    if not outcome.keeps and judged.as_printed:
        found.append(f"{sample.value} {judged.as_printed} is what the bound is, rounded as printed")
    elif judged.other and judged.other.keeps != outcome.keeps:
        exact = convert(sample.number, judged.other_unit, sample.unit)
        verb = "keep" if judged.other.keeps else "miss"
        found.append(
            f"read as {judged.other_unit} it would be {number(exact)} {sample.unit}, and {verb} it"
        )
    if outcome.keeps and not published.own(criterion, sample):
        found.append("per-node values not published")
    if outcome.not_stated:
        found.append(f"not stated: {', '.join(outcome.not_stated)}")
    return found


def table(judged: Sequence[Judged]) -> Table:
    """The comparison as a table."""
    rows = [
        (
            j.answer.value,
            j.criterion_id,
            _value(j.sample),
            _bound(j.criterion),
            " ".join(filter(None, (when(j.sample), j.sample.header.campaign))),
            pair(j.sample) or j.sample.metric,
            "; ".join(remarks(j)),
        )
        for j in judged
    ]
    columns = ("answer", "criterion", "value", "bound", "date and campaign", "of", "remarks")
    note = (
        "A mean or maximum that misses shows that some node misses; one that keeps decides nothing "
        "where the values of each node, pair or instance are not published."
    )
    return Table("Published values against the criteria", columns, rows, note)


def _value(sample: Sample) -> str:
    kind = statistic(sample)
    return shown(sample) if kind == SINGLE else f"{kind} {shown(sample)}"


def _bound(criterion: Criterion) -> str:
    rounding = f", {criterion.rounding_rule}" if criterion.step else ""
    return f"{SIGNS[criterion.kind]} {criterion.bound}{rounding}"
