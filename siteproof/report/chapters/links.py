"""The near network beside the far one: what of each quantity is left over a wide-area link."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import median

from siteproof import units
from siteproof.figure import labels
from siteproof.figure import ranges as drawn
from siteproof.figure.ranges import Beside, Pairs
from siteproof.record.pair_units import LINK, of_pairs
from siteproof.record.samples import PUBLISHED, Sample
from siteproof.report.chapters import matrix
from siteproof.report.material import Material
from siteproof.report.phrases import count
from siteproof.report.sections import Figure, Section, Table
from siteproof.sites import Site

FAR = "1 ms"  # a round trip from which on a link leaves the campus: light comes 100 km far
NETWORK, LAN, WAN = "network", "lan", "wan"  # a condition of published figures
ENDS = (NETWORK, LINK, "file_system", PUBLISHED)  # what differs between a line's two columns
COLUMNS = ("quantity", "LAN", "WAN", "left over the WAN", "of what")


@dataclass(frozen=True)
class Quantity:
    """One quantity on both. better: higher or lower; source: of what the figures are."""

    name: str
    better: str
    unit: str
    lan: float
    wan: float
    source: str
    texts: tuple[str, str] = ("", "")

    @property
    def retention(self) -> float:
        """What is left of a rate; of a time, how many times as long it takes."""
        return self.wan / self.lan if self.lan else float("nan")


def chapter(material: Material) -> Section | None:
    """LAN and WAN side by side: measured, and as others have published it."""
    parts = [
        ("measured", "Measured", list(_measured(material))),
        ("published", "Published", list(_published(material))),
    ]
    figures = [_figure(slug, word, found) for slug, word, found in parts if found]
    if not figures:
        return None
    least = min(
        (q for *_, found in parts for q in found if q.better == "higher" and q.lan),
        key=lambda q: q.retention,
        default=None,
    )
    total = sum(len(found) for *_, found in parts)
    lead = f"{count(total, 'quantity', 'quantities')} over LAN and WAN" + (
        f"; least is left of {least.name}: {_per_cent(least)}." if least else "."
    )
    return Section("links", "LAN and WAN", lead, figures=figures)


def is_far(site: Site, name: str) -> bool | None:
    """Whether a link is a wide-area one, by its round trip; None for an unknown one."""
    link = site.system.links.get(name)
    if link is None:
        return None
    return link.round_trip is not None and units.parse(link.round_trip).to("ms") >= units.parse(
        FAR
    ).to("ms")


def _measured(material: Material) -> Iterator[Quantity]:
    """Medians over the pairs of all near and all far links, of links with the same pattern."""
    site = material.site
    if not any(of_pairs(s) and s.header.mode != PUBLISHED for s in material.judged.samples):
        return
    held: dict[tuple[str, str], dict[bool, list[float]]] = {}
    entries = {}
    for one in material.once(matrix.of_all):
        far = is_far(site, one.link)
        if far is None or one.better == "neither" or not one.values:
            continue
        pattern = site.system.links[one.link].pattern
        held.setdefault((one.name, pattern), {}).setdefault(far, []).extend(one.values.values())
        entries[one.name] = one
    for (name, pattern), sides in held.items():
        if len(sides) == 2 and min(median(v) for v in sides.values()) > 0:
            one = entries[name]
            more = ", all pairs at once" if pattern == "together" else ""
            pairs = " and ".join(
                f"{len(sides[far])} {word}" for far, word in ((False, "near"), (True, "far"))
            )
            told = name.replace(" [", ", ").removesuffix("]")
            yield Quantity(
                told + more,
                one.better,
                one.unit,
                median(sides[False]),
                median(sides[True]),
                f"medians of {pairs} pairs",
            )


def _published(material: Material) -> Iterator[Quantity]:
    """Figures that differ in their network only, as printed."""
    site = material.site
    held: dict[tuple[str, str, tuple[tuple[str, str], ...]], dict[str, Sample]] = {}
    for sample in material.sessions.of(lambda head: head.mode == PUBLISHED):
        told = sample.conditions
        if sample.status != "ok" or told.get(NETWORK) not in (LAN, WAN):
            continue
        rest = tuple(sorted((k, v) for k, v in told.items() if k not in (*ENDS, "mode")))
        key = (sample.metric, sample.header.session, rest)
        held.setdefault(key, {})[told[NETWORK]] = sample
    for (metric, _, rest), sides in held.items():
        if sides.keys() != {LAN, WAN} or units.kind(sides[LAN].unit) == "text":
            continue
        lan, wan = sides[LAN], sides[WAN]
        name = f"{metric}{_told(rest)}"
        one, other = (
            float(units.convert(Fraction(s.number), s.unit, lan.unit)) for s in (lan, wan)
        )
        better = site.catalogue[metric].better if metric in site.catalogue else "neither"
        if better == "neither":
            continue  # nothing is left of it, or lost
        what = lan.own_conditions.get(PUBLISHED, "") or lan.conditions.get(PUBLISHED, "")
        source = f"{what}, {lan.conditions.get('source', '')}".strip(", ")
        yield Quantity(
            name,
            better,
            lan.unit,
            one,
            other,
            source,
            (f"{lan.value} {lan.unit}", f"{wan.value} {wan.unit}"),
        )


def _told(rest: Iterable[tuple[str, str]]) -> str:
    """The conditions that tell two quantities of a metric from each other: numbers of something."""
    parts = [
        f"{v} {k.replace('_', ' ') if v != '1' else k.removesuffix('s')}"
        for k, v in rest
        if v.isdigit()
    ]
    return f", {', '.join(parts)}" if parts else ""


def _figure(slug: str, word: str, found: Sequence[Quantity]) -> Figure:
    rates = [q for q in found if q.better == "higher" and q.lan]
    title = f"{word}: what is left over the WAN"
    says = _says(rates, [q for q in found if q.better == "lower" and q.lan])
    rows = [Beside(q.name.replace(", ", "\n", 1), q.retention, *_values(q)) for q in rates]
    name = f"links-{slug}"
    svg = drawn.draw_pairs(name, says, Pairs(title, ("LAN", "WAN"), rows))
    return Figure(
        name, title, svg, says, _table(found), sorted({re.split(r"[ ,]", q.name)[0] for q in found})
    )


def _values(one: Quantity) -> tuple[str, str]:
    if one.texts[0]:
        return one.texts
    return f"{labels.number(one.lan)} {one.unit}", f"{labels.number(one.wan)} {one.unit}"


def _says(rates: Sequence[Quantity], times: Sequence[Quantity]) -> str:
    parts = []
    if rates:
        low, high = (f(q.retention for q in rates) for f in (min, max))
        shares = f"{low:.0%}" if low == high else f"{low:.0%} to {high:.0%}"
        what = f"{rates[0].name}:" if len(rates) == 1 else count(len(rates), "rate")
        parts.append(
            f"of {what} {shares} of the LAN's {'is' if low == high else 'are'} left over the WAN"
        )
    parts += [f"{q.name} takes {q.retention:.3g} times as long" for q in times]
    told = "; ".join(parts) or "no figure over the LAN is more than zero"
    return told[0].upper() + told[1:].replace("%", " %") + "."


def _table(found: Sequence[Quantity]) -> Table:
    rows = [(q.name, *_values(q), _per_cent(q), q.source) for q in found]
    return Table(COLUMNS, rows, "Of a time, how many times as long it takes.", numeric=COLUMNS[1:4])


def _per_cent(one: Quantity) -> str:
    if not one.lan:
        return "-"
    if one.better == "lower":
        return f"{one.retention:.3g} times"
    return f"{one.retention:.1%}".replace("%", " %")
