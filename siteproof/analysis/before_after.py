"""Two measurements of one thing, before and after: better, worse, the same, or not to be told.

What one value can show: nobody knows its noise, so it is taken from what shared storage did when
the same was measured twice and nothing was changed. In Table 2 of PTI-TR16-005 the serial rates of
April 2016 and of the review panel's rerun in May differ, at the two sites, by +5.7, -5.7, -12.0 and
-15.9 %, though each is a mean of several runs. A change of less than a fifth is therefore no news,
better or worse; a larger one is, and still is marked as resting on one value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import hypot, sqrt
from statistics import median

from siteproof.analysis.slow_nodes import middle

LEAST = 0.02  # a smaller change is not worth a word
ERRORS = 3  # robust standard deviations of the medians
FEWEST = 2  # values without which nobody knows the noise …
ONE_VALUE = 0.20  # … and the least change that a single one shows: see above


class Word(StrEnum):
    """What became of a figure."""

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
    word: Word
    one_value: bool

    @property
    def told(self) -> str:
        """The word, and that it rests on one value."""
        return f"{self.word} (one value)" if self.one_value else str(self.word)


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
        word = Word.SAME
    elif size < limit:
        word = Word.UNDECIDABLE if one else Word.SAME
    else:
        word = _direction(second.median - first.median, better)
    return Change(first.median, second.median, change, noise, word, one)


def worst(
    before: Mapping[str, float], after: Mapping[str, float], better: str
) -> list[tuple[str, float]]:
    """The nodes that lost clearly more than their sisters, the worst first, each with its change.

    before, after: one figure a node. A fall of all nodes is told by the medians.
    """
    sign = -1 if better == "lower" else 1
    changes = {
        node: after[node] / before[node] - 1
        for node in before.keys() & after.keys()
        if before[node]
    }
    if not changes or better == "neither":
        return []
    usual = middle([sign * c for c in changes.values()])
    spread = ERRORS * usual.sd if usual.count > FEWEST else 0.0
    limit = min(0.0, usual.median) - max(LEAST, spread)
    lost = [(node, change) for node, change in changes.items() if sign * change <= limit]
    return sorted(lost, key=lambda item: (sign * item[1], item[0]))


def _noise(before: Sequence[float], after: Sequence[float]) -> float:
    """The robust standard error of the change, as a share."""
    parts = [0.0, 0.0]
    for index, values in enumerate((before, after)):
        if len(values) >= FEWEST and (centre := median(values)):
            parts[index] = middle(values).sd / abs(centre) / sqrt(len(values))
    return hypot(*parts)


def _direction(difference: float, better: str) -> Word:
    if better == "neither":
        return Word.CHANGED
    return Word.BETTER if (difference > 0) == (better == "higher") else Word.WORSE
