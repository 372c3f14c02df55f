"""From which place of a sweep over a cloud on servers fail, and the first cause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from siteproof.curves.measured import ordered
from siteproof.record.samples import Sample

METRIC = "Cloud.failures"
CAUSE = "cause"  # dimension of it
SERVERS = "servers"  # how many were requested: a dimension, or a condition of all points
Dims = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class FirstFailure:
    """One line of a sweep. line: its value; empty where there is one line only.

    at: the first place where servers failed, None: nowhere; failed of requested there, in its worst
    repetition, and why most of them. without: later places at which none failed. last: the last
    place of all.
    """

    line: str
    at: str | None
    failed: int
    requested: int
    cause: str
    without: Sequence[str]
    last: str


def folded(samples: Iterable[Sample]) -> list[Sample]:
    """The samples, with the failures of a point as one number over all causes."""
    found: list[Sample] = []
    by_point: dict[tuple[str, int, Dims], list[Sample]] = {}
    for sample in samples:
        if sample.metric == METRIC and sample.status == "ok":
            dims = {name: value for name, value in sample.dims.items() if name != CAUSE}
            key = (sample.header.session, sample.trial, tuple(sorted(dims.items())))
            by_point.setdefault(key, []).append(sample)
        else:
            found.append(sample)
    for (_, _, dims_of_point), each in by_point.items():
        total = sum((sample.number for sample in each), Decimal(0))
        found.append(replace(each[0], value=total, dims=dict(dims_of_point)))
    return found


def first(samples: Iterable[Sample], against: str, lines: str = "") -> list[FirstFailure]:
    """By line, from which value of the axis `against` on servers failed."""
    places: dict[str, dict[str, list[Sample]]] = {}
    for sample in samples:
        if sample.metric == METRIC and sample.status == "ok" and against in sample.dims:
            of_line = places.setdefault(sample.dims.get(lines, ""), {})
            of_line.setdefault(sample.dims[against], []).append(sample)
    return [_of_line(line, places[line]) for line in ordered(places)]


def _of_line(line: str, places: Mapping[str, Sequence[Sample]]) -> FirstFailure:
    order = ordered(places)
    failed = {place: _worst(places[place]) for place in order}
    at = next((place for place in order if failed[place]), None)
    if at is None:
        return FirstFailure(line, None, 0, 0, "", (), order[-1])
    causes = failed[at]
    later = order[order.index(at) :]
    without = [place for place in later if not failed[place]]
    requested = {**places[at][0].conditions, **places[at][0].dims}.get(SERVERS, "")
    return FirstFailure(
        line,
        at,
        causes.total(),
        int(requested) if requested.isdigit() else 0,
        causes.most_common(1)[0][0],
        without,
        order[-1],
    )


def _worst(of_place: Iterable[Sample]) -> Counter[str]:
    """The failures by cause of the repetition and point with the most of them."""
    each: dict[tuple[int, Dims], Counter[str]] = {}
    for sample in of_place:
        dims = {name: value for name, value in sample.dims.items() if name != CAUSE}
        causes = each.setdefault((sample.trial, tuple(sorted(dims.items()))), Counter())
        if sample.number:
            causes[sample.dims.get(CAUSE, "")] += int(sample.number)
    return max(each.values(), key=Counter.total)
