"""How small a change of level could have been found, given the scatter and the number of runs.

The difference of two means has a standard error, and a change is reported from so many of them on;
one that is larger by the normal quantile of the wanted probability is found with it: Lachin,
Controlled Clinical Trials 2 (1981), section 3.
"""

from __future__ import annotations

from math import inf, log, sqrt
from statistics import NormalDist

from siteproof.analysis.segments import BORROWED, CHANCE, DIP, ERRORS, LONGEST_DIP
from siteproof.analysis.steps import MIN_RELATIVE

POWER = 0.9  # wanted probability of being found


def smallest_change(
    scatter: float, before: int, after: int, factor: float = 1.0, chance: float = CHANCE
) -> float:
    """The smallest change, as a share of the level, that is found with probability POWER.

    scatter: coefficient of variation of one run. before, after: runs at each level. factor: as of
    `spread.variance_factor`, for neighbouring runs that resemble each other. chance: with which a
    change in a series is reported at most, see `steps.most_chance`. inf: too few runs.
    """
    if min(before, after) < DIP:
        return inf
    error = scatter * sqrt(factor * (1 / before + 1 / after))
    least = max(_errors(before, after, min(chance, CHANCE)) * error, MIN_RELATIVE)
    return least + NormalDist().inv_cdf(POWER) * error


def _errors(before: int, after: int, chance: float) -> float:
    """Standard errors that a change must have: those of Welch's test and of Chernoff's bound."""
    from scipy.special import stdtrit

    places = before + after
    parts = [(1 / side, min(BORROWED + side - 1, places - 2)) for side in (before, after)]
    free = sum(part for part, _ in parts) ** 2 / sum(part**2 / own for part, own in parts)
    errors = max(ERRORS, -float(stdtrit(free, chance / places / 2)))
    if min(before, after) <= LONGEST_DIP:
        errors = max(errors, sqrt(2 * log(places / chance)))
    return errors
