"""What a series of runs looks like: steps, a drift, a season, or two modes.

A staircase fits a slope, and a slope fits a staircase. So the explanations compete: the result is
the one whose residuals are small with few parameters (Schwarz's criterion with the likelihood of
Laplace's distribution, in which an outlier weighs little).

Runs far off their level: the best cut into two by the likelihood of two shares against one; then
Fisher's exact test (Statistical Methods for Research Workers, 1934) for that cut, times the number
of cuts. Such runs one after the other are no independent trials, so that where they are fewer
bursts than chance makes, they count as fewer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import comb, exp, log
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from siteproof.analysis import season as calendar
from siteproof.analysis.drift import Drift, may_drift, slope
from siteproof.analysis.season import Season
from siteproof.analysis.segments import CHANCE, LEAST, Change, Segments
from siteproof.analysis.spread import (
    CLIP,
    SAME,
    TIGHT,
    UNKNOWN,
    YEAR,
    Floats,
    Typical,
    middle,
    robust_sd,
    running_median,
    timed,
    variance_factor,
)

FEW = 10  # values, of which fewer show nothing but steps
SCATTERED = 15  # values on each side of a change of the scatter …
TIMES = 1.8  # … by which it is larger or smaller
JUMP = 3  # values of which the median changes by so many times where levels differ by factors
SMALLEST = 1e-300  # of a chance
ROUNDS = 3  # in which steps and slope are sought in turns
STEP, LINE, SINE = 2, 1, 2  # parameters: place and height, slope, two amplitudes


@dataclass(frozen=True)
class Shape:
    """changes: steps and episodes.

    scatter: changes of the scatter of a run, where its level may be as it was.
    seasons: the clearest first. level: the values without them, 0 in a gap.
    modes: two levels, if the series flips between them for days; then these flips are no steps.
    """

    changes: list[Change]
    drift: Drift | None
    seasons: list[Season]
    modes: tuple[float, float] | None
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
    scale = _Factors.of(known)
    known = scale.apart(known) if scale else known
    sought = may_swing and times is not None
    seasons = calendar.of_groups(seconds, known) if sought else []
    level = known - sum((one.offsets for one in seasons), np.zeros(known.size))
    best = _best(seconds, level, times is not None, typical)
    if best.season and not seasons:
        seasons = [best.season]
    modes = best.segments.modes
    changes = [] if modes else best.segments.changes
    if scale:
        changes = [scale.measured(one) for one in changes]
        modes = modes and (scale.level(modes[0]), scale.level(modes[1]))
    return Shape(
        _placed(changes, order),
        best.drift,
        [one.placed(order, np.size(values)) for one in seasons],
        modes,
        [] if modes else _placed(_of_scatter(best.segments), order),
    )


@dataclass(frozen=True)
class _Factors:
    """Values that jump by factors, as they are searched: equal factors are equally far apart.

    The scatter of a value is a share of its level: that of a level a thousand times as high would
    hide when it began, and be a change of the scatter, too. middle: where nothing is changed.
    """

    middle: float

    @staticmethod
    def of(values: Floats) -> _Factors | None:
        """For values that jump from one such level to another."""
        if values.size <= JUMP or values.min() <= 0 or values.max() < TIMES * values.min():
            return None
        levels = np.log(running_median(values, JUMP // 2))
        jump = float(np.abs(levels[JUMP:] - levels[:-JUMP]).max())
        return _Factors(middle(values)) if jump >= log(TIMES) else None

    def apart(self, values: Floats) -> Floats:
        """What is searched in place of the values."""
        return self.middle * (1 + np.log(values / self.middle))

    def level(self, searched: float) -> float:
        """The level of the values themselves."""
        return self.middle * exp(searched / self.middle - 1)

    def measured(self, change: Change) -> Change:
        """A change with levels of the values themselves, and its severity as it is."""
        before, after = self.level(change.before), self.level(change.after)
        sd = abs(after - before) / change.severity if change.severity else 0.0
        return replace(change, before=before, after=after, sd=sd)


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
    changed = often(distances > CLIP * sd, SCATTERED)
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
    if len(candidates) == 1:
        return plain
    count = level.size / min(one.repeats() for one in candidates)
    best = min(candidates, key=lambda one: one.score(limit, count))
    if best.drift is None or best.segments.steps or len(plain.segments.steps) > 1:
        return best
    gain = count * _gain_of_a_step(level, best.segments.away, limit / CLIP)
    return plain if gain >= (log(count) if plain.segments.steps else 0) else best


def _gain_of_a_step(level: Floats, away: Floats, sd: float) -> float:
    """By how much the one step that explains most, certain or not, explains more than a slope.

    Twice the logarithm of the likelihoods' ratio, a value; of normal noise, with which they are
    confused less often than with `score`. away: what the slope leaves.
    """
    centre = float(np.median(level))
    pulled = np.clip(level, centre - CLIP * sd, centre + CLIP * sd)
    places = np.arange(LEAST, level.size - LEAST + 1)
    sums, n = np.cumsum(pulled - pulled.mean())[places - 1], level.size
    at = int(places[(sums**2 / (places * (n - places))).argmax()])
    rest = np.concatenate([part - np.median(part) for part in (level[:at], level[at:])])
    of_step, of_slope = (np.clip(part, -TIGHT * sd, TIGHT * sd) for part in (rest, away))
    return log(float(of_slope @ of_slope) / max(float(of_step @ of_step), SMALLEST))


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


Bools = NDArray[np.bool_]
Whole = NDArray[np.int64]


def often(far: Bools, least: int) -> tuple[int, float] | None:
    """The first run after the often, and the chance of so clear a one where there is none.

    far: which runs are far off, the oldest first. least: runs on each side. None: no cut is left.
    """
    n, total = far.size, int(far.sum())
    cuts = np.arange(least, n - least + 1)
    if not cuts.size or not 0 < total < n:
        return None
    before: Whole = np.cumsum(far, dtype=np.int64)[cuts - 1]
    gain = _likelihood(before, cuts) + _likelihood(total - before, n - cuts)
    best = int(gain.argmax())
    cut, fewer = int(cuts[best]), int(before[best])
    more, size, part = total - fewer, n - cut, far[cut:]
    if fewer * size > more * cut:
        fewer, more, size, part = more, fewer, cut, far[:cut]
    weight = _bursts(part)
    chance = _tail(n, size, int(fewer * weight), int(more * weight))
    return cut, min(1.0, 2 * cuts.size * chance)


def _likelihood(count: Whole, size: Whole) -> Floats:
    """The logarithm of that of so many among so many, with their own share."""
    share = count / size
    with np.errstate(divide="ignore", invalid="ignore"):
        there = np.where(count > 0, count * np.log(share), 0.0)
        absent = np.where(count < size, (size - count) * np.log1p(-share), 0.0)
    found: Floats = there + absent
    return found


def _bursts(far: Bools) -> float:
    """How many of the bursts that independent runs would make there are: 1, or less."""
    bursts = int(far[0]) + int((far[1:] & ~far[:-1]).sum())
    expected = far.sum() * (1 - far.mean()) + far.mean()
    return min(1.0, bursts / max(1.0, float(expected)))


def _tail(n: int, size: int, fewer: int, more: int) -> float:
    """The chance that of fewer + more among n so many or more are among a part of that size."""
    total = fewer + more
    ways = sum(
        comb(total, number) * comb(n - total, size - number)
        for number in range(more, min(total, size) + 1)
    )
    return ways / comb(n, size)
