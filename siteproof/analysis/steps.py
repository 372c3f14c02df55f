"""What is reported of a change of level: its size, how sure it is, whether it is a unit's factor.

Whether there is one, `segments` decides; a fleet's page is decided by `reported`.

How small a change of level could have been found follows from the scatter and the number of runs:
the difference of two means has a standard error, and a change is reported from so many of them on;
one that is larger by the normal quantile of the wanted probability is found with it: Lachin,
Controlled Clinical Trials 2 (1981), section 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, log, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from siteproof.analysis.segments import BORROWED, CHANCE, DIP, ERRORS, LONGEST_DIP, Change

MIN_RELATIVE = 0.02  # a smaller change is worth no alert
FALSE = 0.05  # of what a page reports: the expected share that is wrong
UNITS = (1000.0, 1024.0, 1024**2 / 1000**2)  # k and Ki, M and Mi: factors of a mistaken unit
WIDE = 0.01  # of a change from the factor of k or Ki
ROUNDED = 0.0005  # of one from that of M and Mi, or three of its standard errors …
APART = 0.0013  # … which are less than what lies between it and an ordinary change of …
ORDINARY = (1.05, 0.95, 1 / 1.05)  # … which these must not explain as well


def unit_factor(change: Change) -> float:
    """The factor between two units that explains a change of level, or 0.

    That of M and Mi is nearly a gain of 5 %: it is one only where the change is that exact.
    """
    if change.before == 0 or change.after / change.before <= 0:
        return 0.0
    ratio = change.after / change.before
    error = abs(log(ratio)) / change.errors if change.errors else 0.0
    near = max(ROUNDED, 3 * error)
    exact = near <= APART and not any(_is_near(ratio, plain, near) for plain in ORDINARY)
    for factor in (*UNITS, *(1 / unit for unit in UNITS)):
        wide = max(factor, 1 / factor) > 2
        if _is_near(ratio, factor, WIDE if wide else near) and (wide or exact):
            return factor
    return 0.0


def _is_near(ratio: float, factor: float, near: float) -> bool:
    return abs(log(ratio / factor)) <= near


def share(before: float, after: float) -> float:
    """A change as a share of what was before, signed."""
    if before == after:
        return 0.0
    return (after - before) / abs(before) if before else (inf if after > before else -inf)


def confidence(chance: float) -> str:
    """In words, the share of series without a change that do not look like this."""
    return "above 99.9 %" if chance < 0.001 else f"{1 - chance:.1%}".replace("%", " %")


def most_chance(series: int) -> float:
    """The largest chance with which a change is reported that is the only one in so many series."""
    places = np.arange(1, max(1, series) + 1)
    return float(FALSE / places[-1] / np.sum(1 / places))


def reported(chances: Sequence[float], series: int) -> NDArray[np.bool_]:
    """Which changes of those in so many series are reported, so that 5 % of them are false at most.

    chances: of each change, for its series. Of a page without any change, 1 in 20 reports one.
    Benjamini and Yekutieli, Ann. Stat. 29 (2001), for tests that depend on each other in any way.
    """
    if not chances:
        return np.zeros(0, dtype=bool)
    found = np.asarray(chances)
    ordered, alone = np.sort(found), most_chance(max(series, found.size))
    kept = ordered[ordered <= alone * np.arange(1, found.size + 1)]
    return np.asarray(found <= kept.max(initial=-inf))


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
