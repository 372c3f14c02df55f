"""Published daily transfers: the matrix, and its failures by category; a failure is no zero."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from decimal import Decimal

from siteproof.published.figures import Stated, figure, is_number, when
from siteproof.record.pair_units import PEER
from siteproof.record.samples import Sample
from siteproof.units import convert

CHECK = "Transfer."
ENDS = ("highest", "lowest")
COLUMNS = (*ENDS, "average")
SLOW, FAST = Decimal(25), Decimal(50)  # MB/s, the legend's; 25 and 50 themselves are in between
FAILURES = ("login", "timeout", "checksum", "generic")
LOST = "parse"  # what was printed is lost in the text

Cells = dict[tuple[str, str], dict[str, dict[str, Sample]]]


def cells(samples: Iterable[Sample]) -> Cells:
    """Each pair's days, the newest first, and the cells of each day."""
    found: Cells = {}
    for sample in samples:
        kind = sample.metric.removeprefix(CHECK)
        if sample.metric.startswith(CHECK) and PEER in sample.dims and kind in COLUMNS:
            days = found.setdefault((sample.node, sample.dims[PEER]), {})
            days.setdefault(when(sample), {})[kind] = sample
    return {pair: dict(sorted(days.items(), reverse=True)) for pair, days in sorted(found.items())}


def grade(sample: Sample | None) -> str:
    """The legend's class of a figure; empty where there is none."""
    if sample is None or not is_number(sample):
        return ""
    rate = convert(sample.number, sample.unit, "MB/s")
    return "< 25" if rate < SLOW else "> 50" if rate > FAST else "25 to 50"


def matrix(found: Cells) -> Stated | None:
    """One line a pair and day."""
    rows = [
        (a, b, day, *(_cell(held.get(kind)) for kind in COLUMNS), grade(held.get("average")))
        for (a, b), days in found.items()
        for day, held in days.items()
    ]
    columns = ("from", "to", "day", *COLUMNS, "grade of the average, MB/s")
    return (
        Stated(
            "Daily transfers, day by day",
            columns,
            rows,
            "The average is of the transfers that succeeded.",
        )
        if rows
        else None
    )


def _cell(sample: Sample | None) -> str:
    if sample is None:
        return "not printed"
    if sample.status == LOST:
        return "lost"
    return figure(sample) if sample.status == "ok" else sample.status


def failures(found: Cells) -> Stated | None:
    """How many cells of each pair hold a figure, a failure of each category, or nothing."""
    rows = []
    total: Counter[str] = Counter()
    for (a, b), days in found.items():
        ends: Counter[str] = Counter(
            held[kind].status for held in days.values() for kind in ENDS if kind in held
        )
        means: Counter[str] = Counter(
            held["average"].status for held in days.values() if "average" in held
        )
        ends["no mean"] = sum(means[status] for status in FAILURES)
        ends["cells"] = sum(ends[status] for status in ("ok", *FAILURES, LOST))
        ends["lost means"] = means[LOST]
        rows.append((a, b, *_counts(ends)))
        total += ends
    if not rows:
        return None
    rows.append(("all", "", *_counts(total)))
    columns = (
        "from",
        "to",
        "cells of highest and lowest",
        "figures",
        *FAILURES,
        "lost",
        "averages of no success",
        "averages lost",
    )
    return Stated(
        "Daily transfers: failures by category",
        columns,
        rows,
        "A cell that the text has lost is neither a figure nor a failure.",
    )


def _counts(counts: Counter[str]) -> tuple[str, ...]:
    keys = ("cells", "ok", *FAILURES, LOST, "no mean", "lost means")
    return tuple(str(counts[key]) for key in keys)
