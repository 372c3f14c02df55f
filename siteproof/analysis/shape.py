"""What a series of runs looks like: steps, a drift, a season, or two modes.

A staircase fits a slope, and a slope fits a staircase. So the explanations compete: the result is
the one whose residuals are small with few parameters (Schwarz's criterion with the likelihood of
Laplace's distribution, in which an outlier weighs little).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import ArrayLike, NDArray

from siteproof.analysis import season as calendar
from siteproof.analysis.drift import Drift, may_drift, slope
from siteproof.analysis.screen import of_modes, screen
from siteproof.analysis.season import Season
from siteproof.analysis.segments import LEAST, Segments
from siteproof.analysis.spread import CLIP, SAME, YEAR, Floats, robust_sd, timed, variance_factor

LONGEST = 1000  # the newest values that are searched: memory and time are quadratic
ROUNDS = 3  # in which steps and slope are sought in turns
STEP, LINE, SINE = 2, 1, 2  # parameters: place and height, slope, two amplitudes


@dataclass(frozen=True)
class Shape:
    """steps: index of the first value after each. left_out: the oldest values, not searched.

    modes: two levels, if the series flips between them: for days, then these flips are no steps; or
    from run to run, in addition to the steps that both levels make together.
    """

    steps: list[int]
    drift: Drift | None
    season: Season | None
    modes: tuple[float, float] | None
    left_out: int


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


def screen_all(times: ArrayLike, values: ArrayLike) -> NDArray[np.bool_]:
    """Which of many series have anything to `explain`: steps, drift, season or modes.

    times: of all points, the same for each series. values: (series, points), NaN is a gap.
    """
    return screen(values) | calendar.screen_seasons(times, values) | of_modes(values)


def explain(times: ArrayLike | None, values: ArrayLike) -> Shape:
    """The explanation that fits best. values that are not finite are gaps.

    times: seconds, datetime64 or datetimes; None: evenly spaced, and no season is sought.
    """
    some = np.arange(np.size(values), dtype=float) if times is None else times
    seconds, known, order = timed(some, values)
    left_out = max(0, known.size - LONGEST)
    seconds, known, order = seconds[left_out:], known[left_out:], order[left_out:]
    week = None if times is None else calendar.of_groups(seconds, known)
    level = known - week.offsets if week else known
    best = _best(seconds, level, times is not None)
    pattern = week or best.season
    steps = [] if best.segments.modes else [int(order[at]) for at in best.segments.steps]
    return Shape(
        steps,
        best.drift,
        pattern.placed(order, np.size(values)) if pattern else None,
        best.segments.modes or best.segments.clusters,
        left_out,
    )


def _best(seconds: Floats, level: Floats, dated: bool) -> _Candidate:
    """Steps alone, with a line, with a sine of a year."""
    plain = _Candidate(Segments(level), 1)
    if level.size < 2 * LEAST:
        return plain
    limit = CLIP * robust_sd(plain.segments.away, float(np.abs(level).max()))
    if limit == 0:
        return plain
    starts = [plain.segments.steps] if plain.segments.steps else []
    starts += [[]] if may_drift(level) else []
    lines = [_with_line(seconds, level, steps) for steps in starts]
    candidates = [plain, *(line for line in lines if line)]
    if dated and (sine := calendar.annual(seconds, level)):
        rest = Segments(level - sine.offsets)
        candidates.append(_Candidate(rest, 1 + SINE, season=sine))
    count = level.size / min(one.repeats() for one in candidates)
    return min(candidates, key=lambda one: one.score(limit, count))


def _with_line(seconds: Floats, level: Floats, steps: list[int]) -> _Candidate | None:
    """Steps and a slope that all segments share, if there is one; begun with these steps."""
    years = (seconds - seconds[0]) / YEAR
    for _ in range(ROUNDS):
        drift = slope(seconds, level, steps)
        if not drift.significant:
            return None
        segments = Segments(level - drift.per_year * years)
        if segments.steps == steps:
            break
        steps = segments.steps
    return _Candidate(segments, 1 + LINE, drift)
