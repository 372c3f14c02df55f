"""Series: the values of a metric that may be compared, node by node and run by run.

A series is metric, dimensions, environment, role and conditions. Only samples with a value enter:
a wrong answer has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from statistics import median

from siteproof import units
from siteproof.samples import Header, Sample
from siteproof.sites import Metric, Site

# Counts and shares (errors, residuals, losses) have a median of zero, or none that means speed.
SPEEDS = ("rate", "flops", "iops", "time", "frequency")
FOLLOWS = ("memory_share", "array_share_of_cache")  # from the problem's size and the node's memory
NOISE = "_warning"  # what a figure was measured under; no reason to compare it with others only
NEARLY = Decimal("0.01")  # a problem chosen by the node's memory may differ by a block
OF_A_RUN = ("peer", "trial")  # dimensions within a run, of which a node's median counts


@dataclass(frozen=True)
class Series:
    """What values must share to be compared."""

    metric: str
    dims: tuple[tuple[str, str], ...]
    environment: str
    role: str
    conditions: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        """The metric, with its dimensions if it has any."""
        told = ", ".join(f"{k} {v}" for k, v in self.dims)
        return f"{self.metric} [{told}]" if told else self.metric


@dataclass(frozen=True, order=True)
class Run:
    """A node's figure in one job: the median where the job measured it more than once."""

    time: str
    session: str
    job: str
    value: float
    unit: str


Values = dict[Series, dict[str, list[Run]]]


def is_speed(metric: Metric | None) -> bool:
    """Whether nodes may be ranked by it."""
    return metric is not None and metric.better != "neither" and units.kind(metric.unit) in SPEEDS


def collect(site: Site, samples: Iterable[Sample]) -> Values:
    """Each series with the runs of each node, oldest first, in the catalogue's unit."""
    held: dict[Series, dict[str, dict[tuple[str, str, str], list[float]]]] = {}
    for sample, series in _speeds(site, samples):
        unit = site.catalogue[sample.metric].unit
        value = float(units.convert(sample.number, sample.unit, unit))
        job = (sample.header.time, sample.header.session, sample.header.job)
        held.setdefault(series, {}).setdefault(sample.node, {}).setdefault(job, []).append(value)
    return {
        series: {
            node: [
                Run(*job, median(values), site.catalogue[series.metric].unit)
                for job, values in sorted(jobs.items())
            ]
            for node, jobs in nodes.items()
        }
        for series, nodes in held.items()
    }


def conditions(sample: Sample) -> dict[str, str]:
    """The conditions that decide whether values may be compared."""
    common = sample.header.conditions
    kept = {
        key: common.get(key, text) if _nearly(text, common.get(key)) else text
        for key, text in sample.conditions.items()
    }
    return {k: v for k, v in kept.items() if k not in FOLLOWS and not k.endswith(NOISE)}


def _speeds(site: Site, samples: Iterable[Sample]) -> Iterator[tuple[Sample, Series]]:
    speeds = {name for name, metric in site.catalogue.items() if is_speed(metric)}
    known: dict[object, Series] = {}
    headers: dict[int, Header] = {}  # holds each header, so that its id stays its own
    for sample in samples:
        role = site.role_of(sample.node)
        if sample.status != "ok" or role is None or sample.metric not in speeds:
            continue
        headers.setdefault(id(sample.header), sample.header)
        key = (id(sample.header), sample.metric, role, _pairs(sample.dims),
               _pairs(sample.own_conditions))
        if key not in known:
            known[key] = _series(sample, role)
        yield sample, known[key]


def _series(sample: Sample, role: str) -> Series:
    dims = {k: v for k, v in sample.dims.items() if k not in OF_A_RUN}
    return Series(sample.metric, _pairs(dims), sample.header.environment, role,
                  _pairs(conditions(sample)))


def _pairs(texts: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(texts.items()))


def _nearly(one: str, other: str | None) -> bool:
    if other is None or one == other:
        return False
    try:
        first, second = Decimal(one), Decimal(other)
        return abs(first - second) <= NEARLY * abs(second)
    except InvalidOperation:
        return False
