"""The same benchmark in several scenarios: curves over the size of a message, and bars of LINPACK.

A scenario is a link, such as one for each way of virtualising a network, or a role of nodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from siteproof.curves.sweep_runs import of_sweep
from siteproof.record.pair_units import grouped, link_of
from siteproof.record.samples import PUBLISHED, Sample
from siteproof.report import past
from siteproof.report.figure import line_plot
from siteproof.report.figure import rows as drawn
from siteproof.report.figure.line_plot import Line, LinePlot
from siteproof.report.material import Material
from siteproof.report.sections import Figure, Section, Table
from siteproof.sites import Site
from siteproof.units import count, size
from siteproof.wording.findings import number

SIZE = "size"  # dimension: bytes of a message
_BYTES = re.compile("[0-9]{1,15}")
LINPACK = "Hpl.gflops"
MAX_TRIALS = 40  # bars of a scenario: of more, the chapter on all nodes has them

Curves = Mapping[str, Mapping[int, float]]  # of each scenario and size the median


def chapter(material: Material) -> Section | None:
    """A figure for each metric with sizes, then LINPACK; what is published has its own lines."""
    every = (*material.own, *material.published)
    found = [s for s in every if s.status == "ok" and not of_sweep(s)]
    figures = [*_by_size(material.site, found), *_linpack(material.site, found)]
    if not figures:
        return None
    lead = (
        f"{count(len(figures), 'quantity', 'quantities')}, with a line or bars for each scenario."
    )
    return Section("scenarios", "Scenarios compared", lead, figures=figures)


def _scenario(site: Site, sample: Sample) -> str:
    """The link, else the role of the node; the rest of its point; and whether it is published."""
    name = link_of(sample) or site.role_of(sample.node) or sample.conditions.get("role", "")
    rest = [f"{key} {value}" for key, value in _rest(site, sample).items()]
    origin = "published" if sample.header.mode == PUBLISHED else ""
    return ", ".join(filter(None, (name, *rest, origin)))


def _rest(site: Site, sample: Sample) -> dict[str, str]:
    """What its metric is measured at, besides the size: no median is over several of these."""
    known = site.catalogue.get(sample.metric)  # not of each published one
    point = known.point if known else ()
    return {key: sample.dims[key] for key in point if key != SIZE and key in sample.dims}


def _by_scenario(site: Site, samples: Sequence[Sample]) -> dict[str, list[Sample]]:
    """In the order of the site's links and roles; what is published after them."""
    order = [*site.system.links, *site.system.nodes]
    found = grouped((_scenario(site, s), s) for s in samples)
    known = [name for name in order if name in found]
    return {name: found[name] for name in dict.fromkeys([*known, *found])}


def _by_size(site: Site, found: Sequence[Sample]) -> Iterator[Figure]:
    of_size = [s for s in found if _BYTES.fullmatch(s.dims.get(SIZE, s.conditions.get(SIZE, "")))]
    for metric, samples in grouped((s.metric, s) for s in of_size).items():
        unit, curves = samples[0].unit, {}
        # 2 tasks before 16
        samples.sort(key=lambda s: [(len(text), text) for text in _rest(site, s).values()])
        for name, of_name in _by_scenario(site, samples).items():
            curves[name] = _curve(of_name, unit)
        sizes = sorted({at for curve in curves.values() for at in curve})
        if len(sizes) > 1:
            yield _curves(metric, unit, site.catalogue[metric].better == "lower", curves, sizes)


def _curve(samples: Sequence[Sample], unit: str) -> dict[int, float]:
    """The median at each size."""
    at_size = grouped((int({**s.conditions, **s.dims}[SIZE]), s) for s in samples)
    return {
        at: median(past.converted(s.number, s.unit, unit) for s in here)
        for at, here in sorted(at_size.items())
    }


def _curves(metric: str, unit: str, is_time: bool, curves: Curves, sizes: Sequence[int]) -> Figure:
    title = f"{metric} over the size of a message, {unit}"
    lines = [Line(name, list(of), list(of.values())) for name, of in curves.items()]
    plot = LinePlot(title, "size", f"{metric}, {unit}", lines, log_y=is_time, sizes=True)
    rows = [
        (size(at), *(number(of[at]) if at in of else "-" for of in curves.values())) for at in sizes
    ]
    table = Table(("size", *curves), rows, "Medians.", numeric=("size", *curves))
    caption = f"{count(len(curves), 'scenario')} over {count(len(sizes), 'size')}."
    name = f"scenarios-{past.slug(metric)}"
    return Figure(name, title, line_plot.draw(plot), caption, table, [metric])


def _linpack(site: Site, found: Sequence[Sample]) -> Iterator[Figure]:
    """A row a trial, of at least two scenarios; the highest last, as NASA's tables have them."""
    of_linpack = [s for s in found if s.metric == LINPACK]
    groups = _by_scenario(site, of_linpack)
    if len(groups) < 2 or max(map(len, groups.values())) > MAX_TRIALS:
        return
    unit = of_linpack[0].unit
    trials = {
        name: sorted(past.converted(s.number, s.unit, unit) for s in own)
        for name, own in groups.items()
    }
    rows = [
        (name, str(place), number(value))
        for name, values in trials.items()
        for place, value in enumerate(values, start=1)
    ]
    columns, title = ("scenario", "trial", unit), f"{LINPACK} by scenario, {unit}"
    table = Table(columns, rows, "From the lowest to the highest.", numeric=columns[1:])
    caption = f"{count(len(rows), 'trial')} of {count(len(trials), 'scenario')}."
    svg = drawn.bars(title, f"{LINPACK}, {unit}", list(trials.items()))
    yield Figure("scenarios-linpack", title, svg, caption, table, [LINPACK])
