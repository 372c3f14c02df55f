"""Metrics that no source prints and criteria cover: worked out, and judged as if published."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from statistics import median

from siteproof.published.comparisons import by_network, groups
from siteproof.published.table_cells import is_exact, link, statistic
from siteproof.record.pair_units import LINK
from siteproof.record.samples import PUBLISHED, Sample
from siteproof.sites import Site
from siteproof.units import convert

RANK = "rank"
TRIALS = "TcpBandwidth.throughput"
WORKED_OUT = "worked out of"
LAN, WAN = "lan", "wan"
RETENTION = ".retention"
DIGITS = Decimal("0.0001")


def samples(site: Site, published: Iterable[Sample]) -> list[Sample]:
    """Best, median and number of trials of each link, and what the WAN retains of the LAN."""
    found = list(published)
    return [*_of_trials(site, found), *_retained(site, found)]


def _of_trials(site: Site, published: Iterable[Sample]) -> Iterator[Sample]:
    """Best, median and trials of each link, and its share of the site's first one."""
    trials: dict[str, list[Sample]] = {}
    for sample in published:
        if sample.metric == TRIALS and statistic(sample) == RANK:
            trials.setdefault(link(sample), []).append(sample)
    native = Fraction(0)
    for name in site.system.links:
        if name not in trials:
            continue
        values = [convert(s.number, s.unit, "Mb/s") for s in trials[name]]
        centre = median(values)
        native = native or centre
        results = [("best", max(values), "Mb/s"), ("median", centre, "Mb/s")]
        results.append(("trials", Fraction(len(values)), "count"))
        if native:
            results.append(("share_of_native", centre / native, "x"))
        for metric, value, unit in results:
            yield replace(
                _worked_out(trials[name][0], f"TcpBandwidth.{metric}", value, unit, "the trials"),
                trial=0,
                dims={LINK: name},
            )


def _retained(site: Site, published: Iterable[Sample]) -> Iterator[Sample]:
    """The rate over the WAN as a share of that over the LAN, where the catalogue has such a metric.

    `Ior.retention` is of Ior and of IorSingle; the condition `figure` names the metric itself.
    """
    exact = [s for s in published if is_exact(s)]
    for sides in groups(exact, by_network):
        near, far = sides[LAN][0], sides[WAN][0]
        check, _, figure = near.metric.partition(".")
        entry = site.catalogue.get(near.metric)
        metric = next(
            (
                name
                for name in site.catalogue
                if name.endswith(RETENTION) and check.startswith(name.removesuffix(RETENTION))
            ),
            "",
        )
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
