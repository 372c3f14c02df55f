"""What a series of runs looks like: steps, a drift, a season, or two modes.

A staircase fits a slope, and a slope fits a staircase. So the explanations compete: the result is
the one whose residuals are small with few parameters (Schwarz's criterion with the likelihood of
Laplace's distribution, in which an outlier weighs little).

Runs far off their level: the best cut into two by the likelihood of two shares against one; then
Fisher's exact test (Statistical Methods for Research Workers, 1934) for that cut, times the number
of cuts. Such runs one after the other are no independent trials, so that where they are fewer
bursts than chance makes, they count as fewer.

What the calendar does to a series: a pattern of weekdays, of hours, of the year.

Groups: the test of Kruskal and Wallis, J. Am. Stat. Assoc. 47 (1952), on what the level of each day
or week leaves, so that a step between them is no pattern. The year: a sine of clipped values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import comb, erfc, exp, inf, log, pi, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from siteproof.analysis.screen import medians, of_pattern
from siteproof.analysis.segments import CHANCE, LEAST, Change, Segments
from siteproof.analysis.spread import (
    CLIP,
    SAME,
    TIGHT,
    UNKNOWN,
    YEAR,
    Floats,
    Typical,
    as_seconds,
    middle,
    robust_sd,
    running_median,
    timed,
    variance_factor,
)
from siteproof.analysis.steps import Drift, may_drift, slope

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
    seasons = of_groups(seconds, known) if sought else []
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
    if dated and (sine := annual(seconds, level)):
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


DAY, HOUR = 86400.0, 3600.0
FEWEST = 8  # values; of fewer no pattern is sought
SEASON_CHANCE = 1e-4  # of a pattern by chance that still counts
SEASON_SD = 1.0  # robust sd between the lowest and the highest group
OFTEN = 4  # so many weeks, or days, a group must have been seen in
YEARS = 1.9  # so long must a series be before a year is a pattern
GAIN = 0.1  # of the variance around a line, which an annual sine must explain
ALIKE = 0.7  # of the amplitude, by which the waves of the older and the newer half may differ
TURNS = 6  # of turns and groups in turns
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


@dataclass(frozen=True)
class Season:
    """A pattern of the calendar. name: weekday, hour of day or annual.

    lowest, highest: where in it, in words. low, high: the typical values there. relative: their
    difference as a share of the median. offsets: of each value, to be subtracted before steps are
    sought; 0 in a gap.
    """

    name: str
    lowest: str
    highest: str
    low: float
    high: float
    relative: float
    offsets: Floats = field(repr=False, compare=False)

    def placed(self, order: NDArray[np.intp], size: int) -> Season:
        """With the offsets at these places of so many values."""
        offsets = np.zeros(size)
        offsets[order] = self.offsets
        return replace(self, offsets=offsets)


def screen_seasons(times: ArrayLike, values: ArrayLike) -> NDArray[np.bool_]:
    """Which of many series may have a pattern of weekdays or hours, for `season` to confirm.

    times, values: (series, points), NaN is a gap.
    """
    moments, table = np.asarray(times), np.asarray(values)
    known = ~np.isnat(moments) if moments.dtype.kind == "M" else np.isfinite(moments)
    seconds = np.where(known.ravel(), as_seconds(moments), 0.0).reshape(moments.shape)
    table = np.where(known, table, np.nan)
    _, weekday, _, hour = _groups(seconds)
    return of_pattern(weekday, table) | of_pattern(hour, table)


def of_groups(seconds: Floats, values: Floats) -> list[Season]:
    """Patterns of weekdays and of hours, the clearer one first. Values by time, without gaps."""
    if values.size < FEWEST or np.ptp(values) == 0:
        return []
    days, weekday, weeks, hour = _groups(seconds)
    kinds = {
        "weekday": (weekday, weeks, WEEKDAYS),
        "hour of day": (hour, days, tuple(f"{h:02d} h" for h in range(24))),
    }
    found: list[Season] = []
    left = values
    while kinds:
        seen = {name: _grouped(name, *kind, left, values) for name, kind in kinds.items()}
        clear = {name: one for name, one in seen.items() if one}
        if not clear:
            break
        name = min(clear, key=lambda name: clear[name][0])
        del kinds[name]
        found.append(clear[name][1])
        left = left - found[-1].offsets
    return found


def _groups(seconds: Floats) -> tuple[Floats, NDArray[np.int64], Floats, NDArray[np.int64]]:
    """Day, weekday, week and hour of each moment, UTC."""
    days = np.floor(seconds / DAY)
    weekday = (days.astype(np.int64) + 3) % 7  # 1 January 1970 was a Thursday
    hour = np.floor((seconds - days * DAY) / HOUR).astype(np.int64)
    return days, weekday, np.floor((days + 3) / 7), hour


def _grouped(
    name: str,
    group: NDArray[np.int64],
    turn: Floats,
    words: tuple[str, ...],
    left: Floats,
    values: Floats,
) -> tuple[float, Season] | None:
    """Whether groups differ that each came in OFTEN turns or more. left: without other patterns."""
    often = [g for g in np.unique(group) if np.unique(turn[group == g]).size >= OFTEN]
    inside = np.isin(group, often)
    if len(often) < 2:
        return None
    effects, rest, many = _polished(group[inside], turn[inside], left[inside])
    if many.sum() < FEWEST:
        return None
    sd = robust_sd(rest[many], float(np.abs(values).max()))
    _, sizes = np.unique(turn[inside][many], return_counts=True)
    kept = 1 - 1 / float(sizes.mean())  # of the scatter: the rest is in the levels of the turns
    which = group[inside][many]
    alike = np.array([effects[int(g)] for g in which])
    chance = _kruskal_wallis(rest[many] + alike, which, kept)
    lowest, highest = min(effects, key=effects.__getitem__), max(effects, key=effects.__getitem__)
    gap = effects[highest] - effects[lowest]
    if chance > SEASON_CHANCE or gap <= SEASON_SD * sd / sqrt(kept):
        return None
    offsets = np.array([effects.get(int(g), 0.0) for g in group])
    return chance, _season(
        name, words[lowest], words[highest], effects[lowest], effects[highest], values, offsets
    )


def _polished(
    group: NDArray[np.int64], turn: Floats, values: Floats
) -> tuple[dict[int, float], Floats, NDArray[np.bool_]]:
    """The effect of each group next to the level of each turn, so that no step is a pattern.

    Median polish: Tukey, Exploratory Data Analysis (1977). With what is left of each value, and
    whether its turn has other groups to compare it with.
    """
    names, which = np.unique(group, return_inverse=True)
    turns, when = np.unique(turn, return_inverse=True)
    pairs = np.unique(when * names.size + which)
    many = np.bincount(pairs // names.size, minlength=turns.size)[when] > 1
    if many.sum() < FEWEST:
        return {}, values, many
    effect, rest = np.zeros(names.size), values
    for _ in range(TURNS):
        level = medians(when, values - effect[which], turns.size)
        rest = values - level[when]
        here = medians(which[many], rest[many], names.size)
        effect = np.where(np.isnan(here), 0.0, here)
        if many.any():
            effect -= np.median(effect[which[many]])
    effects = {int(name): float(one) for name, one in zip(names, effect, strict=True)}
    return effects, rest - effect[which], many


def annual(seconds: Floats, values: Floats) -> Season | None:
    """A sine of a year, if it explains what no line does. Values by time, without gaps."""
    if values.size < FEWEST or seconds[-1] - seconds[0] < YEARS * YEAR:
        return None
    centre = float(np.median(values))
    sd = robust_sd(values - centre, float(np.abs(values).max()))
    if sd == 0:
        return None
    z = np.clip((values - centre) / sd, -CLIP, CLIP)
    turn = 2 * pi * seconds / YEAR
    base = np.column_stack([np.ones_like(turn), (seconds - seconds[0]) / YEAR])
    wave = np.column_stack([np.cos(turn), np.sin(turn)])
    both = np.hstack([base, wave])
    fit, rest = _least_squares(both, z)
    _, plain = _least_squares(base, z)
    noise, swing = robust_sd(rest, CLIP), 2 * float(np.hypot(fit[2], fit[3]))
    if noise == 0 or swing <= SEASON_SD * noise or rest @ rest > (1 - GAIN) * (plain @ plain):
        return None
    older, newer = (
        _least_squares(both[part], z[part])[0][2:] for part in np.array_split(np.arange(z.size), 2)
    )
    if float(np.hypot(*(older - newer))) > swing / 2 * ALIKE:
        return None
    # The error of an amplitude of n values is sd * sqrt(2 / n).
    if erfc(swing / 2 / noise * sqrt(z.size / 4 / variance_factor(rest, noise))) > SEASON_CHANCE:
        return None
    top = float(np.arctan2(fit[3], fit[2])) / (2 * pi) % 1
    return _season(
        "annual",
        _month(top + 0.5),
        _month(top),
        -swing / 2 * sd,
        swing / 2 * sd,
        values,
        wave @ fit[2:] * sd,
    )


def _least_squares(columns: Floats, z: Floats) -> tuple[Floats, Floats]:
    fit = np.asarray(np.linalg.lstsq(columns, z, rcond=None)[0], dtype=np.float64)
    return fit, z - columns @ fit


def _month(turn: float) -> str:
    """Of a share of a year that begins on 1 January."""
    return MONTHS[int(turn % 1 * 12) % 12]


def _season(
    name: str, lowest: str, highest: str, low: float, high: float, values: Floats, offsets: Floats
) -> Season:
    centre = float(np.median(values))
    relative = (high - low) / abs(centre) if centre else inf
    return Season(name, lowest, highest, centre + low, centre + high, relative, offsets)


def _kruskal_wallis(values: Floats, group: NDArray[np.int64], kept: float) -> float:
    """Chance that groups alike differ so much. kept: of the scatter, by the levels of turns."""
    from scipy.special import chdtrc  # a sixth of a second, which only those who ask should pay

    n = values.size
    _, equal, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[equal]  # equal values have their mean rank
    _, which, sizes = np.unique(group, return_inverse=True, return_counts=True)
    sums = np.bincount(which, ranks)
    spread = float(np.sum((ranks - (n + 1) / 2) ** 2)) / (n - 1)
    if spread == 0:
        return 1.0
    h = float(np.sum(sizes * (sums / sizes - (n + 1) / 2) ** 2)) / spread
    return float(chdtrc(sizes.size - 1, h * kept))
