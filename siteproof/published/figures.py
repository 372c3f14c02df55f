"""What the tables of published results share: a table's shape, and a figure in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

from siteproof import units
from siteproof.record.pair_units import LINK, PEER
from siteproof.record.samples import PUBLISHED, Sample
from siteproof.rounding import Number, round_to
from siteproof.sites import printed
from siteproof.sites.published_csv import PROGRAM

NO_SHARE = "none, as it is of zero"


class Stated(NamedTuple):
    """One table. Each cell is a text; figures carry their unit there or in the column's name."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str


def is_number(sample: Sample) -> bool:
    """Whether it is a figure that can be compared."""
    return sample.status == "ok" and units.kind(sample.unit) != "text"


def is_exact(sample: Sample) -> bool:
    """Whether it is a figure and neither a bound nor an end of a range."""
    return is_number(sample) and printed.STATED not in sample.own_conditions


def figure(sample: Sample) -> str:
    """The figure as printed, with its unit; of a failure why there is none."""
    if sample.status != "ok":
        return sample.why or sample.status
    if units.kind(sample.unit) == "text":
        return str(sample.value)
    sign = printed.sign(sample.own_conditions.get(printed.STATED, ""))
    return f"{sign}{sample.value} {sample.unit}"


def figures(samples: Iterable[Sample]) -> str:
    """Several figures, the two ends of a range as one."""
    told = [figure(sample) for sample in samples]
    if len(told) == 2 and told[0].startswith("from ") and told[1].startswith("to "):
        return f"{told[0].removeprefix('from ').rpartition(' ')[0]} {told[1]}"
    return ", ".join(told)


def when(sample: Sample) -> str:
    """The date as the source says it."""
    return sample.header.provenance.get("date", sample.header.time[:10])


def statistic(sample: Sample) -> str:
    """What the figure is of the values behind it."""
    return sample.own_conditions.get(PUBLISHED, "")


def pair(sample: Sample) -> str:
    """Who sent to whom, or the one node; empty: no single node's."""
    return " > ".join(filter(None, (sample.node, sample.dims.get(PEER, ""))))


def what(sample: Sample) -> str:
    """The metric, with what tells it from others of the table."""
    aside = (PUBLISHED, printed.STATED, PROGRAM, PEER)
    have = {**sample.dims, **sample.own_conditions}
    told = [pair(sample)] if sample.node else []
    told += [f"{key} {text}" for key, text in have.items() if key not in aside]
    return f"{sample.metric} ({', '.join(told)})" if told else sample.metric


def link(sample: Sample) -> str:
    """The link that it was measured over, as a whole or from one node to another."""
    return sample.dims.get(LINK) or sample.own_conditions.get(LINK, "")


def number(value: Fraction | float, digits: int = 4) -> str:
    """A figure that was worked out: so many significant digits."""
    text = f"{float(value):.{digits}g}"
    return f"{float(value):.0f}" if "e" in text else text


def change(before: Number, after: Number) -> str:
    """A change in per cent with its sign; of nothing there is none."""
    if not before:
        return NO_SHARE
    return f"{float(100 * (Fraction(after) / Fraction(before) - 1)):+.1f} %"


def share(part: Number, whole: Number, places: int = 1) -> str:
    """A part in per cent, rounded half up, with so many places; of nothing there is none."""
    if not whole:
        return NO_SHARE
    rounded = round_to(100 * Fraction(part) / Fraction(whole), Fraction(1, 10**places))
    return f"{float(rounded):.{places}f} %"
