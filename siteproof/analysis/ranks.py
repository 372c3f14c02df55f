"""Nodes of one role in run after run: their kinds, and each compared with all of its kind.

The rule for one run is that of siteproof.analysis.slow_nodes. Of three to nine nodes the MAD may be
that of the bad ones; there a gross deficit against the others alone counts as well.

Two kinds of nodes in one role, such as two makes of memory, are recognised by their speeds: a
mixture of two normal distributions with one variance is compared with a single one by the
Bayesian information criterion (Schwarz, Estimating the Dimension of a Model, 1978); a difference
of 6 is strong evidence (Kass and Raftery, Bayes Factors, 1995). The kinds must be apart, too:
by D of Ashman, Bird and Zepf (Detecting Bimodality in Astronomical Datasets, 1994), where 2 is
needed for two peaks, and far more here, as a rank depends on it. The fit: EM (Dempster, Laird and
Rubin, 1977), from the best cut into two (Otsu, 1979). A few nodes far from all others
would take this cut for themselves, and hide a kind: they are left out of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import log

import numpy as np
from numpy.typing import NDArray

from siteproof.analysis.screen import row_medians
from siteproof.analysis.slow_nodes import (
    CLEAR_DEFICIT,
    FEW,
    MAD_TO_SIGMA,
    MIN_DEFICIT,
    MIN_FLEET,
    RESOLUTION,
    Z_LIMIT,
    Level,
)

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.intp]

COVERS = 0.5  # of the nodes: a run with fewer, such as a retest, has no median of its own
MIN_GROSS = 3  # nodes: of two either may be the bad one
FEW_NODES = 9
LEAST_SHARE = 0.12  # fewer nodes are bad rather than of another kind …
LEAST = 3  # … and so are one or two
EVIDENCE = 6.0  # Kass and Raftery: strong
APART = 3.5  # standard deviations of a kind
FAR = 8.0  # robust standard deviations of a part: who is farther is of no kind
ROUNDS = 50  # of EM
SAME = 1e-9
SMALLEST = 0.001  # of a level: a smaller spread is that of printing


@dataclass(frozen=True)
class Ranks:
    """z, deficit, slow: of each node in each run. z: NaN where too few nodes allow none.

    fleet: the nodes that the values of each run are compared with.
    """

    z: Floats
    deficit: Floats
    slow: Bools
    fleet: tuple[Level, ...]


def ranks(values: Floats, better: str, noise: float = 0.0) -> Ranks:
    """Compare nodes of one kind. values: (nodes, runs), NaN where a node was not measured.

    better: higher or lower. noise: from run to run, as a share. A run that measured less than half
    of the nodes is compared with the last one that measured more, or with the first one.
    """
    alike = _like(~np.isnan(values))
    fleet = [_level(column) for column in values.T]
    if not alike.size and len(fleet):
        last = np.array([row[~np.isnan(row)][-1] for row in values if not np.isnan(row).all()])
        fleet = [_level(last)] * len(fleet)
    elif alike.size:
        fleet = [fleet[number] for number in alike]
    sign = 1 if better == "higher" else -1
    medians, sds, counts = (
        np.array([getattr(one, name) for one in fleet], dtype=float)
        for name in ("median", "sd", "size")
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        deficit = np.where(medians > 0, sign * (1 - values / medians), 0.0)
        z = np.where((medians > 0) & (counts >= MIN_FLEET), sign * (values - medians) / sds, np.nan)
        slow = (z < Z_LIMIT) & (deficit >= MIN_DEFICIT)
    if MIN_GROSS <= len(values) <= FEW_NODES:
        slow |= _gross(values, better, noise)
    return Ranks(z, deficit, slow, tuple(fleet))


def _like(there: Bools) -> Ints:
    """Of each run, the run whose nodes its values are compared with; empty if there is none."""
    whole = np.flatnonzero(there.sum(axis=0) >= COVERS * len(there))
    if not whole.size:
        return whole
    before = np.searchsorted(whole, np.arange(there.shape[1]), side="right") - 1
    return whole[np.maximum(before, 0)]


def _level(column: Floats) -> Level:
    known = column[~np.isnan(column)]
    if not known.size:
        return Level(0.0, 0.0, 0)
    centre = float(np.median(known))
    return Level(centre, float(np.median(np.abs(known - centre))), known.size)


def _gross(values: Floats, better: str, noise: float) -> Bools:
    """Who lacks a fifth of the others' median, and more than they differ from each other."""
    sign = 1 if better == "higher" else -1
    found = np.zeros(values.shape, dtype=bool)
    for node in range(len(values)):
        others = np.delete(values, node, axis=0).T
        count = (~np.isnan(others)).sum(axis=1)
        centre = row_medians(others)
        mad = row_medians(np.abs(others - centre[:, None]))
        few = np.array([FEW.get(number, 1.1) for number in count.tolist()])
        sd = np.maximum(MAD_TO_SIGMA * few * mad, max(RESOLUTION, noise) * centre)
        with np.errstate(divide="ignore", invalid="ignore"):
            deficit = sign * (1 - values[node] / centre)
            far = sign * (values[node] - centre) < Z_LIMIT * sd
            found[node] = (count >= MIN_GROSS - 1) & far & (deficit >= CLEAR_DEFICIT)
    return found


def kinds(levels: Floats) -> Ints:
    """The kind of each node: 0 the most frequent. All 0 where there is only one.

    levels: the logarithm of where each node lies; NaN for a node that is left out, which is of
    the kind that it is nearest to.
    """
    found = np.zeros(levels.size, dtype=np.intp)
    known = np.flatnonzero(~np.isnan(levels))
    parts = _split(levels[known])
    if len(parts) < 2:
        return found
    parts.sort(key=lambda part: (-part.size, -float(levels[known][part].mean())))
    _give_back(levels[known], parts)
    for kind, part in enumerate(parts):
        found[known[part]] = kind
    return found


def _give_back(values: Floats, parts: list[Ints]) -> None:
    """A node far above its kind is a slow one of the next kind above."""
    order = sorted(range(len(parts)), key=lambda kind: float(np.median(values[parts[kind]])))
    for lower, upper in pairwise(order):
        part = parts[lower]
        above = values[part] - np.median(values[part])
        sd = MAD_TO_SIGMA * float(np.median(np.abs(above)))
        lost = above > max(-Z_LIMIT * sd, MIN_DEFICIT)
        parts[lower] = part[~lost]
        parts[upper] = np.sort(np.concatenate((parts[upper], part[lost])))


def _split(values: Floats) -> list[Ints]:
    """The indexes of each kind; a part that is two again is split again."""
    upper = _two(values)
    if upper is None:
        return [np.arange(values.size)]
    found = []
    for side in (np.flatnonzero(upper), np.flatnonzero(~upper)):
        found += [side[part] for part in _split(values[side])]
    return found


def _two(values: Floats) -> NDArray[np.bool_] | None:
    """Which values are of the upper kind; None if there is one kind."""
    n = values.size
    least = max(LEAST, LEAST_SHARE * n)
    everyone, values = values, _without_few(values, least)
    if n - values.size >= least or values.size < 2 * LEAST or float(np.ptp(values)) <= SAME:
        return None
    n = values.size
    share, low, high, sd = _fit(values, values > _cut(values))
    if high - low < APART * sd or not LEAST_SHARE <= share <= 1 - LEAST_SHARE:
        return None
    one = np.log(max(float(values.std()), SMALLEST)) * n + n / 2
    two = -_likelihood(values, share, low, high, sd)
    if 2 * (one - two) - 2 * log(n) < EVIDENCE:  # two more parameters: a level and a share
        return None
    cut = (low + high) / 2 - sd**2 / (high - low) * log(share / (1 - share))
    count = int((values > cut).sum())
    return everyone > cut if min(count, n - count) >= least else None


def _without_few(values: Floats, least: float) -> Floats:
    """Without the nodes that are so far from all others that the best cut parts only them."""
    while values.size >= 2 * LEAST and float(np.ptp(values)) > SAME:
        upper = values > _cut(values)
        count = int(upper.sum())
        if min(count, values.size - count) >= least:
            return values[_near(values, upper)]
        values = values[upper == (2 * count >= values.size)]
    return values


def _near(values: Floats, upper: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which values are not far from all others of their part: these would widen it."""
    near = np.ones(values.size, dtype=bool)
    for part in (upper, ~upper):
        away = np.abs(values[part] - np.median(values[part]))
        near[part] = away <= FAR * max(MAD_TO_SIGMA * float(np.median(away)), SMALLEST)
    return near


def _cut(values: Floats) -> float:
    """Where two parts have the least variance inside."""
    ranked = np.sort(values)
    below = np.arange(1, ranked.size)
    sums = np.cumsum(ranked)
    low, high = sums[:-1] / below, (sums[-1] - sums[:-1]) / (ranked.size - below)
    best = int(((high - low) ** 2 * below * (ranked.size - below)).argmax())
    return float(ranked[best] + ranked[best + 1]) / 2


def _fit(values: Floats, upper: NDArray[np.bool_]) -> tuple[float, float, float, float]:
    """Share of the upper kind, both levels, and their standard deviation."""
    weight = upper.astype(float)
    share = low = high = sd = 0.0
    for _ in range(ROUNDS):
        before = share, low, high
        share = float(weight.mean())
        high = float((weight * values).sum() / max(weight.sum(), SAME))
        low = float(((1 - weight) * values).sum() / max((1 - weight).sum(), SAME))
        within = weight * (values - high) ** 2 + (1 - weight) * (values - low) ** 2
        sd = max(float(np.sqrt(within.mean())), SMALLEST)
        if (
            np.allclose(before, (share, low, high), rtol=0, atol=1e-7)
            or not SAME < share < 1 - SAME
        ):
            break
        odds = log(share / (1 - share)) + (high - low) * (values - (high + low) / 2) / sd**2
        weight = 1 / (1 + np.exp(-np.clip(odds, -500, 500)))
    return share, low, high, sd


def _likelihood(values: Floats, share: float, low: float, high: float, sd: float) -> float:
    """The logarithm, without the constant of the normal distribution."""
    parts = [
        np.log(max(part, SAME)) - (values - level) ** 2 / (2 * sd**2)
        for part, level in ((share, high), (1 - share, low))
    ]
    return float(np.logaddexp(*parts).sum()) - values.size * log(sd)
