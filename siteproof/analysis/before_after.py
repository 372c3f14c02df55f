"""Two measurements of one thing, before and after: better, worse, the same, or undecidable.

What one value can show: its noise is not known, so it is taken from what shared storage did when
the same was measured twice and nothing was changed. In Table 2 of PTI-TR16-005 the serial rates of
April 2016 and of the review panel's rerun in May differ, at the two sites, by +5.7, -5.7, -12.0 and
-15.9 %, though each is a mean of several runs. A change of less than a fifth is therefore no news,
better or worse; a larger one is, and is marked as resting on one value.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import hypot, log, sqrt
from statistics import NormalDist, median

from siteproof.analysis.slow_nodes import FEW, MAD_TO_SIGMA, MIN_FLEET, Level, level

LEAST = 0.02  # a smaller change does not matter
FALSE_ALARM = 0.005  # wanted: the share of comparisons in which a node is named by chance
ERRORS = 3  # robust standard deviations of the medians
FEWEST = 2  # values; of fewer the noise is not known …
HALF = 0.5  # of the own value: lost, it is named whatever the others did
SMALLEST = 1e-6  # of the value before
MANY = 50  # nodes, among which one node moves no median
ONE_VALUE = 0.20  # … and the least change that a single one shows: see above


class Effect(StrEnum):
    """What became of a metric."""

    WORSE = "worse"
    CHANGED = "changed"  # where no direction is good
    UNDECIDABLE = "undecidable"
    BETTER = "better"
    SAME = "same"


@dataclass(frozen=True)
class Change:
    """From A to B. change: 0.1 is a tenth more; None where A is zero. noise: of that change.

    one_value: a side has one value only, so the noise is not known.
    """

    before: float
    after: float
    change: float | None
    noise: float
    effect: Effect
    one_value: bool

    @property
    def text(self) -> str:
        """The effect, and that it rests on one value."""
        return f"{self.effect} (one value)" if self.one_value else str(self.effect)


def compare(before: Sequence[float], after: Sequence[float], better: str) -> Change:
    """Compare the medians of one value or more each.

    A change counts above 2 % and above three robust standard errors. Where a side has one value,
    it counts from ONE_VALUE on.
    better: higher, lower, or neither.
    """
    first, second = level(before), level(after)
    one = min(first.size, second.size) < FEWEST
    change = second.median / first.median - 1 if first.median else None
    noise = _noise(before, after)
    limit = ONE_VALUE if one else max(LEAST, ERRORS * noise)
    size = abs(change) if change is not None else float(second.median != 0)
    if size == 0:
        effect = Effect.SAME
    elif size < limit:
        effect = Effect.UNDECIDABLE if one else Effect.SAME
    else:
        effect = _direction(second.median - first.median, better)
    return Change(first.median, second.median, change, noise, effect, one)


def worst(
    before: Mapping[str, float], after: Mapping[str, float], better: str, *, counts: bool = False
) -> list[tuple[str, float | None]]:
    """The nodes or pairs that lost clearly more than the others, the worst first, with the change.

    before, after: one value for each. A fall of all is in the medians. Whatever the others did,
    what lost HALF of its own value is named, if that is more than the others scatter; and a count
    that was 0 and is not (its change is None). counts: whether the values are counts.
    """
    sign = -1 if better == "lower" else 1
    if better == "neither":
        return []
    both = before.keys() & after.keys()
    found: list[tuple[float, str, float | None]] = []
    if counts and better == "lower":
        found = [(-after[n], n, None) for n in both if not before[n] and after[n] > 0]
    changes = {n: after[n] / before[n] - 1 for n in both if before[n]}
    lost = _beyond(changes, sign) | _gross(changes, sign)
    found += [(sign * changes[node], node, changes[node]) for node in lost]
    return [(node, change) for _, node, change in sorted(found, key=lambda one: one[:2])]


def as_others(after: Mapping[str, float], better: str) -> set[str]:
    """Who is not below the others by more than these scatter, whatever it was before.

    So `siteproof nodes` does not name it. Of fewer than MIN_FLEET nobody is known to be.
    """
    middle = median(after.values())
    if len(after) < MIN_FLEET or middle <= 0:
        return set()
    shares = {name: value / middle - 1 for name, value in after.items()}
    return set(after) - _beyond(shares, -1 if better == "lower" else 1)


def _beyond(changes: Mapping[str, float], sign: int) -> set[str]:
    """Who is farther below the median change than the others scatter."""
    if not changes:
        return set()
    typical = level([sign * c for c in changes.values()])
    errors = max(ERRORS, NormalDist().inv_cdf(1 - FALSE_ALARM / len(changes)))
    spread = errors * typical.sd if typical.size > FEWEST else 0.0
    limit = min(0.0, typical.median) - max(LEAST, spread)
    return {node for node, change in changes.items() if sign * change <= limit}


def _gross(changes: Mapping[str, float], sign: int) -> set[str]:
    """Who lost half of the own value, and more than all others scatter.

    In logarithms: a loss of nearly all is as far as a gain of many times.
    """
    ratios = {n: sign * log(max(1 + c, SMALLEST)) for n, c in changes.items()}
    halved = {node for node, ratio in ratios.items() if ratio <= log(HALF)}
    if len(ratios) >= MANY:
        lowest = _lowest(ratios.values())
        return {node for node in halved if ratios[node] < lowest}
    others = {node: [r for n, r in ratios.items() if n != node] for node in halved}
    return {node for node in halved if ratios[node] < _lowest(others[node])}


def _lowest(others: Collection[float]) -> float:
    """What is lower is farther from the others than they scatter, and a loss."""
    around = level(others) if others else Level(0.0, 0.0, 1)
    scatter = MAD_TO_SIGMA * FEW.get(around.size, 1.0) * around.mad
    return min(0.0, around.median) - ERRORS * scatter


def _noise(before: Sequence[float], after: Sequence[float]) -> float:
    """The robust standard error of the change, as a share."""
    parts = [0.0, 0.0]
    for index, values in enumerate((before, after)):
        if len(values) >= FEWEST and (centre := median(values)):
            parts[index] = level(values).sd / abs(centre) / sqrt(len(values))
    return hypot(*parts)


def _direction(difference: float, better: str) -> Effect:
    if better == "neither":
        return Effect.CHANGED
    return Effect.BETTER if (difference > 0) == (better == "higher") else Effect.WORSE
