"""What a long way keeps of a short one: published figures of LAN and WAN, line by line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction

from siteproof.published.figures import (
    NO_SHARE,
    Stated,
    figure,
    is_exact,
    link,
    number,
    share,
    statistic,
)
from siteproof.record.pair_units import LINK
from siteproof.record.samples import Sample
from siteproof.sites import Criterion, Site
from siteproof.sites.promise import SIGNS
from siteproof.sites.published_csv import NETWORK, PROGRAM
from siteproof.units import convert

LAN, WAN = "lan", "wan"
PLACES = (LINK, "file_system", NETWORK)  # what tells the two ends of a comparison apart
RETENTION = ".retention"
EACH = "applications"  # over how many a rate is spread
ALIASES = {"tasks": "clients"}  # one task a client


def pairs(samples: Iterable[Sample]) -> list[tuple[Sample, Sample]]:
    """Each figure of the LAN with the figure of the WAN that differs in nothing else."""
    ways: dict[str, dict[tuple[object, ...], Sample]] = {LAN: {}, WAN: {}}
    for sample in samples:
        way = sample.own_conditions.get(NETWORK, "")
        if way in ways and is_exact(sample):
            ways[way].setdefault(_key(sample), sample)
    return [(near, ways[WAN][key]) for key, near in ways[LAN].items() if key in ways[WAN]]


def _key(sample: Sample) -> tuple[object, ...]:
    kept = {k: v for k, v in sample.own_conditions.items() if k not in PLACES}
    return sample.metric, sample.header.time, tuple(sorted(kept.items()))


def table(site: Site, samples: Iterable[Sample]) -> Stated | None:
    """LAN, WAN and what is kept of the rate; of a time how many times longer it is."""
    rows = []
    for near, far in pairs(samples):
        metric = site.catalogue.get(near.metric)
        if not near.number:
            rows.append((_name(near), figure(near), figure(far), NO_SHARE, statistic(near), ""))
            continue
        ratio = convert(far.number, far.unit, near.unit) / Fraction(near.number)
        if metric and metric.better == "lower":
            rows.append(
                (_name(near), figure(near), figure(far), f"{number(ratio)} times as long", "", "")
            )
            continue
        promised = "; ".join(_promises(site, near, ratio))
        rows.append(
            (
                _name(near),
                figure(near),
                figure(far),
                share(ratio, Fraction(1)),
                statistic(near),
                promised,
            )
        )
    if not rows:
        return None
    return Stated(
        "LAN and WAN: what is kept",
        ("metric", "lan", "wan", "wan of lan", "it is a", "criterion"),
        rows,
        "Worked out of the printed figures of one line; lines differ in clients and "
        "servers, so no line is a share of another.",
    )


def _name(sample: Sample) -> str:
    aside = (*PLACES, PROGRAM, "published")
    told = ", ".join(f"{k} {v}" for k, v in sample.own_conditions.items() if k not in aside)
    return f"{sample.metric} ({told})" if told else sample.metric


def _promises(site: Site, near: Sample, ratio: Fraction) -> Iterator[str]:
    """The criteria on what is kept of this figure, and whether the published ones keep them."""
    for key, criterion in site.criteria.items():
        if criterion.bound and _speaks(criterion, near):
            kept = criterion.met(ratio, "x")
            sign = SIGNS[criterion.kind]
            rounds = f", {criterion.rounding_rule}" if criterion.step else ""
            yield f"{key} {sign} {criterion.bound}{rounds}: {'keeps' if kept else 'misses'}"


def _speaks(criterion: Criterion, near: Sample) -> bool:
    check, _, figure_name = near.metric.partition(".")
    if not criterion.metric.endswith(RETENTION) or not check.startswith(
        criterion.metric.removesuffix(RETENTION)
    ):
        return False
    if criterion.links and not (link(near) and "together" in link(near)):
        return False
    have = {"figure": figure_name, **near.own_conditions}
    rules = {ALIASES.get(k, k): r for k, r in criterion.conditions.items() if k != "mode"}
    return all(k in have and rule.met_by(have[k]) for k, rule in rules.items())


def of_link(site: Site, samples: Iterable[Sample]) -> Stated | None:
    """What all pairs carry as a share of their link, and what each of several applications has."""
    rows = []
    for sample in samples:
        speed = site.system.links[link(sample)].speed if link(sample) in site.system.links else None
        if sample.metric == "TcpBandwidth.aggregate" and speed and is_exact(sample):
            rows.append(
                (
                    sample.metric,
                    link(sample),
                    figure(sample),
                    f"{share(convert(sample.number, sample.unit, speed.unit), speed.value)} "
                    f"of {speed}",
                )
            )
        many = sample.own_conditions.get(EACH, "")
        if (
            sample.metric.startswith("Workload.")
            and many.isdigit()
            and is_exact(sample)
            and (int(many) > 1 and sample.unit.endswith("B/s"))
        ):
            each = convert(sample.number, sample.unit, "Gb/s") / int(many)
            rows.append(
                (
                    sample.metric,
                    sample.own_conditions.get("file_system", ""),
                    figure(sample),
                    f"{number(each, 3)} Gb/s for each of {many}",
                )
            )
    if not rows:
        return None
    return Stated(
        "Shares: of the link, and of each application",
        ("metric", "over", "figure", "worked out"),
        rows,
        "",
    )
