"""Two measurements of one thing, before and after: better, worse, the same, or undecidable.

What one value can show: its noise is not known, so it is taken from what shared storage did when
the same was measured twice and nothing was changed. In Table 2 of PTI-TR16-005 the serial rates of
April 2016 and of the review panel's rerun in May differ, at the two sites, by +5.7, -5.7, -12.0 and
-15.9 %, though each is a mean of several runs. A change of less than a fifth is therefore no news,
better or worse; a larger one is, and is marked as resting on one value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import hypot, sqrt
from statistics import median

from siteproof.analysis.slow_nodes import middle

LEAST = 0.02  # a smaller change does not matter
ERRORS = 3  # robust standard deviations of the medians
FEWEST = 2  # values; of fewer the noise is not known …
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
    first, second = middle(before), middle(after)
    one = min(first.count, second.count) < FEWEST
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
    before: Mapping[str, float], after: Mapping[str, float], better: str
) -> list[tuple[str, float]]:
    """The nodes that lost clearly more than the others, the worst first, each with its change.

    before, after: one value for each node. A fall of all nodes is in the medians.
    """
    sign = -1 if better == "lower" else 1
    changes = {
        node: after[node] / before[node] - 1
        for node in before.keys() & after.keys()
        if before[node]
    }
    if not changes or better == "neither":
        return []
    typical = middle([sign * c for c in changes.values()])
    spread = ERRORS * typical.sd if typical.count > FEWEST else 0.0
    limit = min(0.0, typical.median) - max(LEAST, spread)
    lost = [(node, change) for node, change in changes.items() if sign * change <= limit]
    return sorted(lost, key=lambda item: (sign * item[1], item[0]))


def _noise(before: Sequence[float], after: Sequence[float]) -> float:
    """The robust standard error of the change, as a share."""
    parts = [0.0, 0.0]
    for index, values in enumerate((before, after)):
        if len(values) >= FEWEST and (centre := median(values)):
            parts[index] = middle(values).sd / abs(centre) / sqrt(len(values))
    return hypot(*parts)


def _direction(difference: float, better: str) -> Effect:
    if better == "neither":
        return Effect.CHANGED
    return Effect.BETTER if (difference > 0) == (better == "higher") else Effect.WORSE
