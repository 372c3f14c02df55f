"""Published values and texts as printed, and how many results of each metric are missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from siteproof import units
from siteproof.compare.published.judging import other_unit
from siteproof.compare.published.table_cells import (
    Table,
    is_number,
    name,
    number,
    pair,
    shown_all,
    statistic,
    when,
)
from siteproof.record.samples import Sample
from siteproof.sites import Site
from siteproof.units import convert

VALUES = ("metric", "value", "it is a", "date", "campaign", "in the tool's unit")


def values(site: Site, samples: Iterable[Sample], judged: Collection[Sample]) -> Table | None:
    """Every value and text that no criterion covers; ranges and trials in one line."""
    seen = {id(sample) for sample in judged}
    grouped: dict[tuple[str, ...], list[Sample]] = {}
    for sample in samples:
        if id(sample) not in seen:
            key = (name(sample), statistic(sample), when(sample), sample.header.campaign)
            grouped.setdefault(key, []).append(sample)
    rows = [
        (metric, shown_all(found), *others, in_tools_unit(site, found[0]))
        for (metric, *others), found in sorted(grouped.items())
    ]
    note = (
        "No criterion of the site has a bound for them. Values of several statistics are not one "
        "series: a maximum after a mean is no rise. Where a source prints MB/s and the tool itself "
        "MiB/s, the last column is the value if the digits are the tool's."
    )
    return Table("Other published values and texts", VALUES, rows, note) if rows else None


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


def failures(samples: Iterable[Sample]) -> Table | None:
    """How many results of each metric and place are values, and how many failed in which way."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for sample in samples:
        counts.setdefault((sample.metric, pair(sample)), Counter())[sample.status] += 1
    statuses = sorted({status for count in counts.values() for status in count} - {"ok"})
    rows = [
        (metric, place, *(str(count[status]) for status in ("ok", *statuses)))
        for (metric, place), count in sorted(counts.items())
        if count.total() > count["ok"]
    ]
    columns = ("metric", "of", "values", *statuses)
    note = "A failure is not a value of zero. Status 'parse': the text has lost what was printed."
    return Table("Published failures", columns, rows, note) if rows else None
