"""What the tables of published results share: a table's shape, and a value as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

from siteproof import units
from siteproof.record.pair_units import LINK, PEER
from siteproof.record.samples import PUBLISHED, Sample
from siteproof.sites import published_csv
from siteproof.sites.published_csv import PROGRAM
from siteproof.units import Number, round_to

NO_SHARE = "none, as it is of zero"
SEVERAL = 2  # from this ratio on "3 times" reads better than "300 %"


class Table(NamedTuple):
    """One table. Each cell is a text; values carry their unit there or in the column's name."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str


def is_number(sample: Sample) -> bool:
    """Whether it is a number that can be compared."""
    return sample.status == "ok" and units.kind(sample.unit) != "text"


def is_exact(sample: Sample) -> bool:
    """Whether it is a number and neither a bound nor an end of a range."""
    return is_number(sample) and published_csv.STATED not in sample.own_conditions


def shown(sample: Sample) -> str:
    """The value as printed, with its unit; of a failure why there is none."""
    if sample.status != "ok":
        return sample.why or sample.status
    if units.kind(sample.unit) == "text":
        return str(sample.value)
    sign = published_csv.sign(sample.own_conditions.get(published_csv.STATED, ""))
    return units.with_unit(f"{sign}{sample.value}", sample.unit)


def shown_all(samples: Sequence[Sample]) -> str:
    """Several values, the two ends of a range as one."""
    ends = [sample.own_conditions.get(published_csv.STATED, "") for sample in samples]
    if ends == [published_csv.LOW, published_csv.HIGH]:
        return f"{samples[0].value} {shown(samples[1])}"
    return ", ".join(shown(sample) for sample in samples)


def when(sample: Sample) -> str:
    """The date as the source gives it."""
    return sample.header.provenance.get("date", sample.header.time[:10])


def statistic(sample: Sample) -> str:
    """What the value is of the values that it summarises: mean, maximum, one value."""
    return sample.own_conditions.get(PUBLISHED, "")


def pair(sample: Sample) -> str:
    """Sender and receiver, or the one node; empty: no single node's."""
    return " > ".join(filter(None, (sample.node, sample.dims.get(PEER, ""))))


def name(sample: Sample, without: Iterable[str] = ()) -> str:
    """The metric, with the place and the conditions that distinguish it in a table."""
    omitted = (PUBLISHED, published_csv.STATED, PROGRAM, PEER, *without)
    conditions = {**sample.dims, **sample.own_conditions}
    parts = [pair(sample)] if sample.node and PEER not in without else []
    parts += [f"{key} {text}" for key, text in conditions.items() if key not in omitted]
    return f"{sample.metric} ({', '.join(parts)})" if parts else sample.metric


def link(sample: Sample) -> str:
    """The link that it was measured over, as a whole or from one node to another."""
    return sample.dims.get(LINK) or sample.own_conditions.get(LINK, "")


def number(value: Fraction | float, digits: int = 4) -> str:
    """A value that was worked out, with so many significant digits."""
    text = f"{float(value):.{digits}g}"
    return f"{float(value):.0f}" if "e" in text else text


def share(part: Number, whole: Number, places: int = 1) -> str:
    """A ratio in per cent, rounded half up, or as `3 times`; of nothing there is none."""
    if not whole:
        return NO_SHARE
    ratio = Fraction(part) / Fraction(whole)
    if ratio >= SEVERAL:
        return f"{number(ratio)} times"
    rounded = round_to(100 * ratio, Fraction(1, 10**places))
    return f"{float(rounded):.{places}f} %"
