"""Availability by its four definitions, and the mean time between failures, from intervals of time.

With T the measured time, SDT the down time within planned windows, and UDT all other down time:
overall (T - SDT - UDT) / T; scheduled (T - SDT - UDT) / (T - SDT). Node-weighted: sums over all
nodes, so that one node of 320 counts 1/320. System-level: of the system as a whole. A time that
was not measured is in none of them.

Times are whole seconds since 1970 (UTC), so that no clock change matters. `Spans` are half-open
intervals [begin, end), in order, none empty, none touching the next one. Every function gives such
spans.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

Span = tuple[int, int]
Spans = tuple[Span, ...]


def union(*parts: Iterable[Span]) -> Spans:
    """The times in any of them. The spans may overlap, and have any order; empty ones are none."""
    found: list[Span] = []
    for begin, end in sorted(span for part in parts for span in part):
        if begin >= end:
            continue
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((begin, end))
    return tuple(found)


def intersect(one: Spans, other: Spans) -> Spans:
    """The times in both."""
    found, i, k = [], 0, 0
    while i < len(one) and k < len(other):
        begin, end = max(one[i][0], other[k][0]), min(one[i][1], other[k][1])
        if begin < end:
            found.append((begin, end))
        if one[i][1] < other[k][1]:
            i += 1
        else:
            k += 1
    return tuple(found)


def subtract(one: Spans, other: Spans) -> Spans:
    """The times in the first and not in the second."""
    if not one or not other:
        return one
    around = (one[0][0], one[-1][1])
    return intersect(one, complement(other, around))


def complement(spans: Spans, within: Span) -> Spans:
    """The times of a period in none of the spans."""
    found, begin = [], within[0]
    for first, last in intersect(spans, union([within])):
        if begin < first:
            found.append((begin, first))
        begin = last
    if begin < within[1]:
        found.append((begin, within[1]))
    return tuple(found)


def in_at_least(parts: Iterable[Spans], count: int) -> Spans:
    """The times in at least so many of them; none where that is none of them."""
    spans = [span for part in parts for span in part]
    ends = [(begin, 1) for begin, _ in spans] + [(end, -1) for _, end in spans]
    found: list[Span] = []
    inside, begin = 0, 0
    for at, step in sorted(ends):
        if inside < count <= inside + step:
            begin = at
        elif inside + step < count <= inside:
            found.append((begin, at))
        inside += step
    return union(found)


def seconds(spans: Spans) -> int:
    """How long they are together."""
    return sum(end - begin for begin, end in spans)


CONFIDENCE = 0.90  # of the lower bound of the mean time between failures


@dataclass(frozen=True)
class Uptime:
    """What is known of one subject. known: when it was measured; the rest is not known.

    scheduled, unscheduled: when it was down, within planned windows and outside of them.
    """

    known: Spans
    scheduled: Spans = ()
    unscheduled: Spans = ()

    @cached_property
    def down(self) -> Spans:
        """When it was down."""
        return union(self.scheduled, self.unscheduled)

    @cached_property
    def up(self) -> Spans:
        """When it was up."""
        return subtract(self.known, self.down)

    def within(self, spans: Spans) -> Uptime:
        """The same, of these times alone."""
        parts = (self.known, self.scheduled, self.unscheduled)
        return Uptime(*(intersect(part, spans) for part in parts))

    def missing(self, period: Span) -> Spans:
        """The times of the period that were not measured."""
        return complement(self.known, period)

    @cached_property
    def outages(self) -> Spans:
        """Unscheduled outages with some up time between two of them.

        What is not known between two outages separates them no more than a planned window does.
        """
        found: list[Span] = []
        for begin, end in self.unscheduled:
            if found and not intersect(self.up, ((found[-1][1], begin),)):
                found[-1] = found[-1][0], end
            else:
                found.append((begin, end))
        return tuple(found)


def uptime(known: Spans, down: Spans, planned: Spans) -> Uptime:
    """What is known of a subject. planned: its announced windows. Down times are known times."""
    whole = union(known, down)
    return Uptime(whole, intersect(down, planned), subtract(down, planned))


def needs(parts: Sequence[Uptime], count: int) -> Uptime:
    """Of something that is up while so many of its parts are.

    It is known to be up as soon as so many are, and known to be down as soon as too many are not.
    It is down as planned only while all parts that are down are.
    """
    up = in_at_least([part.up for part in parts], count)
    down = in_at_least([part.down for part in parts], len(parts) - count + 1)
    unscheduled = intersect(down, union(*(part.unscheduled for part in parts)))
    return Uptime(union(up, down), subtract(down, unscheduled), unscheduled)


def overall(parts: Iterable[Uptime]) -> Fraction | None:
    """Share of the measured time in which they were up: (T - SDT - UDT) / T; None without any."""
    found = [(seconds(part.up), seconds(part.known)) for part in parts]
    known = sum(one for _, one in found)
    return Fraction(sum(up for up, _ in found), known) if known else None


def scheduled(parts: Iterable[Uptime]) -> Fraction | None:
    """The same without planned down time: (T - SDT - UDT) / (T - SDT); None without any time."""
    return overall(
        replace(part, known=subtract(part.known, part.scheduled), scheduled=()) for part in parts
    )


@dataclass(frozen=True)
class Definitions:
    """The four shares; None where nothing was measured."""

    system_overall: Fraction | None
    system_scheduled: Fraction | None
    node_overall: Fraction | None
    node_scheduled: Fraction | None


def definitions(system: Uptime | None, nodes: Sequence[Uptime]) -> Definitions:
    """All four. system: as a whole. nodes: each node."""
    whole = [system] if system else []
    return Definitions(overall(whole), scheduled(whole), overall(nodes), scheduled(nodes))


@dataclass(frozen=True)
class Mtbf:
    """Mean time between failures, in hours. mean: None without a failure. bound: see `mtbf`."""

    failures: int
    mean: float | None
    bound: float | None


def mtbf(part: Uptime) -> Mtbf:
    """The mean up time between outages."""
    return between(seconds(part.up) / 3600, len(part.outages))


def between(hours: float, failures: int) -> Mtbf:
    """Hours divided by failures, and the lower bound of the mean at a confidence of 90 %.

    The bound is 2 T / chi2(0.90; 2 r + 2), for r failures in T hours, a period that
    ends by its time and not by a failure, and failures at a constant rate (NIST/SEMATECH e-Handbook
    of Statistical Methods, 8.4.5.1). Without a failure it is T / ln 10: 146 h for 14 days.
    """
    from scipy.special import chdtri  # half a second, which other commands need not wait for

    if not hours:
        return Mtbf(failures, None, None)
    bound = 2 * hours / float(chdtri(2 * failures + 2, 1 - CONFIDENCE))
    return Mtbf(failures, hours / failures if failures else None, bound)


def gap(system: Uptime, gateway: Uptime) -> Fraction | None:
    """By how many percentage points a gateway is less available than the system.

    Both by the overall definition, and over the time in which both were measured.
    """
    both = intersect(system.known, gateway.known)
    here, there = overall([system.within(both)]), overall([gateway.within(both)])
    return None if here is None or there is None else 100 * (here - there)
