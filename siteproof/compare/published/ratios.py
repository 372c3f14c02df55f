"""Ratios of published values, worked out and compared with what the source itself prints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import zip_longest
from typing import NamedTuple

from siteproof import units
from siteproof.collect.derive.network import goodput
from siteproof.compare.published.table_cells import (
    NO_SHARE,
    Table,
    is_exact,
    is_number,
    link,
    number,
    pair,
    share,
    shown,
    when,
)
from siteproof.record.samples import Sample
from siteproof.sites import Site
from siteproof.sites.published_csv import PROGRAM
from siteproof.units import convert, round_to

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
