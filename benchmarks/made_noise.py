"""Kinds of noise for the benchmarks of commands: how a node's value differs from run to run.

Each gives factors around 1 for all runs (rows) and nodes (columns) of a fleet; their robust sd from
run to run is the given coefficient of variation, but for what the kind adds to it by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

import numpy as np
from made_sites import Floats, hours, weekend

Random = np.random.Generator
Noise = Callable[[Random, Sequence[datetime], int, float], Floats]
UNLIKE = 0.5  # of the noise: how far nodes differ from each other for good
LEAST = 0.01  # of the level: no rate is negative


def normal(chance: Random, times: Sequence[datetime], nodes: int, cv: float) -> Floats:
    """Normal."""
    return 1 + cv * chance.standard_normal((len(times), nodes))


def lognormal(chance: Random, times: Sequence[datetime], nodes: int, cv: float) -> Floats:
    """Lognormal."""
    return np.asarray(np.exp(cv * chance.standard_normal((len(times), nodes))))


def heavy_tails(chance: Random, times: Sequence[datetime], nodes: int, cv: float) -> Floats:
    """Student's t with three degrees of freedom; its robust sd is 1.13."""
    return 1 + cv / 1.13 * chance.standard_t(3, (len(times), nodes))


def ar1(chance: Random, times: Sequence[datetime], nodes: int, cv: float) -> Floats:
    """AR(1) of 0.5 from run to run."""
    z = chance.standard_normal((len(times), nodes))
    for at in range(1, len(times)):
        z[at] = 0.5 * z[at - 1] + np.sqrt(1 - 0.5**2) * z[at]
    return 1 + cv * z


def daily_swing(chance: Random, times: Sequence[datetime], nodes: int, cv: float) -> Floats:
    """Normal, and 10 % between the best and the worst hour of the day."""
    swing = 0.05 * np.cos(2 * np.pi * (hours(times) - 4) / 24)
    return normal(chance, times, nodes, cv) + swing[:, None]


def slow_weekend(chance: Random, times: Sequence[datetime], nodes: int, cv: float) -> Floats:
    """Normal, and 6 % lower on Saturday and Sunday."""
    return normal(chance, times, nodes, cv) - 0.06 * weekend(times)[:, None]


def coarse_digits(chance: Random, times: Sequence[datetime], nodes: int, cv: float) -> Floats:
    """Normal, and printed with two digits."""
    return np.round(normal(chance, times, nodes, cv) * 20) / 20


def ties_at_zero(chance: Random, times: Sequence[datetime], nodes: int, cv: float) -> Floats:
    """Normal, and 15 % of the values are 0."""
    values = normal(chance, times, nodes, cv)
    values[chance.random(values.shape) < 0.15] = 0
    return values


def lost_runs(chance: Random, times: Sequence[datetime], nodes: int, cv: float) -> Floats:
    """Normal, and 30 % of the values are missing."""
    values = normal(chance, times, nodes, cv)
    values[chance.random(values.shape) < 0.3] = np.nan
    return values


def growing_scatter(chance: Random, times: Sequence[datetime], nodes: int, cv: float) -> Floats:
    """Normal, and the scatter grows from half to twice the coefficient of variation."""
    growth = np.linspace(0.5, 2, len(times))[:, None]
    return 1 + cv * growth * chance.standard_normal((len(times), nodes))


def flipping(chance: Random, times: Sequence[datetime], nodes: int, cv: float) -> Floats:
    """Normal, and two levels 5 % apart, each left after 12 runs on average."""
    flips = np.cumsum(chance.random((len(times), nodes)) < 1 / 12, axis=0) % 2
    return normal(chance, times, nodes, cv) - 0.05 * flips


def two_populations(chance: Random, times: Sequence[datetime], nodes: int, cv: float) -> Floats:
    """Normal, and 30 % of the nodes are 12 % slower for good."""
    other = chance.random(nodes) < 0.3
    values = normal(chance, times, nodes, cv)
    values[:, other] *= 0.88
    return values


def pairs(chance: Random, times: Sequence[datetime], nodes: int, cv: float) -> Floats:
    """Normal; neighbours share 80 % of their noise's variance, as two in one chassis."""
    own = chance.standard_normal((len(times), nodes))
    shared = np.repeat(chance.standard_normal((len(times), -(-nodes // 2))), 2, axis=1)[:, :nodes]
    return 1 + cv * (np.sqrt(0.8) * shared + np.sqrt(0.2) * own)


NOISES: dict[str, Noise] = {
    "normal": normal,
    "lognormal": lognormal,
    "heavy tails": heavy_tails,
    "AR(1) .5": ar1,
    "daily swing": daily_swing,
    "weekend": slow_weekend,
    "two digits": coarse_digits,
    "zeros": ties_at_zero,
    "lost runs": lost_runs,
    "growing scatter": growing_scatter,
    "flipping": flipping,
    "two populations": two_populations,
    "pairs": pairs,
}

PATTERNS = (daily_swing, slow_weekend, flipping)  # whose pattern a page may name


def fleet(noise: Noise, chance: Random, times: Sequence[datetime], nodes: int, cv: float) -> Floats:
    """All runs of a fleet whose nodes differ from each other for good, too."""
    own = 1 + cv * UNLIKE * chance.standard_normal(nodes)
    values = noise(chance, times, nodes, cv) * own
    return np.where(values == 0, 0, np.maximum(values, LEAST))
