"""Ratios of published values, worked out and compared with what the source itself prints.

What the tables of published results share: a table's shape, and a value as text.

Published values that differ in one thing only: the network, link, tool or direction.

And what follows from several of them: metrics that no source prints and criteria cover, judged as
if published. Two campaigns are compared by `siteproof compare`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import zip_longest
from statistics import mean, median
from typing import NamedTuple

from siteproof import units
from siteproof.collect.derive.network import goodput
from siteproof.record.pair_units import LINK, PEER, grouped
from siteproof.record.samples import PUBLISHED, Sample
from siteproof.sites import Site, site_tables
from siteproof.sites.site_tables import NETWORK, PROGRAM
from siteproof.units import Number, convert, round_to, with_unit

AGREES = "agrees"
COLUMNS = ("date and campaign", "of", "ratio", "values", "worked out", "printed", "remark")


class Ratio(NamedTuple):
    """One metric over another. printed: the metric under which a source prints the ratio itself.

    whole: empty where `printed` is `part` in another unit. most: beyond it the values contradict
    each other.
    """

    part: str
    whole: str
    printed: str = ""
    most: int | None = None


RATIOS = (
    Ratio("TcpBandwidth.throughput", "TcpBandwidth.most_possible", "TcpBandwidth.share_of_max"),
    Ratio("Netperf.throughput", "TcpBandwidth.most_possible", "TcpBandwidth.share_of_max"),
    Ratio("TcpBandwidth.throughput", "", "TcpBandwidth.throughput_bytes"),
    Ratio("Netperf.throughput", "", "TcpBandwidth.throughput_bytes"),
    Ratio("RandomIo.read", "BlockStorage.read", "RandomIo.read_ratio"),
    Ratio("RandomIo.write", "BlockStorage.write", "RandomIo.write_ratio"),
    Ratio("Ior.read_max", "Ior.read_max_tasks"),
    Ratio("Ior.write_max", "Ior.write_max_tasks"),
    # A curve cannot become flat beyond its own maximum.
    Ratio("Ior.read_plateau", "Ior.read_max_tasks", most=1),
    Ratio("Ior.write_plateau", "Ior.write_max_tasks", most=1),
)
# Metrics that repeat another value, and so are not compared once more.
RESTATED = {ratio.printed for ratio in RATIOS if ratio.printed} | {"TcpBandwidth.most_possible"}
OF_LINK = {  # published metric: the metric under which a source prints its share of the link
    "TcpBandwidth.aggregate": "TcpBandwidth.efficiency",
    "TcpBandwidth.best": "TcpBandwidth.share_of_link",
}

Key = tuple[str, ...]
ByMetric = dict[str, list[Sample]]


def table(site: Site, samples: Sequence[Sample]) -> Table | None:
    """Every ratio whose parts are published together."""
    rows = [*_rows(samples), *_of_links(site, samples)]
    wrong = sum(row[-1] not in ("", AGREES) for row in rows)
    note = (
        f"{wrong} of {len(rows)} contradict what is printed. "
        "Worked out of the printed digits; a ratio of rounded values may be another."
    )
    return Table("Ratios, worked out and as printed", COLUMNS, rows, note) if rows else None


def _rows(samples: Sequence[Sample]) -> Iterator[tuple[str, ...]]:
    for together in _together(samples).values():
        for ratio in RATIOS:
            for part, whole, printed in _lines(ratio, together, samples):
                yield _row(ratio, part, whole, printed)


def _together(samples: Iterable[Sample]) -> dict[Key, ByMetric]:
    """The numbers of one date, campaign, place and tool, by metric and in order of their trials."""
    found: dict[Key, ByMetric] = {}
    for sample in sorted(filter(is_number, samples), key=lambda s: s.trial):
        program = sample.own_conditions.get(PROGRAM, "") if sample.node else ""
        key = (when(sample), sample.header.campaign, pair(sample), program)
        found.setdefault(key, {}).setdefault(sample.metric, []).append(sample)
    return found


def _lines(
    ratio: Ratio, together: ByMetric, samples: Sequence[Sample]
) -> Iterator[tuple[Sample, Sample | None, Sample | None]]:
    """Part, whole and printed ratio, line by line."""
    parts = [s for s in together.get(ratio.part, ()) if is_exact(s)]
    wholes = [s for s in together.get(ratio.whole, ()) if is_exact(s)]
    printed = together.get(ratio.printed, [])
    if not printed and ratio.printed and not (parts and parts[0].node):
        # A text may print it under another campaign than the table of its parts.
        printed = [s for s in samples if s.metric == ratio.printed and not s.node]
    for part, whole, text in zip_longest(parts, wholes, printed[: len(parts)]):
        if part and (whole if ratio.whole else text):
            yield part, whole, text


def _row(
    ratio: Ratio, part: Sample, whole: Sample | None, printed: Sample | None
) -> tuple[str, ...]:
    value, unit = _value(part, whole, printed)
    remark = ""
    if printed and is_exact(printed) and unit == printed.unit:
        step = Fraction(10) ** int(printed.number.as_tuple().exponent)  # the printed digits
        agrees = round_to(value, step) == Fraction(printed.number)
        remark = AGREES if agrees else f"differs from {shown(printed)}"
    if ratio.most is not None and value > ratio.most:
        remark = f"{part.value} is beyond {whole.value if whole else ratio.most}"
    digits = 3 if " " in unit else 4
    return (
        f"{when(part)} {part.header.campaign}".strip(),
        pair(part),
        f"{ratio.part} / {ratio.whole}" if ratio.whole else f"{ratio.part} in {unit}",
        f"{shown(part)} / {shown(whole)}" if whole else shown(part),
        unit if unit == NO_SHARE else f"{number(value, digits)} {unit}",
        shown(printed) if printed else "",
        remark,
    )


def _value(part: Sample, whole: Sample | None, printed: Sample | None) -> tuple[Fraction, str]:
    """The ratio and its unit; of no whole the part in the unit of the printed value."""
    value, unit = Fraction(part.number), part.unit
    if whole is None:
        assert printed is not None
        return convert(value, unit, printed.unit), printed.unit
    if not whole.number:
        return Fraction(0), NO_SHARE
    if units.kind(unit) != units.kind(whole.unit):
        return value / Fraction(whole.number), f"{unit} for each of {whole.value}"
    ratio = convert(value, unit, whole.unit) / Fraction(whole.number)
    share_unit = printed.unit if printed else "x"
    return convert(ratio, "x", share_unit), share_unit


def _of_links(site: Site, samples: Sequence[Sample]) -> Iterator[tuple[str, ...]]:
    """What is carried over a link, of its speed and of what TCP can carry at its MTU."""
    for sample in samples:
        known = site.system.links.get(link(sample))
        if sample.metric not in OF_LINK or not is_exact(sample) or known is None or not known.speed:
            continue
        printed = [
            s
            for s in samples
            if s.metric == OF_LINK[sample.metric] and link(s) == link(sample) and s is not sample
        ]
        wire = known.speed.to("Mb/s")
        limits = [("the link", str(known.speed), wire)]
        if known.mtu:
            most = goodput(wire, known.mtu)
            limits.append(("what TCP can carry", f"{number(most / 1000)} Gb/s", most))
        value = convert(sample.number, sample.unit, "Mb/s")
        for what, limit, most in limits:
            yield (
                f"{when(sample)} {sample.header.campaign}".strip(),
                link(sample),
                f"{sample.metric} / {what}",
                f"{shown(sample)} / {limit}",
                share(value, most),
                shown(printed[0]) if printed else "",
                "",
            )


NO_SHARE = "none, as it is of zero"
SEVERAL = 2  # from this ratio on "3 times" reads better than "300 %"


class Table(NamedTuple):
    """One table. Each cell is a text; values carry their unit there or in the column's name."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str


def is_number(sample: Sample) -> bool:
    """Whether it is a number that can be compared."""
    return sample.status == "ok" and units.kind(sample.unit) != "text"


def is_exact(sample: Sample) -> bool:
    """Whether it is a number and neither a bound nor an end of a range."""
    return is_number(sample) and site_tables.STATED not in sample.own_conditions


def shown(sample: Sample) -> str:
    """The value as printed, with its unit; of a failure why there is none."""
    if sample.status != "ok":
        return sample.why or sample.status
    if units.kind(sample.unit) == "text":
        return str(sample.value)
    sign = site_tables.sign(sample.own_conditions.get(site_tables.STATED, ""))
    return units.with_unit(f"{sign}{sample.value}", sample.unit)


def shown_all(samples: Sequence[Sample]) -> str:
    """Several values, the two ends of a range as one."""
    ends = [sample.own_conditions.get(site_tables.STATED, "") for sample in samples]
    if ends == [site_tables.LOW, site_tables.HIGH]:
        return f"{samples[0].value} {shown(samples[1])}"
    return ", ".join(shown(sample) for sample in samples)


def when(sample: Sample) -> str:
    """The date as the source gives it."""
    return sample.header.provenance.get("date", sample.header.time[:10])


def statistic(sample: Sample) -> str:
    """What the value is of the values that it summarises: mean, maximum, one value."""
    return sample.own_conditions.get(PUBLISHED, "")


def pair(sample: Sample) -> str:
    """Sender and receiver, or the one node; empty: no single node's."""
    return " > ".join(filter(None, (sample.node, sample.dims.get(PEER, ""))))


def name(sample: Sample, without: Iterable[str] = ()) -> str:
    """The metric, with the place and the conditions that distinguish it in a table."""
    omitted = (PUBLISHED, site_tables.STATED, PROGRAM, PEER, *without)
    conditions = {**sample.dims, **sample.own_conditions}
    parts = [pair(sample)] if sample.node and PEER not in without else []
    parts += [f"{key} {text}" for key, text in conditions.items() if key not in omitted]
    return f"{sample.metric} ({', '.join(parts)})" if parts else sample.metric


def link(sample: Sample) -> str:
    """The link that it was measured over, as a whole or from one node to another."""
    return sample.dims.get(LINK) or sample.own_conditions.get(LINK, "")


def number(value: Fraction | float, digits: int = 4) -> str:
    """A value that was worked out, with so many significant digits."""
    text = f"{float(value):.{digits}g}"
    return f"{float(value):.0f}" if "e" in text else text


def share(part: Number, whole: Number, places: int = 1) -> str:
    """A ratio in per cent, rounded half up, or as `3 times`; of nothing there is none."""
    if not whole:
        return NO_SHARE
    ratio = Fraction(part) / Fraction(whole)
    if ratio >= SEVERAL:
        return f"{number(ratio)} times"
    rounded = round_to(100 * ratio, Fraction(1, 10**places))
    return f"{float(rounded):.{places}f} %"


Side = tuple[object, ...]
Sides = dict[str, list[Sample]]  # the samples by the value in which they differ
DIFFERENCES = ("differ in", "date", "metric", "one", "other", "other of one", "by the means")
FILE_SYSTEM = "file_system"
RANK = "rank"
TRIALS = "TcpBandwidth.throughput"
WORKED_OUT = "worked out of"
LAN, WAN = "lan", "wan"
RETENTION = ".retention"
DIGITS = Decimal("0.0001")


def differences(site: Site, samples: Iterable[Sample]) -> Table | None:
    """Each pair of values that differ in one thing; several trials by their median and mean."""
    exact = [s for s in samples if is_exact(s) and s.metric not in RESTATED]
    rows: list[tuple[str, ...]] = []
    for what, split, without in SPLITS:
        for sides in groups(exact, split):
            order = list(site.system.links) if split is _by_link else []
            rows += _difference_rows(what, sides, without, order)
    note = "Medians where a source prints several trials; one value on each side shows no noise."
    return Table("Values that differ in one thing", DIFFERENCES, rows, note) if rows else None


def groups(
    samples: Iterable[Sample], split: Callable[[Sample], tuple[str, Side] | None]
) -> list[Sides]:
    """Samples that agree in their key, by their side; only groups of several sides."""
    found: dict[Side, Sides] = {}
    for sample in samples:
        place = split(sample)
        if place is not None:
            side, key = place
            found.setdefault(key, {}).setdefault(side, []).append(sample)
    return [sides for sides in found.values() if len(sides) > 1]


def by_network(sample: Sample) -> tuple[str, Side] | None:
    """LAN and WAN, whose links and file systems differ with them."""
    network = sample.own_conditions.get(NETWORK, "")
    if not network:
        return None
    return network, (sample.metric, sample.header.time, _rest(sample, *PLACES))


def _by_link(sample: Sample) -> tuple[str, Side] | None:
    over = link(sample)
    if not over or NETWORK in sample.own_conditions:
        return None
    return over, (sample.metric, sample.header.time, _rest(sample, LINK))


def _by_tool(sample: Sample) -> tuple[str, Side] | None:
    """Each tool has a metric of its own: TcpBandwidth.throughput and Netperf.throughput."""
    if PEER not in sample.dims or PROGRAM not in sample.own_conditions:
        return None
    quantity = sample.metric.partition(".")[2]
    key = (quantity, sample.header.time, sample.node, sample.dims[PEER])
    return sample.own_conditions[PROGRAM], key


def _by_direction(sample: Sample) -> tuple[str, Side] | None:
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


def _rest(sample: Sample, *without: str) -> Side:
    """Every other condition and dimension."""
    conditions = {**sample.dims, **sample.own_conditions}
    return tuple(sorted((k, v) for k, v in conditions.items() if k not in without))


def _difference_rows(
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
