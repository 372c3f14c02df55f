"""Values that cannot be right: above what the hardware can do, or far better than all others.

Such a value is an error of its measurement: a clock that stood still, a wrong unit, a cache in the
place of a disk. perflogs keep it as it was printed. It is found whenever it is read, as a site may
correct what it states.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from math import inf
from statistics import median_low

from siteproof import files, units
from siteproof.record import series
from siteproof.record.pair_units import OF_GPU, PEER, Point, grouped, link_of, of_pairs, point
from siteproof.record.samples import IMPLAUSIBLE, PUBLISHED, Sample
from siteproof.record.sessions import Sessions
from siteproof.sites import Hardware, Metric, Site
from siteproof.sites.plausible import A_CORE, LIMITS
from siteproof.units import Quantity

TOLERANCE = Fraction("1.05")  # data sheets are rounded, and the clocks of two ends differ
CLOCKS = Fraction(2)  # under vector load on all cores no clock is twice the guaranteed one
# Less than this are 100 Gb/s against a fallback to 1 Gb/s, and a cache against its disk.
FACTOR = 100
OTHERS = 3  # so many others at least show what is typical
BURSTS = ("RdmaWrite.bandwidth_peak",)  # a card takes for a moment more than the link carries
Limit = tuple[Fraction, Quantity, str]  # how many times which figure, and what it is of
Run = tuple[str, int, Point]  # of a job: node, trial, point
Place = tuple[str, Point]  # link and point
Speeds = Sequence[tuple[Sample, float]]


def sessions_of(site: Site) -> Sessions:
    """All jobs of a site; what cannot be right in them is an error."""
    return Sessions(files.perflogs(), site.system.system, partial(checked, site))


def checked(site: Site, found: list[Sample]) -> list[Sample]:
    """The samples of one job. A run with a value that cannot be right has no value at all."""
    wrong: dict[Run, str] = {}
    for alike in _alike(site, found):
        metric = site.catalogue[alike[0].metric]
        each = list(zip(alike, (_speed(metric, sample) for sample in alike), strict=True))
        for sample, why in (*_above(site, metric, each), *_beyond(metric, each)):
            value = f"{sample.metric.partition('.')[2]} {sample.value} {sample.unit}"
            wrong.setdefault(_run(sample), f"{value} cannot be right ({why})")
    if not wrong:
        return found
    return [
        replace(sample, status=IMPLAUSIBLE, value=None, unit="", why=wrong[_run(sample)])
        if sample.status == "ok" and _run(sample) in wrong
        else sample
        for sample in found
    ]


def _run(sample: Sample) -> Run:
    return sample.node, sample.trial, point(sample)


def _alike(site: Site, found: Iterable[Sample]) -> Iterable[list[Sample]]:
    """The speeds of nodes and pairs that may be compared: of one metric, role, link and point.

    What the nodes of one job have as conditions of their own explains no such factor.
    """
    measured = [s for s in found if s.status == "ok" and s.header.mode != PUBLISHED]
    there = {(sample.metric, sample.unit) for sample in measured}
    speeds = {one for one in there if _is_speed(site.catalogue.get(one[0]), one[1])}
    plain: dict[int, Place] = {}  # by the header's id: all that a job measured without dimensions
    groups = grouped(
        ((s.metric, site.role_of(s.node), _place(s, plain)), s)
        for s in measured
        if (s.metric, s.unit) in speeds
    )
    return [alike for (_, role, _), alike in groups.items() if role is not None]


def _place(sample: Sample, plain: dict[int, Place]) -> Place:
    """The link and the point of a sample. plain: those that are known of samples without any."""
    if sample.dims:
        link = link_of(sample) if of_pairs(sample) else ""
        return link, point(sample, PEER, *OF_GPU)
    job = id(sample.header)
    if job not in plain:
        plain[job] = "", point(sample)
    return plain[job]


def _is_speed(metric: Metric | None, unit: str) -> bool:
    """Whether values in this unit are speeds; a plain test may have a unit of its own."""
    if metric is None or not series.is_speed(metric):
        return False
    return units.UNITS.get(unit, ("",))[0] == units.kind(metric.unit)


def _above(site: Site, metric: Metric, alike: Speeds) -> Iterator[tuple[Sample, str]]:
    """The values above what the link, or the hardware of their nodes, can do."""
    limit = _limit(site, alike[0][0]) if metric.better == "higher" else None
    if limit is None:
        return
    times, stated, what = limit
    most = float(times * stated.to(metric.unit))
    for sample, speed in alike:
        if speed > most:
            yield sample, f"{float(times):.3g} x {what} {stated} = {most:.4g} {metric.unit}"


def _limit(site: Site, sample: Sample) -> Limit | None:
    if not of_pairs(sample):
        return _limit_of_node(site.hardware_of(site.role_of(sample.node) or ""), sample.metric)
    link = site.system.links.get(link_of(sample))
    is_rate = units.kind(sample.unit) == "rate" and sample.metric not in BURSTS
    if link is None or link.speed is None or link.emulated or not is_rate:
        return None
    return TOLERANCE, link.speed, "the link's"


def _limit_of_node(hardware: Hardware, metric: str) -> Limit | None:
    """The figure that the site states; without it, that of the fastest core there is."""
    fact = LIMITS.get(metric, "")
    if stated := hardware.quantities.get(fact):
        return _clocks(hardware) if fact == "peak" else TOLERANCE, stated, fact
    cores = hardware.cores
    of_core = A_CORE.get(metric) or A_CORE.get(metric.partition(".")[0])
    return (Fraction(cores), of_core, "a core's") if cores and of_core else None


def lowest(site: Site, name: str) -> tuple[float, float]:
    """The lowest of a metric's limits for nodes and for pairs, in the base unit; infinity: none."""
    metric = site.catalogue[name]
    of_nodes = [_limit_of_node(hardware, name) for hardware in site.system.hardware.values()]
    is_rate = units.kind(metric.unit) == "rate" and name not in BURSTS
    links = [link.speed for link in site.system.links.values() if link.speed and is_rate]
    size = float(units.UNITS[metric.unit][1])
    return (
        min((size * float(x[0] * x[1].to(metric.unit)) for x in of_nodes if x), default=inf),
        min((size * float(TOLERANCE * speed.to(metric.unit)) for speed in links), default=inf),
    )


def _clocks(hardware: Hardware) -> Fraction:
    """How many times its peak, which counts at the guaranteed clock, a node may reach."""
    clock, base = hardware.highest_clock, hardware.avx_base
    return TOLERANCE * clock.to("Hz") / base.to("Hz") if clock and base else CLOCKS


def _beyond(metric: Metric, alike: Speeds) -> Iterator[tuple[Sample, str]]:
    """The values that are far better than the median."""
    speeds = [speed for _, speed in alike]
    if max(speeds) <= FACTOR * min(speeds):
        return  # as nearly always, of thousands of nodes
    count = len({(sample.node, sample.dims.get(PEER)) for sample, _ in alike})
    if count <= OTHERS:
        return
    typical = median_low(speeds)
    for sample, speed in alike:
        if speed > FACTOR * typical > 0:
            value = typical if metric.better == "higher" else 1 / typical
            what = f"more than {FACTOR} times better than the median of {count}"
            yield sample, f"{what}, {value:.4g} {metric.unit}"


def _speed(metric: Metric, sample: Sample) -> float:
    """More is better; a time that was rounded to zero is one of its last digit."""
    if metric.better == "higher":
        return _in_unit(metric, sample.unit, sample.number)
    smallest = Decimal((0, (1,), int(sample.number.as_tuple().exponent)))
    return 1 / _in_unit(metric, sample.unit, max(sample.number, smallest))


def _in_unit(metric: Metric, unit: str, value: Decimal) -> float:
    return float(value if unit == metric.unit else units.convert(value, unit, metric.unit))
