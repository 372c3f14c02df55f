"""Steps in a series of runs: since when is it another level, and is that worth an alert?

Two stages, as 10,000 nodes have 200,000 series: `screen.screen` looks at all of them at once, and
`shape.explain` confirms what it flags. Control limits and the new control region after a confirmed
change are XDMoD's idea, with median and MAD instead of mean and standard deviation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import ArrayLike, NDArray

from siteproof.analysis.segments import LEAST, standard_errors
from siteproof.analysis.spread import SAME, finite, robust_sd, variance_factor

MIN_RELATIVE = 0.02  # a smaller step is worth no alert
MIN_SD = 3.0  # nor one of fewer robust sd
CONTROL_SD = 3.0  # limits of control around the median
LAST, OUTSIDE = 3, 2  # two of the last three runs outside, on one side: out of control


@dataclass(frozen=True)
class Step:
    """One step. before, after: medians. relative: of before, signed. robust_sd: around the levels.

    confidence: in words, of the share of a series without a step that would not look like this.
    """

    before: float
    after: float
    relative: float
    robust_sd: float
    n_before: int
    n_after: int
    confidence: str


def describe(
    values: ArrayLike, index: int, before_from: int = 0, after_to: int | None = None
) -> Step:
    """The step at `index`: of the values from `before_from`, up to but without `after_to`."""
    array = finite(values).ravel()
    sides = [part[~np.isnan(part)] for part in (array[before_from:index], array[index:after_to])]
    if not all(part.size for part in sides):
        raise ValueError("a step has values on both sides")
    before, after = middles = [float(np.median(part)) for part in sides]
    away = np.concatenate([part - mid for part, mid in zip(sides, middles, strict=True)])
    sd = robust_sd(away, max(abs(before), abs(after)))
    left, right = (part.size for part in sides)
    errors = standard_errors(after - before, sd, variance_factor(away, sd), left, right)
    return Step(
        before, after, _relative(before, after), sd, left, right, _confidence(errors, left + right)
    )


def worth_an_alert(step: Step) -> bool:
    """Whether a step is large enough: 2 %, and 3 robust sd. Provisional ones are, too."""
    least = MIN_SD * step.robust_sd / abs(step.before) if step.before else 0.0
    return step.before != step.after and abs(step.relative) >= max(MIN_RELATIVE, least)


def out_of_control(
    values: ArrayLike, region: slice | Sequence[int] | NDArray[np.intp]
) -> list[int]:
    """Those of the last three runs that are outside, if they are two or more, on one side.

    region: the control region, as an index into values; outside is beyond its median -+ 3 robust
    sd. Empty if it has fewer than five values.
    """
    array = finite(values).ravel()
    control = array[region]
    control = control[~np.isnan(control)]
    if control.size < LEAST:
        return []
    centre = float(np.median(control))
    limit = CONTROL_SD * robust_sd(control - centre, abs(centre)) + SAME * abs(centre)
    last = np.flatnonzero(~np.isnan(array))[-LAST:]
    for side in (1, -1):
        outside = [int(at) for at in last if side * (array[at] - centre) > limit]
        if len(outside) >= OUTSIDE:
            return outside
    return []


def _relative(before: float, after: float) -> float:
    if before == after:
        return 0.0
    return (after - before) / abs(before) if before else (inf if after > before else -inf)


def _confidence(errors: float, places: int) -> str:
    """Chance that one of so many places looks like that by chance, in words."""
    from scipy.special import stdtr  # as late as ruptures

    chance = min(1.0, 2 * places * float(stdtr(max(1, places - 2), -errors)))
    return "above 99.9 %" if chance < 0.001 else f"{1 - chance:.1%}".replace("%", " %")
