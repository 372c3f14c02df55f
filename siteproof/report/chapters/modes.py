"""Ways of virtualising beside bare metal: all trials of each, their medians, means and ranges.

A way is a link of one pair of hosts; the first in the site's file is what the others are compared
with. Medians decide: a single bad trial moves a mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from statistics import mean, median

from siteproof import units
from siteproof.figure import labels
from siteproof.figure import ranges as drawn
from siteproof.figure.distribution import Mark
from siteproof.figure.ranges import Ranges, Trials
from siteproof.record.pair_units import LINK, link_of
from siteproof.record.samples import PUBLISHED, Sample
from siteproof.report import promised
from siteproof.report.material import Material
from siteproof.report.phrases import count, figure
from siteproof.report.sections import Figure, Section, Table
from siteproof.sites import Site, pairs

LEAST = 2  # ways that can be compared
COLUMNS = ("way", "trials", "median", "mean", "lowest", "highest", "median, share", "mean, share")


@dataclass(frozen=True)
class Ways:
    """All trials of a metric by way, in one unit. ours: whether this suite measured them."""

    metric: str
    unit: str
    better: str
    ours: bool
    trials: Mapping[str, Sequence[float]]

    @property
    def first(self) -> str:
        """What the others are compared with."""
        return next(iter(self.trials))

    def share(self, way: str, middle: str) -> float:
        """Of a way in the first one. middle: median or mean."""
        of = {"median": median, "mean": mean}[middle]
        whole = of(self.trials[self.first])
        return of(self.trials[way]) / whole if whole else float("nan")


def chapter(material: Material) -> Section | None:
    """A figure for each metric that several ways have, measured and published apart."""
    ways = _ways(material.site)
    if len(ways) < LEAST:
        return None
    found = list(_found(material, ways))
    if not found:
        return None
    figures = [_figure(material.site, one) for one in found]
    return Section("modes", "Ways of virtualising", _lead(found[0]), figures=figures)


def _ways(site: Site) -> list[str]:
    """The links of one pair of hosts each."""
    return [
        name
        for name, link in site.system.links.items()
        if len(pairs.servers(site, link)) == len(pairs.clients(site, link)) == 1
    ]


def _found(material: Material, ways: Sequence[str]) -> Iterator[Ways]:
    stated = material.sessions.of(lambda head: head.mode == PUBLISHED)
    ours = [s for s in material.judged.samples if s.header.mode != PUBLISHED]
    for is_ours, held in ((True, ours), (False, stated)):
        for name, metric in material.site.catalogue.items():
            if not metric.headline or LINK not in metric.conditions:
                continue
            trials = _trials(held, name, ways)
            if len(trials) >= LEAST:
                printed = {s.unit for s in held if s.metric == name and s.status == "ok"}
                unit = printed.pop() if len(printed) == 1 else metric.unit
                yield Ways(
                    name,
                    unit,
                    metric.better,
                    is_ours,
                    {
                        way: [promised.converted(s.number, s.unit, unit) for s in trials[way]]
                        for way in ways
                        if way in trials
                    },
                )


def _trials(found: Sequence[Sample], metric: str, ways: Sequence[str]) -> dict[str, list[Sample]]:
    """The good trials of each way; of a way that was measured again those of its newest job."""
    trials: dict[str, list[Sample]] = {}
    for sample in found:
        if (
            sample.metric == metric
            and sample.status == "ok"
            and link_of(sample) in ways
            and units.kind(sample.unit) != "text"
        ):
            trials.setdefault(link_of(sample), []).append(sample)
    return {
        way: [
            s
            for s in held
            if s.header == max((other.header for other in held), key=lambda h: h.job_order)
        ]
        for way, held in trials.items()
    }


def _lead(one: Ways) -> str:
    told = [f"{way} at {_per_cent(one.share(way, 'median'))}" for way in list(one.trials)[1:]]
    lower = " (lower is better)" if one.better == "lower" else ""
    return f"{one.metric}{lower} beside {one.first}, by the medians: {', '.join(told)}."


def _figure(site: Site, one: Ways) -> Figure:
    word = "measured" if one.ours else "published"
    name = f"modes-{promised.slug(one.metric)}-{word}"
    title = f"{one.metric}, {word}"
    rows = [Trials(way, values) for way, values in one.trials.items()]
    middle = median(one.trials[one.first])
    marks = [Mark("median", middle, f"median of {one.first}: {labels.number(middle)} {one.unit}")]
    says = _says(one)
    svg = drawn.draw(name, says, Ranges(f"{title}, {one.unit}", one.unit, rows, marks))
    return Figure(name, title, svg, says, _table(site, one), [one.metric])


def _says(one: Ways) -> str:
    total = sum(map(len, one.trials.values()))
    unlike = [
        way
        for way in list(one.trials)[1:]
        if abs(one.share(way, "median") - one.share(way, "mean")) >= 0.01
    ]
    told = f"{count(total, 'trial')} of {count(len(one.trials), 'way')}, {one.unit}"
    parts = [
        f"{way} has {_per_cent(one.share(way, 'median'))} of {one.first} by the medians and "
        f"{_per_cent(one.share(way, 'mean'))} by the means"
        for way in unlike
    ]
    return f"{told}: {'; '.join(parts)}." if parts else f"{told}: medians and means agree."


def _table(site: Site, one: Ways) -> Table:
    rows = [
        (
            f"{way}: {site.system.links[way].description}",
            str(len(values)),
            *(figure(of(values)) for of in (median, mean, min, max)),
            *(_per_cent(one.share(way, middle)) for middle in ("median", "mean")),
        )
        for way, values in one.trials.items()
    ]
    return Table(COLUMNS, rows, f"In {one.unit}; shares of {one.first}.", numeric=COLUMNS[1:])


def _per_cent(value: float) -> str:
    return f"{value:.1%}".replace("%", " %") if isfinite(value) else "no share"
