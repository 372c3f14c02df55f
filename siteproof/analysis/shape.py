"""What a series of runs looks like: steps, a drift, a season, or two modes.

A staircase fits a slope, and a slope fits a staircase. So the explanations compete: the result is
the one whose residuals are small with few parameters (Schwarz's criterion with the likelihood of
Laplace's distribution, in which an outlier weighs little).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from siteproof.analysis import outliers
from siteproof.analysis import season as calendar
from siteproof.analysis.drift import Drift, may_drift, slope
from siteproof.analysis.season import Season
from siteproof.analysis.segments import CHANCE, Change, Segments
from siteproof.analysis.spread import (
    CLIP,
    SAME,
    UNKNOWN,
    YEAR,
    Floats,
    Typical,
    robust_sd,
    timed,
    variance_factor,
)

FEW = 10  # values, of which fewer show nothing but steps
SCATTERED = 15  # values on each side of a change of the scatter …
TIMES = 1.8  # … by which it is larger or smaller
SMALLEST = 1e-300  # of a chance
LONGEST = 1000  # the newest values that are searched: memory and time are quadratic
ROUNDS = 3  # in which steps and slope are sought in turns
STEP, LINE, SINE = 2, 1, 2  # parameters: place and height, slope, two amplitudes


@dataclass(frozen=True)
class Shape:
    """changes: steps and episodes. left_out: the oldest values, not searched.

    scatter: changes of the scatter of a run, where its level may be as it was.
    seasons: the clearest first. level: the values without them, 0 in a gap.
    modes: two levels, if the series flips between them: for days, then these flips are no steps; or
    from run to run, in addition to the steps that both levels make together.
    """

    changes: list[Change]
    drift: Drift | None
    seasons: list[Season]
    modes: tuple[float, float] | None
    left_out: int
    scatter: list[Change]

    @property
    def steps(self) -> list[int]:
        """The first value after each step, and of and after each episode."""
        return sorted({at for one in self.changes for at in (one.at, one.end) if at is not None})


@dataclass(frozen=True)
class _Candidate:
    """One explanation. score: the lower the better."""

    segments: Segments
    parameters: int
    drift: Drift | None = None
    season: Season | None = None

    def score(self, limit: float, count: float) -> float:
        """Residuals beyond the limit count as the limit. count: of independent values."""
        mean = float(np.minimum(np.abs(self.segments.away), limit).mean())
        parameters = self.parameters + STEP * len(self.segments.steps)
        return 2 * count * log(max(mean, SAME * limit)) + parameters * log(count)

    def repeats(self) -> float:
        """How many values say no more than one, as neighbours resemble each other."""
        away = self.segments.away
        return variance_factor(away, robust_sd(away, float(np.abs(self.segments.values).max())))


def explain(
    times: ArrayLike | None,
    values: ArrayLike,
    typical: Typical = UNKNOWN,
    *,
    may_swing: bool = True,
) -> Shape:
    """The explanation that fits best. values that are not finite are gaps.

    times: seconds, datetime64 or datetimes; None: evenly spaced, and no season is sought.
    typical: what series of the same kind do. may_swing: with weekdays or hours.
    """
    some = np.arange(np.size(values), dtype=float) if times is None else times
    seconds, known, order = timed(some, values)
    left_out = max(0, known.size - LONGEST)
    seconds, known, order = seconds[left_out:], known[left_out:], order[left_out:]
    sought = may_swing and times is not None
    seasons = calendar.of_groups(seconds, known) if sought else []
    level = known - sum((one.offsets for one in seasons), np.zeros(known.size))
    best = _best(seconds, level, times is not None, typical)
    if best.season and not seasons:
        seasons = [best.season]
    modes = best.segments.modes or best.segments.clusters
    return Shape(
        [] if best.segments.modes else _placed(best.segments.changes, order),
        best.drift,
        [one.placed(order, np.size(values)) for one in seasons],
        modes,
        left_out,
        [] if modes else _placed(_of_scatter(best.segments), order),
    )


def _placed(changes: Sequence[Change], order: NDArray[np.intp]) -> list[Change]:
    """With the places of the values among all that were given."""
    return [
        replace(one, at=int(order[one.at]), end=None if one.end is None else int(order[one.end]))
        for one in changes
    ]


def _of_scatter(segments: Segments) -> list[Change]:
    """Where runs begin to scatter far more, or far less, around their level, for good.

    The search for steps in the distances of the values from their levels: as the test of Levene
    (1960) with the medians of Brown and Forsythe, J. Am. Stat. Assoc. 69 (1974).
    """
    if segments.values.size < 2 * SCATTERED:
        return []
    away = np.abs(segments.away)
    sd = robust_sd(away, float(np.abs(segments.values).max()))
    plain = replace(segments.typical, noise=0.0)
    distances = np.minimum(away, CLIP**2 * sd)
    found = [
        one
        for one in Segments(distances, plain).changes
        if one.end is None
        and min(one.n_before, one.n_after) >= SCATTERED
        and max(one.before, one.after) >= TIMES * min(one.before, one.after)
    ]
    return found or _of_outliers(distances, sd)


def _of_outliers(distances: Floats, sd: float) -> list[Change]:
    """Where runs far off their level become more frequent, or rarer: no step of the distances."""
    changed = outliers.change(distances > CLIP * sd, SCATTERED)
    if changed is None or changed[1] > CHANCE:
        return []
    at, chance = changed
    before, after = float(distances[:at].mean()), float(distances[at:].mean())
    if max(before, after) < TIMES * min(before, after):
        return []
    errors = -NormalDist().inv_cdf(max(chance, SMALLEST) / 2)
    count = distances.size
    return [Change(at, None, before, after, sd, errors, chance, at, count - at)]


def _best(seconds: Floats, level: Floats, dated: bool, typical: Typical) -> _Candidate:
    """Steps alone, with a line, with a sine of a year."""
    plain = _Candidate(Segments(level, typical), 1)
    if level.size < FEW:
        return plain
    limit = CLIP * robust_sd(plain.segments.away, float(np.abs(level).max()))
    if limit == 0:
        return plain
    starts = [plain.segments.steps] if plain.segments.steps else []
    starts += [[]] if may_drift(level) else []
    lines = [_with_line(seconds, level, steps, typical) for steps in starts]
    candidates = [plain, *(line for line in lines if line)]
    if dated and (sine := calendar.annual(seconds, level)):
        rest = Segments(level - sine.offsets, typical)
        candidates.append(_Candidate(rest, 1 + SINE, season=sine))
    count = level.size / min(one.repeats() for one in candidates)
    return min(candidates, key=lambda one: one.score(limit, count))


def _with_line(
    seconds: Floats, level: Floats, steps: list[int], typical: Typical
) -> _Candidate | None:
    """Steps and a slope that all segments share, if there is one; begun with these steps."""
    years = (seconds - seconds[0]) / YEAR
    for _ in range(ROUNDS):
        drift = slope(seconds, level, steps, typical.factor)
        if not drift.significant:
            return None
        segments = Segments(level - drift.per_year * years, typical)
        if segments.steps == steps:
            break
        steps = segments.steps
    return _Candidate(segments, 1 + LINE, drift)
