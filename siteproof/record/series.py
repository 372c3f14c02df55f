"""Series: the values of a metric that may be compared, node by node and run by run.

A series is metric, dimensions, environment, role and conditions. Only samples with a value enter:
a wrong answer has none. The figures of a link as a whole are those of a node of the link's name, in
the role `link`; those of the system as a whole are those of a node of the system's name, in the
role `system`, where they are asked for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from siteproof import units
from siteproof.record.pair_units import LINK, of_link
from siteproof.record.samples import Header, JobOrder, Sample

if TYPE_CHECKING:
    from siteproof.sites import Metric, Site

# Counts and shares (errors, residuals, losses) have a median of zero, or none that means speed.
SPEEDS = ("rate", "flops", "iops", "time", "frequency")
FOLLOWS = ("memory_share", "array_share_of_cache")  # from the problem's size and the node's memory
NOISE = "_warning"  # what a figure was measured under; no reason to compare it with others only
NEARLY = Decimal("0.01")  # a problem chosen by the node's memory may differ by a block
SYSTEM = "system"  # the role of figures that belong to no single node
CONTRACTUAL = ("maintenance", "acceptance")  # these two measure the same; a quick run does not
SWEEP = "sweep"  # the condition that names it
OF_THE_SWEEP = ("sweep_hash",)  # a point is the same, whichever others there were
# Conditions that the machine brings along: their change is what a comparison is to show, while a
# change of what was asked (the problem's size, the program) makes figures incomparable.
OF_THE_MACHINE = ("blas", "hpcc", "mpi", "mtu", "version", "last_level_cache", "parameters")
ENDINGS = ("_kernel", "_library", "_version")
VARIABLE = "env."  # begins the condition of a variable that steers a library: env.UCX_TLS
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


class JobValue(NamedTuple):
    """A node's figure in one job: the median where the job measured it more than once.

    place, time, session, job: as they order jobs. each: all values that the job measured.
    printed: their own unit; empty if there are several.
    """

    place: int
    time: str
    session: str
    job: str
    value: float
    unit: str
    each: tuple[float, ...] = ()
    printed: str = ""


Values = dict[Series, dict[str, list[JobValue]]]


def is_speed(metric: Metric) -> bool:
    """Whether nodes may be ranked by it."""
    return metric.better != "neither" and units.kind(metric.unit) in SPEEDS


def is_number(metric: Metric) -> bool:
    """Whether two of its values can be compared."""
    return units.kind(metric.unit) != "text"


def collect(
    site: Site,
    samples: Iterable[Sample],
    wanted: Callable[[Metric], bool] = is_speed,
    *,
    of_system: bool = False,
) -> Values:
    """Each series with the runs of each node, oldest first, in the catalogue's unit."""
    held: dict[Series, dict[str, dict[JobOrder, list[tuple[float, str]]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    unit_of = {name: metric.unit for name, metric in site.catalogue.items()}
    for sample, series, job in _wanted(site, samples, wanted, of_system):
        number: Decimal | Fraction = sample.number
        if sample.unit != (unit := unit_of[sample.metric]):  # exact, and dearer than all the rest
            number = units.convert(number, sample.unit, unit)
        held[series][sample.node][job].append((float(number), sample.unit))
    return {
        series: {
            node: [
                _run(job, values, unit_of[series.metric]) for job, values in sorted(jobs.items())
            ]
            for node, jobs in nodes.items()
        }
        for series, nodes in held.items()
    }


def _run(job: JobOrder, values: list[tuple[float, str]], unit: str) -> JobValue:
    if len(values) == 1:  # as nearly always, and there may be a million
        ((value, own),) = values
        return JobValue(*job, value, unit, (value,), own)
    each, printed = tuple(value for value, _ in values), {own for _, own in values}
    return JobValue(*job, median(each), unit, each, printed.pop() if len(printed) == 1 else "")


def align(values: Values, like: Iterable[Series]) -> Values:
    """The same values under the series of others where they differ by so little as a block.

    A kernel update leaves a node a little more or less memory, and with it another problem.
    """
    by_figure: dict[tuple[object, ...], list[Series]] = {}
    for key in like:
        by_figure.setdefault(_figure(key), []).append(key)
    found: Values = {}
    for key, nodes in values.items():
        others = by_figure.get(_figure(key), [])
        name = key if key in others else next((o for o in others if alike(key, o)), key)
        for node, runs in nodes.items():
            held = found.setdefault(name, {}).get(node, [])
            found[name][node] = sorted([*held, *runs])
    return found


def _figure(key: Series) -> tuple[object, ...]:
    return key.metric, key.dims, key.environment, key.role, tuple(k for k, _ in key.conditions)


def alike(one: Series, other: Series) -> bool:
    """Whether two series differ by no more than a block of the problem's size."""
    if _figure(one) != _figure(other):
        return False
    pairs = zip(one.conditions, other.conditions, strict=True)
    return all(a == b or _nearly(a[1], b[1]) for a, b in pairs)


def comparable(key: Series) -> Series:
    """The series without the conditions that do not hinder a comparison."""
    asked = tuple(
        (name, CONTRACTUAL[0] if name == "mode" and text in CONTRACTUAL else text)
        for name, text in key.conditions
        if not of_the_machine(name) and name not in OF_THE_SWEEP
    )
    return replace(key, conditions=asked)


def of_the_machine(name: str) -> bool:
    """Whether a condition is brought along by the machine, and not asked for."""
    return name in OF_THE_MACHINE or name.endswith(ENDINGS) or name.startswith(VARIABLE)


def conditions(sample: Sample) -> dict[str, str]:
    """The conditions that decide whether values may be compared."""
    common = sample.header.conditions
    kept = {
        key: common.get(key, text) if _nearly(text, common.get(key)) else text
        for key, text in sample.conditions.items()
    }
    return deciding(kept)


def deciding(held: Mapping[str, str]) -> dict[str, str]:
    """Those of some conditions that decide."""
    return {k: v for k, v in held.items() if k not in FOLLOWS and not k.endswith(NOISE)}


def _wanted(
    site: Site, samples: Iterable[Sample], wanted: Callable[[Metric], bool], of_system: bool
) -> Iterator[tuple[Sample, Series, JobOrder]]:
    metrics = {name for name, metric in site.catalogue.items() if wanted(metric)}
    known: dict[object, tuple[Series, JobOrder]] = {}
    headers: dict[int, Header] = {}  # holds each header, so that its id stays its own
    for sample in samples:
        role, head = site.role_of(sample.node), sample.header
        if of_link(sample):  # it stands for the link itself
            sample, role = replace(sample, node=sample.dims[LINK]), LINK
        elif of_system and not sample.node:
            sample, role = replace(sample, node=site.system.system), SYSTEM
        if sample.status != "ok" or role is None or sample.metric not in metrics:
            continue
        headers.setdefault(id(head), head)
        key = (id(head), sample.metric, role, _pairs(sample.dims), _pairs(sample.own_conditions))
        place = known.get(key)
        if place is None:
            place = known[key] = _series(sample, role), head.job_order
        yield sample, *place


def _series(sample: Sample, role: str) -> Series:
    dims = {k: v for k, v in sample.dims.items() if k not in OF_A_RUN}
    return Series(
        sample.metric, _pairs(dims), sample.header.environment, role, _pairs(conditions(sample))
    )


def _pairs(texts: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(texts.items())) if texts else ()


def _nearly(one: str, other: str | None) -> bool:
    if other is None or one == other:
        return False
    try:
        first, second = Decimal(one), Decimal(other)
        return abs(first - second) <= NEARLY * abs(second)
    except ArithmeticError:  # no number, or one beyond all measure
        return False
