"""Tests as those who run them write them down: one a row, with tool, date and note.

Pairs have MB/s and the share of what their link can carry; storage has reads and writes;
applications have what is known of each. Measured and published values have the same tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import NamedTuple

from siteproof import units
from siteproof.compare.published.ratios import RESTATED, shown_all, statistic, when
from siteproof.curves.sweep_runs import of_sweep
from siteproof.record.pair_units import LINK, PEER, grouped, job, link_of, of_pairs
from siteproof.record.samples import PUBLISHED, Sample
from siteproof.report.material import Material
from siteproof.report.sections import Section, Table, few
from siteproof.sites import Site
from siteproof.sites.site_tables import PROGRAM
from siteproof.units import count
from siteproof.wording.findings import number, per_cent, quantity

MAX_ROWS, MAX_NOTES = 40, 8
MB = "MB/s"
PAIRS = ("from > to", MB, "rate", "maximum", "share of it", "tool", "date", "note")
STORAGE = ("benchmark", "reads", "writes", "program", "date", "note")
APPLICATION = "application"
LANDMARK, THROUGHPUT = "landmark", ".throughput"
_WAY = re.compile(r"(?P<check>\w+)\.(?P<way>read|write)(?:_(?P<what>max))?")
_OF_WAY = re.compile(r"\w+\.(?:read|write)_\w+")

Key = tuple[object, ...]
PairRow = tuple[float, tuple[str, ...]]  # the share of the maximum, by which rows are in order


def chapter(material: Material) -> Section | None:
    """The tables of what was measured, then those of what others have published."""
    parts = [("measured", material.own), ("published", material.published)]
    makers = (_storage, _applications)
    tables = [table for origin, s in parts for make in makers for table in make(s, origin)]
    if not tables:
        return None
    rows = sum(len(table.rows) for table in tables)
    lead = f"{count(rows, 'test')} in {count(len(tables), 'table')}, each with its tool and date."
    return Section("tested", "Tests, one a row", lead, tables)


def _newest(samples: Iterable[Sample]) -> list[Sample]:
    """Those of the newest job of all of them."""
    found = list(samples)
    last = max(map(job, found), default=None)
    return [s for s in found if job(s) == last]


def _value(samples: Sequence[Sample]) -> str:
    """As printed; of several that were measured their median."""
    if samples[0].header.mode == PUBLISHED:
        return shown_all(samples)
    unit = samples[0].unit
    return quantity(median(_numbers(samples, unit)), unit)


def _numbers(samples: Iterable[Sample], unit: str) -> list[float]:
    return [float(units.convert(s.number, s.unit, unit)) for s in samples]


def _note(samples: Sequence[Sample], *more: str) -> str:
    """What a value is of those that it summarises, and what its source says of it."""
    kinds = {statistic(s) for s in samples} - {"", "one value", LANDMARK}
    of_nodes = len({s.node for s in samples})
    if samples[0].header.mode != PUBLISHED and len(samples) > 1:
        kinds = {f"median of {len(samples)} values"}
        kinds |= {f"of {count(of_nodes, 'node')}"} if of_nodes > 1 else set()
    whys = dict.fromkeys(part for s in samples for part in s.why.split("; ") if part)
    return few([*sorted(kinds, reverse=True), *more, *whys], MAX_NOTES, "; ") or "-"


def _program(samples: Sequence[Sample]) -> str:
    return ", ".join(dict.fromkeys(s.conditions.get(PROGRAM, "") for s in samples)) or "-"


class _Pair(NamedTuple):
    """A test of a pair: the rate, and what a source prints with it."""

    rates: Sequence[Sample]
    printed: Sequence[Sample]

    def with_unit(self, ending: str) -> str:
        """What is printed under a metric that ends so; empty without."""
        return shown_all([s for s in self.printed if s.metric.endswith(ending)])


def of_pairs_over_links(material: Material) -> list[Table]:
    """The tests of pairs, for the chapter on them."""
    site, published = material.site, material.published
    return [*_pairs(site, material.own, "measured"), *_pairs(site, published, "published")]


def _pairs(site: Site, samples: Sequence[Sample], origin: str) -> Iterator[Table]:
    """A table for each link, the smallest share of it first."""
    here = [s for s in samples if of_pairs(s) and s.status == "ok" and not of_sweep(s)]
    command = "siteproof matrix" if origin == "measured" else ""
    for link, of_link in grouped((link_of(s), s) for s in here).items():
        if rows := [row for _, row in sorted(_pair_rows(site, link, of_link))]:
            title = f"Pairs over {link}, {origin}"
            yield Table(PAIRS, rows, "", PAIRS[1:5], title, most=MAX_ROWS, command=command)


def _pair_rows(site: Site, link: str, of_link: Sequence[Sample]) -> Iterator[PairRow]:
    for found in grouped((_test(s), s) for s in of_link).values():
        rates = [s for s in found if s.metric not in RESTATED and _is_rate(site, s)]
        if found[0].header.mode == PUBLISHED:
            yield from (_pair_row(site, link, line) for line in _lines(rates, found))
        elif rates:
            yield _pair_row(site, link, _Pair(_newest(rates), ()))


def _lines(rates: Iterable[Sample], found: Iterable[Sample]) -> Iterator[_Pair]:
    """Each published rate with what is printed of it: the first of each metric with the first.

    The trials themselves differ: those of Netperf.throughput are counted apart from those of
    TcpBandwidth.share_of_max, which each tool has. Of other numbers than the rates none is taken.
    """
    order, others = (sorted(samples, key=lambda s: s.trial) for samples in (rates, found))
    printed = grouped((s.metric, s) for s in others if s.metric in RESTATED)
    whole = [own for own in printed.values() if len(own) == len(order)]
    for n, rate in enumerate(order):
        yield _Pair([rate], [own[n] for own in whole])


def _test(sample: Sample) -> Key:
    """What the values of one test share."""
    ends = sample.node, sample.dims[PEER], sample.conditions.get(PROGRAM, "")
    if sample.header.mode == PUBLISHED:
        return (*ends, when(sample), sample.header.campaign)
    dims = {k: v for k, v in sample.dims.items() if k not in (PEER, LINK, "trial")}
    return (*ends, sample.metric, tuple(sorted(dims.items())))


def _is_rate(site: Site, sample: Sample) -> bool:
    known = site.catalogue.get(sample.metric)
    if known is None or LINK not in known.conditions or units.kind(sample.unit) != "rate":
        return False
    return known.headline or sample.metric.endswith(THROUGHPUT)


def _pair_row(site: Site, link: str, one: _Pair) -> PairRow:
    first, speed = one.rates[0], None
    if (known := site.system.links.get(link)) and known.speed:
        speed = known.speed
    rate = median(_numbers(one.rates, MB))
    share = rate / float(speed.to(MB)) if speed else rate
    columns = (
        f"{first.node} > {first.dims[PEER]}",
        one.with_unit("throughput_bytes") or f"{number(rate)} {MB}",
        _value(one.rates),
        one.with_unit("most_possible") or str(speed or "-"),
        one.with_unit("share_of_max") or (per_cent(share) if speed else "-"),
        _program(one.rates),
        when(first),
        _note(one.rates),
    )
    return share, columns


def _storage(samples: Sequence[Sample], origin: str) -> Iterator[Table]:
    """A row for reads and writes of one benchmark, campaign and program, the oldest first."""
    good = [s for s in samples if s.status == "ok" and not of_sweep(s) and not of_pairs(s)]
    found = grouped((_benchmark(s), s) for s in good if _way(s))
    order = sorted(found.items(), key=lambda item: item[1][0].header.time)
    landmarks = [s for s in good if _OF_WAY.fullmatch(s.metric) and statistic(s) == LANDMARK]
    of_check: dict[Key, list[str]] = grouped(
        ((s.header.session, s.header.check), _landmark(s)) for s in landmarks
    )
    rows = [_storage_row(key, own, of_check.get(key[:2], ())) for key, own in order]
    if rows:
        title = f"Storage, {origin}"
        yield Table(STORAGE, rows, numeric=STORAGE[1:3], title=title, most=MAX_ROWS)


def _storage_row(key: Key, of_test: Sequence[Sample], marks: Iterable[str]) -> tuple[str, ...]:
    ways, head = grouped((_way(s), s) for s in of_test), of_test[0].header
    both = [_value(ways[way]) if way in ways else "-" for way in ("read", "write")]
    name = ", ".join(str(part) for part in (head.check, head.campaign, *key[3:]) if part)
    return name, *both, _program(of_test), when(of_test[0]), _note(of_test, *marks)


def _way(sample: Sample) -> str:
    """read or write, of a rate of storage; else empty."""
    match = _WAY.fullmatch(sample.metric)
    return match["way"] if match and units.kind(sample.unit) == "rate" else ""


def _benchmark(sample: Sample) -> Key:
    """Session, check and program, then what differs within them."""
    match, own = _WAY.fullmatch(sample.metric), sample.conditions
    dims = [f"{k} {v}" for k, v in sorted(sample.dims.items()) if k != "trial"]
    what = match["what"] or "" if match else ""
    place = own.get("file_system", "")
    head = sample.header
    return head.session, head.check, own.get(PROGRAM, ""), place, what, *dims


def _landmark(sample: Sample) -> str:
    """`write plateau at 32 tasks`, of the metric Ior.write_plateau."""
    words = sample.metric.partition(".")[2].removesuffix("_tasks").replace("_", " ")
    return f"{words} at {shown_all([sample])}"


def _applications(samples: Sequence[Sample], origin: str) -> Iterator[Table]:
    """A row an application, with a column for each of its values."""
    good = [s for s in samples if s.status == "ok" and APPLICATION in _all(s) and not of_sweep(s)]
    found = grouped(((s.header.session, _all(s)[APPLICATION]), s) for s in good)
    metrics = list(dict.fromkeys(s.metric for s in good))
    rows = [_application_row(name, own, metrics) for (_, name), own in found.items()]
    if rows:
        heads = [metric.partition(".")[2].replace("_", " ") for metric in metrics]
        columns = (APPLICATION, *heads, "date", "note")
        yield Table(columns, rows, numeric=heads, title=f"Applications, {origin}", most=MAX_ROWS)


def _application_row(name: str, own: Sequence[Sample], metrics: Sequence[str]) -> tuple[str, ...]:
    values = grouped((s.metric, s) for s in own)
    cells = [_value(values[metric]) if metric in values else "-" for metric in metrics]
    return name, *cells, when(own[0]), _note(own)


def _all(sample: Sample) -> dict[str, str]:
    return {**sample.conditions, **sample.dims}
