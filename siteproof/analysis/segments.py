"""A series cut into segments of one level each, by kernel change-point detection.

Arlot, Celisse, Harchaoui, A Kernel Multiple Change-point Algorithm via Model Selection, JMLR 20
(2019), as `ruptures` has it. Its kernel is bounded, so that an outlier counts once, however far off
it is. A change point stays only if the medians around it differ by more than the scatter explains,
also where neighbouring values resemble each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import inf, log, pi, sqrt

import numpy as np

from siteproof.analysis.screen import FEWEST, SHARE
from siteproof.analysis.spread import SAME, Floats, robust_sd, variance_factor

LEAST = 5  # values in a segment
ERRORS = 4.5  # standard errors of the medians' difference that a step must have …
EFFECT = 1.2  # … and robust sd: below, a step hides in the scatter
FLIPS = 4  # change points between the same two levels that are modes, not steps
NEAR = 0.25  # of the distance of two levels: so near to one of them a segment is at it
MOSTLY = 0.75  # of the segments and of the changes between them
VALLEY = 1.9  # sum of the clusters' sd, by which they are apart; halves of normal noise: 1.3
SAMPLE = 256  # values whose distances set the kernel's width


@dataclass(frozen=True)
class Segments:
    """Values without gaps, and where their level changes."""

    values: Floats

    @cached_property
    def steps(self) -> list[int]:
        """The first index of each segment but the first; the weakest are given up one by one."""
        found = change_points(self.values)
        while found:
            parts, away, sd, factor = self._cut(found)
            strength = [_strength(*two, sd, factor) for two in pairwise(parts)]
            weakest = int(np.argmin(strength))
            if strength[weakest] >= 1:
                break
            del found[weakest]
        return found

    @cached_property
    def middles(self) -> Floats:
        """The median of each segment."""
        return np.array([np.median(part) for part in np.split(self.values, self.steps)])

    @cached_property
    def away(self) -> Floats:
        """Each value minus its segment's median."""
        sizes = np.diff([0, *self.steps, self.values.size])
        return self.values - np.repeat(self.middles, sizes)

    @cached_property
    def modes(self) -> tuple[float, float] | None:
        """The two levels between which the segments go to and fro, the lower first; else None."""
        if len(self.steps) < FLIPS:
            return None
        high = self.middles > (self.middles.min() + self.middles.max()) / 2
        levels = [float(np.median(self.middles[high == up])) for up in (False, True)]
        off = np.minimum(*(np.abs(self.middles - level) for level in levels))
        flips = np.diff(high) != 0
        near = off <= NEAR * (levels[1] - levels[0])
        if flips.sum() < FLIPS or min(flips.mean(), near.mean()) < MOSTLY:
            return None
        return levels[0], levels[1]

    @cached_property
    def clusters(self) -> tuple[float, float] | None:
        """The two levels within the segments, if runs flip between them from one to the next.

        The cut that leaves the least variance, as in Otsu, IEEE Trans. SMC 9 (1979).
        """
        n = self.values.size
        if n < FEWEST or (away := np.sort(self.away))[0] == away[-1]:
            return None
        low = np.arange(1, n)
        sums = np.cumsum(away)[:-1]
        between = (sums - low * away.mean()) ** 2 / (low * (n - low))
        cut = int(np.argmax(between)) + 1
        parts = away[:cut], away[cut:]
        if min(part.size for part in parts) < SHARE * n:
            return None
        gap = float(parts[1].mean() - parts[0].mean())
        if gap < VALLEY * sum(float(part.std()) for part in parts):
            return None
        centre = float(np.median(self.middles))
        return centre + float(np.median(parts[0])), centre + float(np.median(parts[1]))

    def _cut(self, found: list[int]) -> tuple[list[Floats], Floats, float, float]:
        parts = np.split(self.values, found)
        away = np.concatenate([part - np.median(part) for part in parts])
        sd = robust_sd(away, float(np.abs(self.values).max()))
        return parts, away, sd, variance_factor(away, sd)


def change_points(values: Floats) -> list[int]:
    """What the search with penalty log n finds, unconfirmed."""
    spread = float(np.ptp(values)) if values.size >= 2 * LEAST else 0.0
    if spread <= SAME * float(np.abs(values).max(initial=0.0)):
        return []
    scaled = (values - np.median(values)) / spread
    from ruptures import KernelCPD  # half a second, which only those who search should pay

    search = KernelCPD("rbf", min_size=LEAST, params={"gamma": _gamma(scaled)})
    found: list[int] = search.fit(scaled[:, None]).predict(pen=log(values.size))
    return found[:-1]


def standard_errors(change: float, sd: float, factor: float, before: int, after: int) -> float:
    """How many standard errors a difference of two medians is. factor: see variance_factor."""
    if sd == 0:
        return inf if change else 0.0
    return abs(change) / (sd * sqrt(factor * pi / 2 * (1 / before + 1 / after)))


def _gamma(scaled: Floats) -> float:
    """1 / median squared distance of pairs; the mean's where most values are equal."""
    few = scaled[:: -(-scaled.size // SAMPLE)]
    distances = np.square(few[:, None] - few[None, :])[np.triu_indices(few.size, 1)]
    middle = float(np.median(distances))
    return 1 / max(middle if middle > SAME else float(np.mean(distances)), SAME)


def _strength(before: Floats, after: Floats, sd: float, factor: float) -> float:
    """1 or more for a step: by the weaker of its two tests."""
    change = float(np.median(after) - np.median(before))
    errors = standard_errors(change, sd, factor, before.size, after.size)
    return min(errors / ERRORS, abs(change) / sd / EFFECT if sd else errors)
