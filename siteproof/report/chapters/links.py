"""The same quantity over several links: a near and a far one, or ways to virtualise a network.

The first link in the site's file is what the others are compared with. Means are shown next to
medians, as a single bad trial moves a mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from statistics import fmean, median

from siteproof.compare.published.ratios import is_exact
from siteproof.links.matrix import OF_A_JOB
from siteproof.record import series
from siteproof.record.pair_units import LINK, PEER, grouped, job, link_of
from siteproof.record.samples import PUBLISHED, JobOrder, Sample
from siteproof.report import past
from siteproof.report.figure import rows as drawn
from siteproof.report.figure.rows import Row
from siteproof.report.material import Material
from siteproof.report.sections import Figure, Section, Table
from siteproof.sites import Site
from siteproof.sites.site_tables import NETWORK
from siteproof.units import count
from siteproof.wording.findings import per_cent, quantity

NETWORKS = ("lan", "wan")  # published values name these instead of a link
PLACES = (NETWORK, LINK, "file_system", PUBLISHED, "mode")  # differ between two links
MTU = "mtu"  # of the machine, yet values under two of them are not compared
MAX_TRIALS = 40  # of a table with a row a trial
COLUMNS = ("quantity", "link", "values", "median", "mean", "lowest", "highest")
SHARES = ("median of the first", "mean of the first")

Conditions = dict[str, str]
Key = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Quantity:
    """One quantity in one unit. links: of each link all values; the first is compared with."""

    name: str
    metric: str
    unit: str
    better: str
    links: Mapping[str, Sequence[float]]

    def share(self, link: str, middle: Callable[[Sequence[float]], float] = median) -> float:
        """A link's median, or mean, as a share of the first link's; NaN where that is zero."""
        whole = middle(next(iter(self.links.values())))
        return middle(self.links[link]) / whole if whole else float("nan")


def chapter(material: Material) -> Section | None:
    """A figure for what was measured, and one for what others have published."""
    site = material.site
    found_in = {"measured": material.own, "published": material.published}
    parts = [(origin, _quantities(site, samples)) for origin, samples in found_in.items()]
    figures = [_figure(origin, found) for origin, found in parts if found]
    if not figures:
        return None
    number = sum(len(found) for _, found in parts)
    lead = f"{count(number, 'quantity', 'quantities')} over two links or more."
    tables = [
        _trials(origin, one)
        for origin, found in parts
        for one in found
        if 1 < max(map(len, one.links.values())) <= MAX_TRIALS
    ]
    return Section("links", "Links compared", lead, tables, figures)


def _trials(origin: str, one: Quantity) -> Table:
    """A row a trial, from the lowest to the highest of each link."""
    ordered = [sorted(values) for values in one.links.values()]
    rows = [
        (str(trial), *("-" if value is None else f"{value:.8g}" for value in values))
        for trial, values in enumerate(zip_longest(*ordered), start=1)
    ]
    title, links = f"{one.name}, {origin}, {one.unit}", list(one.links)
    note = "Trials of a link from the lowest to the highest."
    return Table(("trial", *links), rows, note, ("trial", *links), title)


def _key(site: Site, sample: Sample) -> Conditions | None:
    """What two values must share to be compared; None for a sample that is not compared."""
    metric = site.catalogue[sample.metric]
    dims = {k: v for k, v in sample.dims.items() if k not in (*series.OF_A_JOB, LINK)}
    if sample.header.mode == PUBLISHED:
        if not metric.headline and NETWORK not in sample.conditions:
            return None
        stated = {k: v for k, v in sample.conditions.items() if k not in PLACES}
        return dims | stated | {"session": sample.header.session}
    link = site.system.links.get(link_of(sample))
    if link is None or not metric.headline or LINK not in metric.conditions:
        return None
    pattern = {"pattern": link.pattern} if link.pattern == "together" else {}
    return dims | _measured_under(sample) | pattern


def _measured_under(sample: Sample) -> Conditions:
    """The conditions of a measured value that another link can have, too."""
    return {
        name: text
        for name, text in series.deciding(sample.conditions).items()
        if name not in (*PLACES, *OF_A_JOB) and (name == MTU or not series.of_the_machine(name))
    }


def _quantities(site: Site, samples: Iterable[Sample]) -> list[Quantity]:
    """Every quantity that two links or more have."""
    found: dict[tuple[str, Key], dict[str, list[Sample]]] = {}
    for sample in samples:
        link = sample.conditions.get(NETWORK) or link_of(sample)
        metric = site.catalogue.get(sample.metric)
        if not link or metric is None or metric.better == "neither" or not is_exact(sample):
            continue
        if (conditions := _key(site, sample)) is not None:
            key = tuple(sorted(conditions.items()))
            found.setdefault((sample.metric, key), {}).setdefault(link, []).append(sample)
    compared = {group: links for group, links in found.items() if len(links) > 1}
    keys = grouped((name, dict(key)) for name, key in compared)
    return [
        _quantity(site, links, dict(key), keys[name]) for (name, key), links in compared.items()
    ]


def _quantity(
    site: Site,
    samples: Mapping[str, Sequence[Sample]],
    conditions: Conditions,
    others: Sequence[Conditions],
) -> Quantity:
    """One quantity in the unit of its first link. others: the conditions of all of its metric."""
    order = [link for link in (*NETWORKS, *site.system.links) if link in samples]
    first = samples[order[0]][0]
    name = ", ".join([first.metric, *_conditions(first, conditions, others)])
    links = {
        link: [past.converted(s.number, s.unit, first.unit) for s in _newest(samples[link])]
        for link in order
    }
    return Quantity(name, first.metric, first.unit, site.catalogue[first.metric].better, links)


def _conditions(sample: Sample, key: Conditions, others: Sequence[Conditions]) -> Iterator[str]:
    """The conditions that belong into the name of a quantity: `30 clients`, `1 stream`.

    Of measured values these are the dimensions, and what differs from other quantities.
    """
    for name, text in sorted(key.items()):
        differs = any(other.get(name) != text for other in others)
        if name == "pattern":
            yield "all pairs at once"
        elif text.isdigit() and (name in sample.dims or sample.header.mode == PUBLISHED or differs):
            words = name.replace("_", " ")
            yield f"{text} {words.removesuffix('s') if text == '1' else words}"
        elif differs and name != "session":
            yield f"{name.replace('_', ' ')} {text}"


def _newest(found: Sequence[Sample]) -> list[Sample]:
    """The values of each pair's newest job."""
    newest: dict[tuple[str, str], JobOrder] = {}
    for sample in found:
        pair = (sample.node, sample.dims.get(PEER, ""))
        newest[pair] = max(newest.get(pair, job(sample)), job(sample))
    return [s for s in found if job(s) == newest[s.node, s.dims.get(PEER, "")]]


def _figure(origin: str, found: Sequence[Quantity]) -> Figure:
    """The rates as shares of the first link; times are in the table only."""
    name, title = f"links-{origin}", f"Links compared, {origin}"
    groups = []
    for one in found:
        whole = median(next(iter(one.links.values())))
        if one.better == "higher" and whole:
            rows = [
                Row(link, [value / whole for value in values], quantity(median(values), one.unit))
                for link, values in one.links.items()
            ]
            groups.append((one.name, rows))
    caption = f"{count(len(groups), 'rate')} as shares of the first link's median."
    metrics = sorted({one.metric for one in found})
    return Figure(name, title, drawn.ranges(title, groups), caption, _table(found), metrics)


def _table(found: Sequence[Quantity]) -> Table:
    rows = []
    for one in found:
        for link, values in one.links.items():
            middle, share = quantity(median(values), one.unit), per_cent(one.share(link))
            spread, by_means = ["-"] * 3, "-"
            if len(values) > 1:
                spread = [quantity(of(values), one.unit) for of in (fmean, min, max)]
                by_means = per_cent(one.share(link, fmean))
            rows.append((one.name, link, str(len(values)), middle, *spread, share, by_means))
    note = (
        "Only values under the same conditions are compared. Shares are of the first link of each "
        "quantity; of a time, a larger share is longer."
    )
    return Table((*COLUMNS, *SHARES), rows, note, numeric=(*COLUMNS[2:], *SHARES))
