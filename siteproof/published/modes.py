"""Published trials that are printed sorted: medians and means of each link, and their ratios."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from statistics import fmean, median, pstdev, stdev

from siteproof.derive.tcp_bandwidth import goodput
from siteproof.published.figures import Stated, figure, link, number, share, statistic
from siteproof.record.pair_units import LINK
from siteproof.record.samples import PUBLISHED, Sample
from siteproof.sites import Site
from siteproof.units import convert

RANK = "rank"
METRIC, CLAIM = "TcpBandwidth.throughput", "TcpBandwidth.share_of_link"
DERIVED = "worked out of the trials"


@dataclass(frozen=True)
class Mode:
    """All trials over one link, in Mb/s."""

    link: str
    values: Sequence[Fraction]
    sample: Sample  # any of them

    @property
    def mean(self) -> Fraction:
        """Mean of the trials."""
        return sum(self.values, Fraction(0)) / len(self.values)

    @property
    def median(self) -> Fraction:
        """Median of the trials."""
        return median(self.values)

    @property
    def variation(self) -> float:
        """Standard deviation of the trials as a part of their mean."""
        each = [float(value) for value in self.values]
        if not any(each):
            return 0.0
        return (stdev(each) if len(each) > 1 else pstdev(each)) / fmean(each)


def modes(site: Site, samples: Iterable[Sample]) -> list[Mode]:
    """The trials of each link, in the order of the site's links."""
    held: dict[str, list[Sample]] = {}
    for sample in samples:
        if sample.metric == METRIC and statistic(sample) == RANK:
            held.setdefault(link(sample), []).append(sample)
    return [
        Mode(name, sorted(convert(s.number, s.unit, "Mb/s") for s in held[name]), held[name][0])
        for name in site.system.links
        if name in held
    ]


def table(site: Site, found: Sequence[Mode], samples: Iterable[Sample]) -> Stated | None:
    """Each link beside the first one, by medians and by means, and what is claimed of it."""
    claims = {link(s): figure(s) for s in samples if s.metric == CLAIM}
    if not found:
        return None
    first = found[0]
    rows = []
    for mode in found:
        most = max(mode.values)
        rows.append(
            (
                mode.link,
                str(len(mode.values)),
                *(number(v, 6) for v in (min(mode.values), mode.median, mode.mean, most)),
                f"{100 * mode.variation:.1f} %",
                share(mode.median, first.median, 2),
                share(mode.mean, first.mean, 2),
                *_of_wire(site, mode.link, most),
                claims.get(mode.link, ""),
            )
        )
    columns = (
        "link",
        "trials",
        "lowest",
        "median",
        "mean",
        "highest",
        "variation",
        f"median of {first.link}'s",
        f"mean of {first.link}'s",
        "highest of wire speed",
        "highest of what TCP can carry",
        "claimed of wire speed",
    )
    return Stated(
        "Trials of each link, Mb/s",
        columns,
        rows,
        "The trials are printed sorted, so the order in which they ran is lost; a few "
        "slow ones pull a mean down and leave a median where it is.",
    )


def _of_wire(site: Site, name: str, most: Fraction) -> tuple[str, str]:
    known = site.system.links[name]
    if known.speed is None:
        return "", ""
    wire = known.speed.to("Mb/s")
    tcp = share(most, goodput(wire, known.mtu)) if known.mtu else ""
    return share(most, wire), tcp


def derived(found: Sequence[Mode]) -> list[Sample]:
    """Best, median, trials and share of the first link, as figures that criteria speak of."""
    told = []
    for mode in found:
        figures = [
            ("best", max(mode.values), "Mb/s"),
            ("median", mode.median, "Mb/s"),
            ("trials", Fraction(len(mode.values)), "count"),
        ]
        if found[0].median:
            figures.append(("share_of_native", mode.median / found[0].median, "x"))
        told += [_sample(mode, name, value, unit) for name, value, unit in figures]
    return told


def _sample(mode: Mode, name: str, value: Fraction, unit: str) -> Sample:
    places = Decimal("0.0001") if unit != "count" else Decimal(1)
    exact = Decimal(value.numerator) / Decimal(value.denominator)
    return replace(
        mode.sample,
        metric=f"TcpBandwidth.{name}",
        value=exact.quantize(places),
        unit=unit,
        trial=0,
        dims={LINK: mode.link},
        own_conditions={**mode.sample.own_conditions, PUBLISHED: DERIVED},
    )
