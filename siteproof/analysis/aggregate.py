"""What a link carries while all of its pairs run: the mean of their sum, the best second, fairness.

A tool prints in whole seconds when a run began (iperf3 3.12), so a pair's intervals may truly lie
up to UNKNOWN later than printed, each pair's by another part of it. Therefore a second at either
end of the time that all have in common does not count, and what counts was moved while all ran. It
also means that a "second" of two pairs may lie up to a second apart: the peak of rates that swing
faster than that is too high or too low. That the clients' clocks agree is assumed (NTP).

Fairness: Jain, Chiu and Hawe, A Quantitative Measure of Fairness and Discrimination for Resource
Allocation in Shared Computer Systems, DEC-TR-301 (1984): 1 if all are alike, 1/n if one has it all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from siteproof.errors import OutputError

if TYPE_CHECKING:
    from siteproof.parsers.iperf3 import Interval

UNKNOWN = 1  # seconds by which an interval may truly be later than printed
ENOUGH = Fraction(1, 2)  # of the shortest run: less in common is no measurement of all together
LONGEST = 86400  # seconds that any run may last
GAP = Fraction(1, 100)  # of a pair's time that its intervals may leave out


@dataclass(frozen=True)
class Together:
    """All pairs in the time that they share. seconds: its length; rates in b/s; fairness: to 1."""

    seconds: Fraction
    aggregate: Fraction
    peak_second: Fraction
    fairness: Fraction


def together(moved: Mapping[str, Sequence[Interval]]) -> Together:
    """All pairs together, from each pair's intervals. Raises OutputError.

    moved: by the pair's name; intervals in the order of time, by the client's clock.
    """
    runs = {name: _seconds(name, intervals) for name, intervals in moved.items()}
    begin = max(first for first, _ in runs.values()) + UNKNOWN
    end = min(last for _, last in runs.values()) - UNKNOWN
    shortest = min(last - first for first, last in runs.values())
    if end - begin < max(Fraction(1), ENOUGH * shortest):
        late = max(runs, key=lambda name: runs[name][0])
        raise OutputError(
            f"all {len(runs)} pairs ran together for {max(float(end - begin), 0):.1f} s of "
            f"{float(shortest):.1f} s only; the last to begin was {late}",
            "generic",
        )
    each = [_carried(intervals, begin, end) for intervals in moved.values()]
    total = sum(each)
    if not total:
        raise OutputError("nothing was moved while all pairs ran", "invalid")
    return Together(
        end - begin,
        total / (end - begin),
        max(_by_second(moved.values(), begin, int(end - begin))),
        jain(each),
    )


def jain(shares: Sequence[Fraction]) -> Fraction:
    """Jain's fairness index of what each has got; not all of them 0."""
    squares = sum((share**2 for share in shares), Fraction(0))
    return sum(shares, Fraction(0)) ** 2 / (len(shares) * squares)


def _seconds(name: str, intervals: Sequence[Interval]) -> tuple[Fraction, Fraction]:
    """When a pair's first interval begins and its last one ends. Raises OutputError."""
    if not intervals:
        raise OutputError(f"{name}: no interval counts", "invalid")
    first = Fraction(intervals[0].start)
    last = Fraction(intervals[-1].start) + Fraction(intervals[-1].seconds)
    total = sum(Fraction(row.seconds) for row in intervals)
    if not 0 < last - first <= LONGEST or abs(total - (last - first)) > GAP * (last - first):
        raise OutputError(f"{name}: its intervals do not follow each other", "invalid")
    return first, last


def _carried(intervals: Sequence[Interval], begin: Fraction, end: Fraction) -> Fraction:
    """The bits of a stretch of time; of an interval that reaches beyond, its part."""
    found = Fraction(0)
    for row in intervals:
        start, seconds = Fraction(row.start), Fraction(row.seconds)
        inside = min(end, start + seconds) - max(begin, start)
        if inside > 0:
            found += Fraction(row.bits) * inside / seconds
    return found


def _by_second(pairs: Iterable[Sequence[Interval]], begin: Fraction, count: int) -> list[Fraction]:
    """The bits of all pairs in each of so many seconds from `begin` on."""
    sums = [Fraction(0)] * count
    for intervals in pairs:
        for row in intervals:
            first = int(Fraction(row.start) - begin)
            last = int(Fraction(row.start) + Fraction(row.seconds) - begin)
            for number in range(max(0, first), min(count, last + 1)):
                sums[number] += _carried([row], begin + number, begin + number + 1)
    return sums
