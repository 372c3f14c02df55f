"""Where a rising line becomes a flat one, in log2 of both axes.

Least squares of two segments that meet: Hudson, Fitting Segmented Curves Whose Join Points Have to
Be Estimated, JASA 61 (1966). That two lines are worth more than one is decided by Schwarz,
Estimating the Dimension of a Model, Annals of Statistics 6 (1978).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

FEWEST = 4  # points: fewer than three parameters and one more fit anything
JOIN = 3  # parameters that a join counts for: as one, it is seen on one straight line in ten
LEAST_RISE = 0.05  # of the slope: 1 is twice the rate with twice the tasks
TINY = 1e-12  # what arithmetic leaves of a residual of zero


@dataclass(frozen=True)
class Fit:
    """Up to x the curve rises by 2**slope with each doubling; from there it is level."""

    x: float
    slope: float
    level: float


@dataclass(frozen=True)
class _Line:
    start: float
    slope: float
    residual: float


def fit(xs: Sequence[float], ys: Sequence[float]) -> Fit | None:
    """The break of a curve that rises and is then flat; None where one line describes it as well.

    xs: ascending, different. ys: the medians. Points where either is not above 0 have no logarithm
    and do not count.
    """
    kept = [(math.log2(x), math.log2(y)) for x, y in zip(xs, ys, strict=True) if x > 0 and y > 0]
    if len(kept) < FEWEST:
        return None
    ts, vs = [t for t, _ in kept], [v for _, v in kept]
    single = _line(ts, vs)
    best = min(((_bent(ts, vs, c), c) for c in _candidates(ts, vs)), key=lambda f: f[0].residual)
    hinge, at = best
    if hinge.slope < LEAST_RISE or at >= ts[-1] or not _worth_it(hinge, single, len(ts)):
        return None
    return Fit(2**at, hinge.slope, 2 ** (hinge.start + hinge.slope * at))


def _candidates(ts: Sequence[float], vs: Sequence[float]) -> Iterator[float]:
    """Where the best join may lie: at a point, or where line and mean of a division meet."""
    yield from ts[1:]
    for cut in range(2, len(ts)):
        rising = _line(ts[:cut], vs[:cut])
        if rising.slope > 0:
            at = (fmean(vs[cut:]) - rising.start) / rising.slope
            if ts[cut - 1] <= at <= ts[cut]:
                yield at


def _bent(ts: Sequence[float], vs: Sequence[float], at: float) -> _Line:
    """The best line of which all beyond `at` is level."""
    return _line([min(t, at) for t in ts], vs)


def _line(ts: Sequence[float], vs: Sequence[float]) -> _Line:
    centre, level = fmean(ts), fmean(vs)
    width = sum((t - centre) ** 2 for t in ts)
    slope = sum((t - centre) * (v - level) for t, v in zip(ts, vs, strict=True)) / width
    start = level - slope * centre
    return _Line(
        start, slope, sum((v - start - slope * t) ** 2 for t, v in zip(ts, vs, strict=True))
    )


def _worth_it(hinge: _Line, single: _Line, count: int) -> bool:
    """Schwarz's criterion, with the join counted for more than the one parameter that it is."""
    gain = count * math.log((single.residual + TINY) / (hinge.residual + TINY))
    return gain > JOIN * math.log(count)
