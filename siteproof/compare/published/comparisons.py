"""Published values that differ in one thing only: the network, link, tool or direction.

And what follows from several of them: metrics that no source prints and criteria cover, judged as
if published. Two campaigns are compared by `siteproof compare`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from statistics import mean, median

from siteproof.compare.published.ratios import RESTATED
from siteproof.compare.published.table_cells import (
    Table,
    is_exact,
    link,
    name,
    number,
    share,
    shown,
    statistic,
    when,
)
from siteproof.record.grouped import grouped
from siteproof.record.pair_units import LINK, PEER
from siteproof.record.samples import PUBLISHED, Sample
from siteproof.sites import Site
from siteproof.sites.published_csv import NETWORK, PROGRAM
from siteproof.units import convert, with_unit

Key = tuple[object, ...]
Sides = dict[str, list[Sample]]  # the samples by the value in which they differ
COLUMNS = ("differ in", "date", "metric", "one", "other", "other of one", "by the means")
FILE_SYSTEM = "file_system"
RANK = "rank"
TRIALS = "TcpBandwidth.throughput"
WORKED_OUT = "worked out of"
LAN, WAN = "lan", "wan"
RETENTION = ".retention"
DIGITS = Decimal("0.0001")


def table(site: Site, samples: Iterable[Sample]) -> Table | None:
    """Each pair of values that differ in one thing; several trials by their median and mean."""
    exact = [s for s in samples if is_exact(s) and s.metric not in RESTATED]
    rows: list[tuple[str, ...]] = []
    for what, split, without in SPLITS:
        for sides in groups(exact, split):
            order = list(site.system.links) if split is _by_link else []
            rows += _rows(what, sides, without, order)
    note = "Medians where a source prints several trials; one value on each side shows no noise."
    return Table("Values that differ in one thing", COLUMNS, rows, note) if rows else None


def groups(
    samples: Iterable[Sample], split: Callable[[Sample], tuple[str, Key] | None]
) -> list[Sides]:
    """Samples that agree in their key, by their side; only groups of several sides."""
    found: dict[Key, Sides] = {}
    for sample in samples:
        place = split(sample)
        if place is not None:
            side, key = place
            found.setdefault(key, {}).setdefault(side, []).append(sample)
    return [sides for sides in found.values() if len(sides) > 1]


def by_network(sample: Sample) -> tuple[str, Key] | None:
    """LAN and WAN, whose links and file systems differ with them."""
    network = sample.own_conditions.get(NETWORK, "")
    if not network:
        return None
    return network, (sample.metric, sample.header.time, _rest(sample, *PLACES))


def _by_link(sample: Sample) -> tuple[str, Key] | None:
    over = link(sample)
    if not over or NETWORK in sample.own_conditions:
        return None
    return over, (sample.metric, sample.header.time, _rest(sample, LINK))


def _by_tool(sample: Sample) -> tuple[str, Key] | None:
    """Each tool has a metric of its own: TcpBandwidth.throughput and Netperf.throughput."""
    if PEER not in sample.dims or PROGRAM not in sample.own_conditions:
        return None
    quantity = sample.metric.partition(".")[2]
    key = (quantity, sample.header.time, sample.node, sample.dims[PEER])
    return sample.own_conditions[PROGRAM], key


def _by_direction(sample: Sample) -> tuple[str, Key] | None:
    if PEER not in sample.dims:
        return None
    ends = frozenset((sample.node, sample.dims[PEER]))
    key = (sample.metric, sample.header.time, ends, _rest(sample, PEER))
    return f"{sample.node} > {sample.dims[PEER]}", key


PLACES = (NETWORK, LINK, FILE_SYSTEM)
SPLITS = (
    ("network", by_network, PLACES),
    ("link", _by_link, (LINK,)),
    ("tool", _by_tool, ()),
    ("direction", _by_direction, (PEER,)),
)


def _rest(sample: Sample, *without: str) -> Key:
    """Every other condition and dimension."""
    conditions = {**sample.dims, **sample.own_conditions}
    return tuple(sorted((k, v) for k, v in conditions.items() if k not in without))


def _rows(
    what: str, sides: Sides, without: Sequence[str], order: Sequence[str]
) -> Iterator[tuple[str, ...]]:
    """The first side with each other one. order: of the sides that it has; others by name."""
    first, *others = sorted(
        sides, key=lambda side: (order.index(side) if side in order else len(order), side)
    )
    unit = sides[first][0].unit
    whole = _values(sides[first], unit)
    for other in others:
        part = _values(sides[other], unit)
        several = len(whole) > 1 or len(part) > 1
        yield (
            what,
            when(sides[first][0]),
            name(sides[first][0], without),
            f"{first}: {_shown(sides[first], whole)}",
            f"{other}: {_shown(sides[other], part)}",
            share(median(part), median(whole), 2),
            share(mean(part), mean(whole), 2) if several else "",
        )


def _values(samples: Sequence[Sample], unit: str) -> list[Fraction]:
    return [convert(s.number, s.unit, unit) for s in samples]


def _shown(samples: Sequence[Sample], values: Sequence[Fraction]) -> str:
    if len(samples) == 1:
        return shown(samples[0])
    return f"{with_unit(number(median(values), 6), samples[0].unit)} (median of {len(values)})"


def worked_out(site: Site, published: Iterable[Sample]) -> list[Sample]:
    """Best, median and number of trials of each link, and what the WAN retains of the LAN."""
    found = list(published)
    return [*_of_trials(site, found), *_retained(site, found)]


def _of_trials(site: Site, published: Iterable[Sample]) -> Iterator[Sample]:
    """Best, median and trials of each link, and its share of the site's first one."""
    of_trials = (s for s in published if s.metric == TRIALS and statistic(s) == RANK)
    trials = grouped((link(sample), sample) for sample in of_trials)
    native = Fraction(0)
    for key in site.system.links:
        if key not in trials:
            continue
        values = _values(trials[key], "Mb/s")
        centre = median(values)
        native = native or centre
        results = [("best", max(values), "Mb/s"), ("median", centre, "Mb/s")]
        results.append(("trials", Fraction(len(values)), "count"))
        if native:
            results.append(("share_of_native", centre / native, "x"))
        for metric, value, unit in results:
            yield replace(
                _worked_out(trials[key][0], f"TcpBandwidth.{metric}", value, unit, "the trials"),
                trial=0,
                dims={LINK: key},
            )


def _retained(site: Site, published: Iterable[Sample]) -> Iterator[Sample]:
    """The rate over the WAN as a share of that over the LAN, where the catalogue has such a metric.

    `Ior.retention` is of Ior and of IorSingle; the condition `figure` names the metric itself.
    """
    exact = [s for s in published if is_exact(s)]
    metrics = [one for one in site.catalogue if one.endswith(RETENTION)]
    every = {metric.removesuffix(RETENTION): metric for metric in metrics}
    for sides in groups(exact, by_network):
        near, far = sides[LAN][0], sides[WAN][0]
        check, _, figure = near.metric.partition(".")
        entry = site.catalogue.get(near.metric)
        metric = next((every[own] for own in every if check.startswith(own)), "")
        lower = entry is not None and entry.better == "lower"
        if not metric or lower or not near.number:
            continue
        ratio = convert(far.number, far.unit, near.unit) / Fraction(near.number)
        made = _worked_out(far, metric, ratio, "x", "LAN and WAN")
        conditions = {**made.own_conditions, "figure": figure}
        if "clients" in conditions:  # each client runs one task
            conditions.setdefault("tasks", conditions["clients"])
        yield replace(made, own_conditions=conditions)


def _worked_out(sample: Sample, metric: str, value: Fraction, unit: str, source: str) -> Sample:
    exact = Decimal(value.numerator) / Decimal(value.denominator)
    return replace(
        sample,
        metric=metric,
        value=exact.quantize(Decimal(1) if unit == "count" else DIGITS),
        unit=unit,
        own_conditions={**sample.own_conditions, PUBLISHED: f"{WORKED_OUT} {source}"},
    )
