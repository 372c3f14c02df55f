"""What the calendar does to a series: a pattern of weekdays, of hours, of the year.

Groups: the test of Kruskal and Wallis, J. Am. Stat. Assoc. 47 (1952), on what the level of each day
or week leaves, so that a step between them is no pattern. The year: a sine of clipped values.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import erfc, inf, pi, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from siteproof.analysis.screen import medians, of_pattern
from siteproof.analysis.spread import CLIP, YEAR, Floats, as_seconds, robust_sd, variance_factor

DAY, HOUR = 86400.0, 3600.0
FEWEST = 8  # values; of fewer no pattern is sought
CHANCE = 1e-4  # of a pattern by chance that still counts
SEASON_SD = 1.0  # robust sd between the lowest and the highest group
OFTEN = 4  # so many weeks, or days, a group must have been seen in
YEARS = 1.9  # so long must a series be before a year is a pattern
GAIN = 0.1  # of the variance around a line, which an annual sine must explain
ALIKE = 0.7  # of the amplitude, by which the waves of the older and the newer half may differ
ROUNDS = 6  # of turns and groups in turns
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
    if chance > CHANCE or gap <= SEASON_SD * sd / sqrt(kept):
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
    for _ in range(ROUNDS):
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
    if erfc(swing / 2 / noise * sqrt(z.size / 4 / variance_factor(rest, noise))) > CHANCE:
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
