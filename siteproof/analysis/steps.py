"""What is reported of a change of level: its size, how sure it is, whether it is a unit's factor.

Whether there is one, `segments` decides; a fleet's page is decided by `reported`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, log

import numpy as np
from numpy.typing import NDArray

from siteproof.analysis.segments import Change

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
