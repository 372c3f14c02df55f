"""Published rates between two hosts: shares of the maximum, directions, tools."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import zip_longest
from statistics import median
from typing import NamedTuple

from siteproof.published.figures import Stated, change, figure, is_exact, number, share, when
from siteproof.record.pair_units import PEER
from siteproof.record.samples import Sample
from siteproof.rounding import round_to
from siteproof.sites import Site
from siteproof.units import convert

RATE, IN_BYTES, MOST, SHARE = "throughput", "throughput_bytes", "most_possible", "share_of_max"


class Row(NamedTuple):
    """One line of a table of pairs, as printed; what is not printed is None."""

    date: str
    node: str
    peer: str
    program: str
    rate: Sample
    in_bytes: Sample | None
    most: Sample | None
    share: Sample | None

    @property
    def percent(self) -> Fraction | None:
        """The rate as a share of the maximum, worked out of the bits."""
        if self.most is None or not self.most.number:
            return None
        most = convert(self.most.number, self.most.unit, self.rate.unit)
        return 100 * Fraction(self.rate.number) / most

    @property
    def mistakes(self) -> list[str]:
        """What the line prints and does not follow from its own rate."""
        told = []
        if self.share and self.percent is not None and not _printed(self.percent, self.share):
            told.append(f"{number(self.percent)} %, and not {self.share.value} %")
        if self.in_bytes:
            exact = convert(self.rate.number, self.rate.unit, self.in_bytes.unit)
            if not _printed(exact, self.in_bytes):
                told.append(f"{number(exact)} {self.in_bytes.unit}, and not {self.in_bytes.value}")
        return told


def _printed(exact: Fraction, sample: Sample) -> bool:
    """Whether a figure is what is printed, rounded half up to the printed digits."""
    step = Fraction(10) ** int(sample.number.as_tuple().exponent)
    return round_to(exact, step) == Fraction(sample.number)


def rows(samples: Iterable[Sample]) -> list[Row]:
    """The lines of all tables of pairs, in the order in which they were printed."""
    lines: dict[tuple[str, str, str, str], dict[str, list[Sample]]] = {}
    for sample in samples:
        kind = sample.metric.partition(".")[2]
        if PEER in sample.dims and is_exact(sample) and kind in (RATE, IN_BYTES, MOST, SHARE):
            key = (
                when(sample),
                sample.node,
                sample.dims[PEER],
                sample.own_conditions.get("program", ""),
            )
            lines.setdefault(key, {}).setdefault(kind, []).append(sample)
    return [
        Row(*key, *parts)
        for key, held in lines.items()
        for parts in zip_longest(
            *(
                sorted(held.get(kind, []), key=lambda s: s.trial)
                for kind in (RATE, IN_BYTES, MOST, SHARE)
            )
        )
        if parts[0] is not None
    ]


def shares(found: Sequence[Row]) -> Stated | None:
    """Each line with its share of the maximum worked out beside the printed one."""
    told = [
        (
            r.date,
            r.node,
            r.peer,
            r.program,
            figure(r.rate),
            *(figure(one) if one else "" for one in (r.in_bytes, r.share)),
            "" if r.percent is None else f"{number(r.percent)} %",
            "; ".join(r.mistakes) or "agrees",
        )
        for r in found
    ]
    wrong = sum(bool(r.mistakes) for r in found)
    note = (
        f"{len(found)} lines; {wrong} of them print a share or a rate in bytes that does not "
        "follow from the rate in bits. A share of the rounded bytes would be another."
    )
    columns = (
        "date",
        "from",
        "to",
        "tool",
        "rate",
        "in bytes",
        "printed share",
        "worked out",
        "line",
    )
    return (
        Stated("Rates between two hosts, and their share of the maximum", columns, told, note)
        if told
        else None
    )


def _by_pair(found: Iterable[Row]) -> dict[tuple[str, str, str, str], Fraction]:
    """The median of each day, direction and tool, in Mb/s."""
    each: dict[tuple[str, str, str, str], list[Fraction]] = {}
    for row in found:
        each.setdefault((row.date, row.node, row.peer, row.program), []).append(
            convert(row.rate.number, row.rate.unit, "Mb/s")
        )
    return {key: median(values) for key, values in each.items()}


def matrix(found: Sequence[Row]) -> Stated | None:
    """Who sent to whom: the median of all lines in Mb/s, whatever the day and the tool."""
    each: dict[tuple[str, str], list[Fraction]] = {}
    for row in found:
        each.setdefault((row.node, row.peer), []).append(
            convert(row.rate.number, row.rate.unit, "Mb/s")
        )
    senders, receivers = (sorted({pair[end] for pair in each}) for end in (0, 1))
    cells = [
        (a, *(number(median(each[a, b])) if (a, b) in each else "" for b in receivers))
        for a in senders
    ]
    return (
        Stated(
            "Matrix of pairs, Mb/s",
            ("from \\ to", *receivers),
            cells,
            "Medians of all published lines of a direction; an empty cell was not published.",
        )
        if cells
        else None
    )


def asymmetry(found: Sequence[Row]) -> Stated | None:
    """Both directions of a pair on one day with one tool."""
    medians = _by_pair(found)
    told = []
    for (day, a, b, tool), there in medians.items():
        back = medians.get((day, b, a, tool))
        if back is not None and (a < b):
            slower, faster = sorted((there, back))
            told.append(
                (
                    day,
                    f"{a} > {b}",
                    tool,
                    f"{number(there)} Mb/s",
                    f"{number(back)} Mb/s",
                    share(slower, faster),
                )
            )
    return (
        Stated(
            "Both directions of a pair",
            ("date", "pair", "tool", "there", "back", "slower of faster"),
            told,
            "Medians where a day has several lines.",
        )
        if told
        else None
    )


def directions(site: Site, found: Sequence[Row]) -> Stated | None:
    """All lines from the nodes of one role to those of another."""
    each: dict[tuple[str, str], list[Fraction]] = {}
    for row in found:
        roles = site.role_of(row.node) or "", site.role_of(row.peer) or ""
        each.setdefault(roles, []).append(convert(row.rate.number, row.rate.unit, "Mb/s"))
    told = [
        (a, b, str(len(v)), *(f"{number(x, 5)} Mb/s" for x in (min(v), median(v), max(v))))
        for (a, b), v in each.items()
        if (b, a) in each and a != b
    ]
    return (
        Stated(
            "Directions between two roles",
            ("from", "to", "lines", "lowest", "median", "highest"),
            told,
            "",
        )
        if told
        else None
    )


def tools(found: Sequence[Row]) -> Stated | None:
    """Two tools on one direction of one day."""
    told = list(_disagree(_by_pair(found)))
    return (
        Stated(
            "Two tools on one pair and day",
            ("date", "from", "to", "one", "other", "difference"),
            told,
            "Medians where a day has several lines; the tools ran one after the other.",
        )
        if told
        else None
    )


def _disagree(medians: dict[tuple[str, str, str, str], Fraction]) -> Iterator[tuple[str, ...]]:
    for (day, a, b, tool), one in medians.items():
        for (*where, name), other in medians.items():
            if where == [day, a, b] and tool < name:
                yield (
                    day,
                    a,
                    b,
                    f"{tool} {number(one)} Mb/s",
                    f"{name} {number(other)} Mb/s",
                    change(one, other),
                )
