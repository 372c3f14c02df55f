"""What others have published of a system, as tables: one title, columns, rows and a note each.

From the samples that `siteproof import` made; nothing here was measured by us.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from pathlib import Path

from siteproof import units
from siteproof.answers import published_values as published
from siteproof.answers.published_values import Outcome
from siteproof.compare.published import comparisons, ratios
from siteproof.compare.published.table_cells import (
    Table,
    is_number,
    name,
    number,
    pair,
    shown,
    shown_all,
    statistic,
    when,
)
from siteproof.record import samples
from siteproof.record.grouped import grouped
from siteproof.record.samples import PUBLISHED, Sample
from siteproof.sites import Criterion, Site
from siteproof.sites.promise import SIGNS
from siteproof.units import convert, round_to

__all__ = ["Table", "judged", "read", "tables"]


def read(perflogs: Path, system: str) -> list[Sample]:
    """The published samples of a system, the oldest file first. Raises UserError."""
    return [
        sample
        for path in samples.files(perflogs, system)
        if path.parent.name == PUBLISHED
        for sample in samples.read(path)
    ]


def judged(site: Site, found: Iterable[Sample]) -> list[Judged]:
    """Every published or worked out value with every criterion that covers it."""
    published = [s for s in found if s.header.mode == PUBLISHED]
    return judge(site, [*published, *comparisons.worked_out(site, published)])


def tables(site: Site, found: Iterable[Sample]) -> list[Table]:
    """All tables that these samples fill; measured samples are ignored."""
    published = [s for s in found if s.header.mode == PUBLISHED]
    worked_out = comparisons.worked_out(site, published)
    against = judge(site, [*published, *worked_out])
    shown = [
        against_criteria(against) if against else None,
        comparisons.table(site, published),
        ratios.table(site, [*published, *worked_out]),
        failed(published),
        other_values(site, published, [one.sample for one in against]),
    ]
    return [table for table in shown if table is not None]


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
    of_metric = grouped((sample.metric, sample) for sample in samples if is_number(sample))
    found = []
    for key, criterion in site.criteria.items():
        roles = {role: site.hardware_of(role) for role in site.roles_of(criterion)}
        facts = published.facts_of(roles)
        for sample in of_metric.get(criterion.metric, ()):
            outcome, unit = published.outcome(criterion, sample, facts), other_unit(site, sample)
            if outcome is not None:
                other = published.outcome(criterion, sample, facts, unit) if unit else None
                found.append(Judged(sample, key, criterion, outcome, other, unit))
    return sorted(found, key=_order)


def _order(one: Judged) -> tuple[object, ...]:
    """What misses first, and what the system does before what it is."""
    described = one.sample.metric.startswith(DESCRIBED)
    return list(Answer).index(one.answer), described, one.criterion_id, one.sample.header.time


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


def against_criteria(judged: Sequence[Judged]) -> Table:
    """Each comparison with a criterion."""
    rows = [
        (
            j.answer.value,
            j.criterion_id,
            f"{statistic(j.sample)} {shown(j.sample)}".removeprefix(f"{SINGLE} "),
            f"{SIGNS[j.criterion.kind]} {j.criterion.bound}"
            + (f", {j.criterion.rounding_rule}" if j.criterion.step else ""),
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


OTHER = "Other published values and texts"
OTHERS = ("metric", "value", "it is a", "date", "campaign", "in the tool's unit")


def other_values(site: Site, samples: Iterable[Sample], judged: Collection[Sample]) -> Table | None:
    """Every value and text that no criterion covers; ranges and trials in one line."""
    seen = {id(sample) for sample in judged}
    alike = grouped(
        ((name(sample), statistic(sample), when(sample), sample.header.campaign), sample)
        for sample in samples
        if id(sample) not in seen
    )
    rows = [
        (metric, shown_all(found), *others, in_tools_unit(site, found[0]))
        for (metric, *others), found in sorted(alike.items())
    ]
    note = (
        "No criterion of the site has a bound for them. Values of several statistics are not one "
        "series: a maximum after a mean is no rise. Where a source prints MB/s and the tool itself "
        "MiB/s, the last column is the value if the digits are the tool's."
    )
    return Table(OTHER, OTHERS, rows, note) if rows else None


def in_tools_unit(site: Site, sample: Sample) -> str:
    """The value if its digits are in the unit that the tool prints; empty where that is the same.

    The Jetstream acceptance report prints MB/s in its tables and MiB/s in its figures.
    """
    unit = other_unit(site, sample)
    if not unit or not is_number(sample) or units.kind(sample.unit) != "rate":
        return ""
    exact = convert(sample.number, unit, sample.unit)
    more = 100 * (convert(1, unit, sample.unit) - 1)
    return f"{number(exact, 5)} {sample.unit}, +{float(more):.2f} %"


def failed(samples: Iterable[Sample]) -> Table | None:
    """How many results of each metric and place are values, and how many failed in which way."""
    found = grouped(((sample.metric, pair(sample)), sample.status) for sample in samples)
    statuses = sorted({status for own in found.values() for status in own} - {"ok"})
    rows = [
        (metric, place, *(str(own.count(status)) for status in ("ok", *statuses)))
        for (metric, place), own in sorted(found.items())
        if set(own) != {"ok"}
    ]
    columns = ("metric", "of", "values", *statuses)
    note = "A failure is not a value of zero. Status 'parse': the text has lost what was printed."
    return Table("Published failures", columns, rows, note) if rows else None
