"""Intervals of time, in whole seconds since 1970 (UTC), so that no clock change matters.

`Spans` are half-open intervals [begin, end), in order, none empty, none touching the next one.
Every function gives such spans.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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


def common(parts: Sequence[Spans]) -> Spans:
    """The times in all of them; none of no parts."""
    if not parts:
        return ()
    found = parts[0]
    for part in parts[1:]:
        found = intersect(found, part)
    return found


def seconds(spans: Spans) -> int:
    """How long they are together."""
    return sum(end - begin for begin, end in spans)
